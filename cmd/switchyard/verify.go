package main

import (
	"fmt"
	"os"
	"path/filepath"

	"switchyard/actors/tracker"
	"switchyard/cluster"
	"switchyard/storage"
)

type verifyCmd struct {
	Data string `help:"Directory of the node's state." default:"./data" placeholder:"DIR"`
}

// Run proves the state on disk. Entries of the log that were not applied yet when
// the node ended are no part of it: what is applied is consistent by itself.
func (v verifyCmd) Run() error {
	ctx, cancel := interruptible()
	defer cancel()
	store, err := openStopped(v.Data)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	report, err := storage.Verify(ctx, store.State(), cluster.Schema(), tracker.Schema())
	if err != nil {
		return interrupted(ctx, err)
	}
	return tellReport(report, "the data in "+v.Data)
}

// tellReport prints what was proved; its error says that what was looked at is damaged.
func tellReport(report *storage.Report, what string) error {
	for _, p := range report.Problems {
		fmt.Println(p)
	}
	for _, id := range report.Unfinished {
		fmt.Printf("workspace %s: an import is under way; what its lines still lack is no problem yet\n", id)
	}
	fmt.Printf("%d workspaces, %d records, %d index entries, %d rows: ", report.Workspaces, report.Records, report.Entries, report.Rows)
	if !report.Clean() {
		fmt.Printf("%d problems\n", report.Found)
		return fmt.Errorf("%s is damaged", what)
	}
	fmt.Println("clean")
	return nil
}

// openStopped opens the data of a node that is not running. It makes nothing.
func openStopped(dir string) (*storage.Store, error) {
	for _, part := range []string{"raft", "state"} { // opening a store would make them, and find nothing wrong
		if _, err := os.Stat(filepath.Join(dir, part)); err != nil {
			return nil, fmt.Errorf("%s is no node's data: %w", dir, err)
		}
	}
	store, err := storage.Open(storage.Config{Dir: dir})
	if err != nil {
		return nil, fmt.Errorf("%w (is a node running on it? stop it first)", err)
	}
	return store, nil
}
