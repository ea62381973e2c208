//go:build unix

package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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

// A pipe that is to take the report is left alone until then: an open would wait for its reader, who would take it for empty.
func TestBench_LeavesPipesToTheirReaders(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "report")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
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
