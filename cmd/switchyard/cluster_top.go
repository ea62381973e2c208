package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"golang.org/x/term"

	"switchyard/cmd/internal/top"
)

type clusterTopCmd struct {
	clusterFlags
	Every time.Duration `help:"Time between two frames, 0.5s to 1h." default:"2s"`
	Once  bool          `help:"Print one frame, with the rates of one interval. Output that is no terminal gets one frame, too."`
}

// The bounds of --every: a shorter one would be load of its own.
const (
	shortestEvery = 500 * time.Millisecond
	longestEvery  = time.Hour
)

func (t clusterTopCmd) Run() (err error) {
	c, ctx, cancel, err := t.connect()
	if err != nil {
		return err
	}
	defer cancel()
	in, out := int(os.Stdin.Fd()), int(os.Stdout.Fd())
	if t.Once || !term.IsTerminal(in) || !term.IsTerminal(out) {
		return t.once(ctx, c, os.Stdout)
	}
	if err := t.check(); err != nil {
		return err
	}
	before, err := term.MakeRaw(in)
	if err != nil {
		return fmt.Errorf("prepare the terminal: %w", err)
	}
	defer func() {
		if last := term.Restore(in, before); last != nil {
			err = errors.Join(err, fmt.Errorf("restore the terminal: %w", last))
		}
	}()
	resized, stop := notifyResize()
	defer stop()
	return t.run(ctx, c, top.Terminal{In: os.Stdin, Out: os.Stdout, Resized: resized, Size: func() (width, height int) {
		width, height, err := term.GetSize(out)
		if err != nil {
			return 0, 0
		}
		return width, height
	}})
}

func (t clusterTopCmd) check() error {
	if t.Every < shortestEvery || t.Every > longestEvery {
		return fmt.Errorf("--every %s: must be from %s to %s", t.Every, shortestEvery, longestEvery)
	}
	return nil
}

// once prints one frame.
func (t clusterTopCmd) once(ctx context.Context, c *clusterClient, out io.Writer) error {
	if err := t.check(); err != nil {
		return err
	}
	err := top.Once(ctx, t.reader(c), t.Every, out)
	if errors.Is(err, context.Canceled) {
		return &exitError{exitInterrupted, errors.New("stopped before there were two readings for the rates")}
	}
	return err
}

// run draws on a terminal until the operator ends it.
func (t clusterTopCmd) run(ctx context.Context, c *clusterClient, terminal top.Terminal) error {
	return top.Run(ctx, t.reader(c), t.Every, terminal)
}

func (t clusterTopCmd) reader(c *clusterClient) *top.Reader {
	return top.NewReader(func(ctx context.Context, path string) ([]byte, error) { return c.do(ctx, http.MethodGet, path) }, time.Now)
}
