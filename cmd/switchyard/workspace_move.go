package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"

	"switchyard/cmd/internal/transfer"
)

type workspaceMoveCmd struct {
	Workspace   string `arg:"" help:"Id of the workspace."`
	From        string `required:"" help:"Any node of the cluster that has the workspace." placeholder:"URL"`
	To          string `required:"" help:"Any node of the cluster that is to have it." placeholder:"URL"`
	TokenFile   string `help:"File with the operator's token of the old cluster; SWITCHYARD_ROOT_TOKEN holds the token itself." placeholder:"FILE"`
	ToTokenFile string `help:"File with the operator's token of the new cluster, if it is another one." placeholder:"FILE"`
	Delete      bool   `help:"Delete the workspace in the old cluster once it has moved. Without it, it stays there read-only."`
}

func (m workspaceMoveCmd) Run() error {
	token, err := rootToken(m.TokenFile)
	if err != nil {
		return err
	}
	toToken, err := rootToken(cmp.Or(m.ToTokenFile, m.TokenFile))
	if err != nil {
		return err
	}
	if token == "" || toToken == "" {
		return &exitError{exitCredential, errors.New("this needs the operator's token: give --token-file, or set SWITCHYARD_ROOT_TOKEN")}
	}
	from, err := transfer.NewClient(m.From, token)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	to, err := transfer.NewClient(m.To, toToken)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	ctx, cancel := interruptible()
	defer cancel()
	show := newMoveProgress(os.Stderr)
	move := transfer.Move{From: from, To: to, Workspace: m.Workspace, Where: m.To, Delete: m.Delete, Progress: show.show}
	moved, err := move.Run(ctx)
	show.end()
	if err != nil {
		return asked{"move the workspace", "--from or --to", operatorsToken}.failed(ctx, err)
	}
	if moved.Before {
		fmt.Printf("Workspace %s was moved before.\n", m.Workspace)
		return nil
	}
	fmt.Printf("Workspace %s has moved: %d KiB in %s, and took no changes for %s.\n",
		m.Workspace, (moved.Bytes+1023)>>10, plural(moved.Passes, "round"), moved.Closed.Round(time.Millisecond))
	return nil
}

// moveProgress shows on a terminal what a move does.
type moveProgress struct {
	out   io.Writer
	shown bool
}

func newMoveProgress(f *os.File) *moveProgress {
	if !isatty.IsTerminal(f.Fd()) {
		return &moveProgress{}
	}
	return &moveProgress{out: f}
}

func (p *moveProgress) show(step string, bytes int64) {
	if p.out != nil {
		p.shown = true
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s: %d KiB", step, bytes>>10)
	}
}

// end leaves the line.
func (p *moveProgress) end() {
	if p.shown {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
}
