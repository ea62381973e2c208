package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"switchyard/bench"
)

// measurement is a run of a command that starts nodes. Its context ends with a signal, and when the terminal is
// closed or the reader of its output has gone: then, too, the command stops the nodes and removes their data.
type measurement struct {
	ctx context.Context
	end context.CancelFunc // must be called at last; may be called again
	// gone ends the context, for a reason.
	gone context.CancelCauseFunc
}

func measuring() *measurement {
	// SIGPIPE would end the process at once. It says nothing about the output: a write to a connection that the
	// other side has closed raises it as well. So it is caught and dropped, and the write returns EPIPE.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	signals := []os.Signal{syscall.SIGTERM, syscall.SIGINT}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	ctx, gone := context.WithCancelCause(ctx)
	return &measurement{ctx: ctx, gone: gone, end: func() {
		gone(nil)
		stop()
		signal.Stop(pipes)
	}}
}

// report ends the run and writes its reports, as writeReports does. A pipe may have no reader yet: while the write waits
// for one, a signal ends the process.
func (m *measurement) report(report *bench.Report, asJSON, asHTML string) error {
	m.end()
	return writeReports(report, asJSON, asHTML)
}

// to returns an output of the run: the run ends when a write finds that nobody reads it.
func (m *measurement) to(out io.Writer) io.Writer { return &readOutput{out, m.gone} }

type readOutput struct {
	io.Writer
	gone context.CancelCauseFunc
}

func (o *readOutput) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		o.gone(fmt.Errorf("nobody reads the output: %w", err))
	}
	return n, err
}
