package cluster

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/cluster/membership"
	"switchyard/cluster/raftstore"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

// restart ends a member and starts it again on its disk, with another program.
func (s *testMember) restart(t *testing.T, maxFormat storage.Format) *testMember {
	t.Helper()
	s.end(false)
	return newTestMember(t, testMemberConfig{
		name: s.name, fs: s.fs, directory: s.directory, wires: s.wires, maxFormat: maxFormat,
	}).mustRun(t)
}

// onDisk returns the format of a member's identity on disk.
func (s *testMember) onDisk(t *testing.T) int {
	t.Helper()
	row, err := raftstore.ReadRow(s.store.Raft(), raftstore.Key(0, raftstore.KindIdentity, nil))
	if err != nil {
		t.Fatal(err)
	}
	var id struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(row, &id); err != nil {
		t.Fatal(err)
	}
	return id.Format
}

// A new format comes into use when the last node knows it. Until then each of them can be taken back.
func TestFormats_WaitForTheLastNode(t *testing.T) {
	t.Parallel()
	directory, w := newMemoryDirectory(t), newFakeCalls()
	var nodes []*testMember
	for _, name := range []string{"n1", "n2", "n3"} {
		cfg := testMemberConfig{name: name, directory: directory, wires: w, maxFormat: storage.FormatFirst}
		if len(nodes) > 0 {
			cfg.seeds = []string{nodes[0].gossip.Addr}
		}
		nodes = append(nodes, newTestMember(t, cfg).mustRun(t))
	}
	known := func(node int, newest storage.Format) {
		t.Helper()
		testkit.Eventually(t, "the registry knows the program of "+nodes[node].name, func() bool {
			rec, ok := nodes[0].registry.list().Node(nodes[node].name)
			return ok && rec.Newest == newest
		})
		nodes[0].spread(t, nodes...)
		for _, s := range nodes {
			if s.registry.cfg.Formats.current() != storage.FormatFirst || s.onDisk(t) != identityUnnumbered {
				t.Errorf("%s writes format %d, and its identity is of format %d", s.name, s.registry.cfg.Formats.current(), s.onDisk(t))
			}
		}
	}
	for _, step := range []struct {
		node   int
		newest storage.Format
	}{{1, storage.FormatNewest}, {2, storage.FormatNewest}, {1, storage.FormatFirst}, {1, storage.FormatNewest}} {
		nodes[step.node] = nodes[step.node].restart(t, step.newest)
		known(step.node, step.newest)
	}
	nodes[0] = nodes[0].restart(t, 0)
	for _, s := range nodes {
		testkit.Eventually(t, s.name+" writes the new format", func() bool {
			nodes[0].spread(t, nodes...)
			return s.registry.cfg.Formats.current() == storage.FormatNewest
		})
		if got := s.onDisk(t); got != identityNumbered {
			t.Errorf("the identity of %s is of format %d", s.name, got)
		}
	}

	// There is no way back: neither on the disk nor for an empty node.
	nodes[2].end(false)
	store := openStore(t, nodes[2].fs, "data")
	_, err := identify(Config{Store: store, MaxFormat: storage.FormatFirst})
	if err == nil || !strings.Contains(err.Error(), "--max-format of 1 comes too late") {
		t.Errorf("the data of a newer format was opened: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	old := newTestMember(t, testMemberConfig{name: "n4", directory: directory, wires: w, seeds: []string{nodes[0].gossip.Addr}, maxFormat: storage.FormatFirst})
	wantRefusal(t, old.tryRun(t), membership.ReasonFormat, "knows formats up to 1")
	// A new node whose program knows the format writes it from its first moment.
	fresh := newTestMember(t, testMemberConfig{name: "n5", directory: directory, wires: w, seeds: []string{nodes[0].gossip.Addr}}).mustRun(t)
	if got := fresh.registry.cfg.Formats.current(); got != storage.FormatNewest {
		t.Errorf("a new node writes format %d", got)
	}
}

// Data of a format that the program does not read is not opened.
func TestIdentity_Readable(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		id     identity
		newest storage.Format
		says   string
	}{
		"without formats":          {id: identity{}, newest: storage.FormatNewest},
		"promised, not written":    {id: identity{Promised: storage.FormatNewest}, newest: storage.FormatNewest},
		"of a newer program":       {id: identity{Promised: storage.FormatNewest + 1}, newest: storage.FormatNewest, says: "use the version that ran last"},
		"below the first format":   {id: identity{Writes: -1}, newest: storage.FormatNewest}, // it counts as the first
		"held back after the step": {id: identity{Promised: storage.FormatNewest}, newest: storage.FormatNewest - 1, says: "comes too late"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := test.id.readable(test.newest)
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("%v, want %q", err, test.says)
			}
		})
	}
}

// A node alone writes its newest format at once, and goes on with it.
func TestFormats_OfANodeAlone(t *testing.T) {
	t.Parallel()
	s := settings{fs: vfs.NewMem(), dir: "data", shards: 1}
	for range 2 {
		n := start(t, s)
		if got := n.Format(); got != storage.FormatNewest {
			t.Errorf("it writes format %d", got)
		}
		if got := n.Topology(t.Context()); got.Format != int(storage.FormatNewest) || got.Nodes[0].NewestFormat != int(storage.FormatNewest) {
			t.Errorf("it shows %+v", got)
		}
		n.stop()
	}
}

// An entry of a kind that other nodes may not know is not handed to Raft.
func TestGroup_RefusesEntriesOfALaterFormat(t *testing.T) {
	t.Parallel()
	n := start(t, settings{fs: vfs.NewMem(), dir: "data", shards: 1})
	defer n.stop()
	g := n.group(1)
	err := g.propose([]byte{200, 0, 0, 0, 0, 0, 0, 0, 0}, 0).Error()
	if !errors.Is(err, errEntryFormat) {
		t.Fatalf("the entry was answered with %v", err)
	}
	if failed := g.failed.Load(); failed != nil {
		t.Errorf("the replica stopped: %v", *failed)
	}
	for kind := range entryFormats {
		if err := checkEntryKind(kind, storage.FormatOldest-1); err == nil {
			t.Errorf("kind %d is allowed in no format", kind)
		}
	}
	n.mustPropose(t, 1, "goes on")
}
