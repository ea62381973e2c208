package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/cluster"
	"switchyard/storage"
)

// A directory without a node's data is an error, and stays as it is: a store that was made there would be
// clean.
func TestVerify_RefusesADirectoryWithoutData(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string][]string{"empty": nil, "without the state": {"raft"}, "without the log": {"state"}} {
		dir := t.TempDir()
		for _, part := range parts {
			if err := os.Mkdir(filepath.Join(dir, part), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for command, run := range map[string]func() error{"verify": verifyCmd{Data: dir}.Run, "inspect": inspectCmd{Data: dir}.Run} {
			if err := run(); err == nil || !strings.Contains(err.Error(), dir+" is no node's data") {
				t.Errorf("%s, %s: %v", command, name, err)
			}
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != len(parts) {
			t.Errorf("%s: %v was left, %v", name, left, err)
		}
	}
}

// On a follower one shard may be behind another one. Other problems, and those of a node that decides alone,
// are damage.
func TestVerify_FollowerBehind(t *testing.T) {
	t.Parallel()
	alone, three := cluster.Replica{Voters: []string{"a"}}, cluster.Replica{Voters: []string{"a", "b", "c"}}
	for _, row := range []struct {
		name          string
		found, across int64
		replicas      []cluster.Replica
		may           bool
	}{
		{"of three nodes", 2, 2, []cluster.Replica{alone, three}, true},
		{"within a shard, too", 2, 1, []cluster.Replica{three}, false},
		{"of a node alone", 2, 2, []cluster.Replica{alone, alone}, false},
		{"while a replica is being filled", 1, 1, []cluster.Replica{alone, {Filling: true}}, true},
	} {
		report := &storage.Report{Found: row.found, Across: row.across}
		if may := mayBeBehind(report, &cluster.Remains{Replicas: row.replicas}); may != row.may {
			t.Errorf("%s: %t", row.name, may)
		}
	}
}
