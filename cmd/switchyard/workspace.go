package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"

	"switchyard/cmd/internal/transfer"
)

type workspaceCmd struct {
	Export workspaceExportCmd `cmd:"" help:"Write a workspace to a file."`
	Import workspaceImportCmd `cmd:"" help:"Take a workspace in from a file that export has written."`
	Move   workspaceMoveCmd   `cmd:"" help:"Move a workspace to another cluster while it is in use."`
}

// workspaceFlags say which service the workspace's commands ask, and as whom.
type workspaceFlags struct {
	URL       string `name:"url" help:"Any node of the cluster." default:"http://127.0.0.1:8080"`
	TokenFile string `help:"File with the token of an owner or admin, or the operator's; SWITCHYARD_TOKEN, or else SWITCHYARD_ROOT_TOKEN, holds the token itself." placeholder:"FILE"`
}

// workspaceToken is what a service accepts for the commands.
const workspaceToken = "the token of an owner or admin of the workspace, or the operator's"

// connect makes the client, and a context that ends with Ctrl-C.
func (f workspaceFlags) connect() (*transfer.Client, context.Context, context.CancelFunc, error) {
	token, err := rootToken(f.TokenFile)
	if err != nil {
		return nil, nil, nil, err
	}
	if own := os.Getenv("SWITCHYARD_TOKEN"); f.TokenFile == "" && own != "" {
		token = own
	}
	if token == "" {
		return nil, nil, nil, &exitError{exitCredential, errors.New("this needs a token: give --token-file, or set SWITCHYARD_TOKEN or SWITCHYARD_ROOT_TOKEN")}
	}
	c, err := transfer.NewClient(f.URL, token)
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, cancel := interruptible()
	return c, ctx, cancel, nil
}

type workspaceExportCmd struct {
	workspaceFlags
	File      string `arg:"" help:"File to write; a file of that name is replaced once the export is whole."`
	Workspace string `required:"" help:"Id of the workspace." placeholder:"ID"`
}

func (e workspaceExportCmd) Run() error {
	c, ctx, cancel, err := e.connect()
	if err != nil {
		return err
	}
	defer cancel()
	show := newByteProgress(os.Stderr)
	summary, err := c.Export(ctx, transfer.Exporting{Workspace: e.Workspace, File: e.File, Progress: show.show, Again: func(why error, lines int64, pause time.Duration) {
		show.end()
		goesOn := "goes on behind " + plural(int(lines), "line")
		if lines == 0 {
			goesOn = "begins anew"
		}
		_, _ = fmt.Fprintf(os.Stderr, "switchyard: %v. It %s in %s.\n", why, goesOn, pause)
	}})
	show.end()
	if err != nil {
		return asked{"export the workspace", "--url", workspaceToken}.failed(ctx, err)
	}
	fmt.Printf("%s: %s, %d bytes.\n", e.File, plural(int(summary.Lines), "record"), summary.Bytes)
	return nil
}

type workspaceImportCmd struct {
	workspaceFlags
	File      string `arg:"" help:"File that export has written."`
	Workspace string `env:"-" help:"Id of an empty workspace to fill, as its owner or an admin. Without it the operator has a new one made, with the id of the file." placeholder:"ID"`
}

func (i workspaceImportCmd) Run() error {
	c, ctx, cancel, err := i.connect()
	if err != nil {
		return err
	}
	defer cancel()
	file, err := os.Open(i.File)
	if err != nil {
		return fmt.Errorf("read the export: %w", err)
	}
	defer func() { _ = file.Close() }()
	show := newByteProgress(os.Stderr)
	at, summary, err := c.Import(ctx, file, i.Workspace, show.lines)
	show.end()
	if err != nil {
		return asked{"import " + i.File, "--url", workspaceToken}.failed(ctx, err)
	}
	fmt.Printf("Workspace %s has %s of %s.\n", at.OrganizationID, plural(int(summary.Lines), "record"), i.File)
	return nil
}

// lines shows on a terminal how many lines were taken.
func (p *byteProgress) lines(next, lines int64) {
	if p.out != nil {
		p.shown = next
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%d of %d lines", next, lines)
	}
}

// byteProgress shows on a terminal how much has come.
type byteProgress struct {
	out   io.Writer
	shown int64 // bytes, when it was last told
}

func newByteProgress(f *os.File) *byteProgress {
	if !isatty.IsTerminal(f.Fd()) {
		return &byteProgress{}
	}
	return &byteProgress{out: f}
}

func (p *byteProgress) show(bytes int64) {
	if p.out != nil && bytes >= p.shown+1<<20 {
		p.shown = bytes
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%d MiB", bytes>>20)
	}
}

// end leaves the line.
func (p *byteProgress) end() {
	if p.shown > 0 {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
}
