package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"switchyard/actors/tracker"
	"switchyard/cluster"
	"switchyard/storage"
)

type verifyCmd struct {
	Data string `help:"Directory of the node's state." default:"./data"`
}

// Run proves the state on disk. Entries of the log that were not applied yet when
// the node ended are no part of it: the state of a shard is consistent by itself, but
// a follower's may be behind another shard's. Shards that the node has no replica of are
// left out.
func (v verifyCmd) Run() error {
	ctx, cancel := interruptible()
	defer cancel()
	store, err := openStopped(v.Data)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	part, err := cluster.ReadPart(store)
	if err != nil {
		return err
	}
	report, err := storage.VerifyPart(ctx, store.State(), part, cluster.Schema(), tracker.Schema())
	if err != nil {
		return interrupted(ctx, err)
	}
	if n := len(part.Lacks); n > 0 {
		have := map[bool]string{true: "has", false: "have"}[n == 1]
		fmt.Printf("%d of %d shards %s no rows here; references to them were not checked\n", n, part.Shards+1, have)
	}
	what := "the data in " + v.Data
	err = tellReport(report, what)
	if err == nil {
		return nil
	}
	if remains, unread := cluster.ReadRemains(store); unread == nil && mayBeBehind(report, remains) {
		return fmt.Errorf("%s is damaged, or some shards in it were behind others when the node stopped: start the node, stop it when it has caught up, and verify it again", what)
	}
	return err
}

// mayBeBehind reports whether a sound node can have all problems of a report: they are between shards, and
// replicas on other nodes may have been ahead.
func mayBeBehind(report *storage.Report, remains *cluster.Remains) bool {
	return report.Across == report.Found &&
		slices.ContainsFunc(remains.Replicas, func(r cluster.Replica) bool { return r.Filling || len(r.Voters) > 1 })
}

// tellReport prints what was proved; its error says that what was looked at is damaged.
func tellReport(report *storage.Report, what string) error {
	for _, p := range report.Problems {
		fmt.Println(p)
	}
	for _, id := range report.Unfinished {
		fmt.Printf("workspace %s: an import is under way; what its lines still lack is no problem yet\n", id)
	}
	fmt.Printf("%s, %s, %s, %s: ",
		tracker.Counted(report.Workspaces, "workspace", "workspaces"), tracker.Counted(report.Records, "record", "records"),
		tracker.Counted(report.Entries, "index entry", "index entries"), tracker.Counted(report.Rows, "row", "rows"))
	if !report.Clean() {
		fmt.Println(tracker.Counted(report.Found, "problem", "problems"))
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
	return storage.OpenStopped(dir)
}
