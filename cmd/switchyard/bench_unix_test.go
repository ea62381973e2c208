//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchyard/bench"
)

// unread returns a pipe that nobody reads.
func unread(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return w
}

// newPipe makes a pipe with a name.
func newPipe(t *testing.T) string {
	t.Helper()
	pipe := filepath.Join(t.TempDir(), "report")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	return pipe
}

// A pipe that is to take the report is left alone until then: an open would wait for its reader, who would take it for empty.
func TestBench_LeavesPipesToTheirReaders(t *testing.T) {
	t.Parallel()
	pipe := newPipe(t)
	checked := make(chan error, 1)
	go func() { checked <- reportsWritable(pipe) }()
	select {
	case err := <-checked:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for a reader")
	}
}

// The reader of a pipe gets the whole report, also if it comes late. Until it comes a signal ends the process as any other:
// the run has ended.
func TestMeasurement_ReportsToAPipe(t *testing.T) {
	t.Parallel()
	pipe := newPipe(t)
	m := measuring()
	defer m.end()
	reported := make(chan error, 1)
	go func() { reported <- m.report(&bench.Report{Version: "v1"}, pipe, "") }()
	r, err := os.Open(pipe) // waits for the writer
	if err != nil {
		t.Fatal(err)
	}
	if m.ctx.Err() == nil {
		t.Error("signals are caught")
	}
	defer func() { _ = r.Close() }()
	report, err := bench.ReadReport(r)
	if err := errors.Join(err, <-reported); err != nil || report.Version != "v1" {
		t.Errorf("the reader gets %+v, %v", report, err)
	}
}

// A reader that goes before the end of the report is noticed.
func TestBench_WritesAReportToAPipe(t *testing.T) {
	t.Parallel()
	pipe := newPipe(t)
	written := make(chan error, 1)
	go func() {
		written <- writeReport(pipe, func(out io.Writer) error {
			_, err := out.Write(make([]byte, 1<<20)) // more than a pipe holds
			return err
		})
	}()
	r, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-written:
		if !errors.Is(err, syscall.EPIPE) {
			t.Errorf("the write ends with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for ever")
	}
}

// A socket takes no report.
func TestBench_RefusesASocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := reportsWritable(path); err == nil {
		t.Error("it is found out after the run")
	}
}

// A bench whose output nobody reads stops its nodes like one that is interrupted.
func TestMeasuring_EndsWithItsReader(t *testing.T) {
	t.Parallel()
	m := measuring()
	defer m.end()
	if _, err := m.to(unread(t)).Write([]byte("a line")); err == nil {
		t.Error("the write has no error")
	}
	if cause := context.Cause(m.ctx); cause == nil || !strings.Contains(cause.Error(), "nobody reads the output") {
		t.Errorf("the run ends with %v", cause)
	}
}

// So does one whose terminal is closed. A connection that a server has closed does not end it, although a write to it
// raises the signal of an output that nobody reads.
//
// It runs beside no other test: the signal would end their runs, too.
func TestMeasuring_EndsWithItsTerminal(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored")
	}
	m := measuring()
	defer m.end()
	raised := make(chan os.Signal, 1)
	signal.Notify(raised, syscall.SIGPIPE)
	defer signal.Stop(raised)
	if _, err := unread(t).Write([]byte("a request")); err == nil {
		t.Error("the write has no error")
	}
	<-raised
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-m.ctx.Done()
	if cause := context.Cause(m.ctx); !strings.Contains(cause.Error(), "hangup") {
		t.Errorf("the run ends with %v", cause)
	}
}
