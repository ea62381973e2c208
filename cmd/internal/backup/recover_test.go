package backup_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/cluster"
	"switchyard/cluster/raftstore"
	"switchyard/cmd/internal/backup"
	"switchyard/cmd/internal/node"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

// lose removes a shard's replica from the data of a stopped node.
func lose(t *testing.T, dir string, shard storage.Shard) {
	t.Helper()
	store, err := storage.Open(storage.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	from, to := storage.ShardRange(shard)
	err = errors.Join(
		store.State().DeleteRange(from, to, pebble.NoSync), store.FlushState(),
		store.Raft().DeleteRange(raftstore.Key(shard, raftstore.KindLog, nil), raftstore.Key(shard, raftstore.KindEnd, nil), pebble.Sync),
		store.Close())
	if err != nil {
		t.Fatal(err)
	}
}

// A shard of which nothing is left is empty afterwards: the directory forgets its workspaces,
// and their slugs are free.
func TestRecover_AShardOfWhichNothingIsLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(data string) *service {
		t.Helper()
		return startIn(t, data, 2)
	}
	s := run(dir)
	// Ids are random: workspaces are made until each shard has some.
	slugs := map[storage.Shard][]string{}
	for i := 0; len(slugs[1]) < 2 || len(slugs[2]) < 2; i++ {
		slug := "workspace-" + strconv.Itoa(i)
		shard := storage.ShardOf(s.onboard(slug), 2)
		slugs[shard] = append(slugs[shard], slug)
	}
	s.stop()
	lose(t, dir, 2)
	data := filepath.Join(t.TempDir(), "new")
	by := backup.Recovering{From: []string{dir}, Data: data, Now: time.Now}
	plan, err := backup.Recover(t.Context(), by)
	if err != nil || plan.Cluster != "" || plan.Certain() || plan.Shards[1].Node == "" || plan.Shards[2].Node != "" {
		t.Fatalf("the plan is %+v, %v", plan, err)
	}
	by.AcceptLoss, by.Progress = true, func(int, int) { refusedAsItIs(t, data) }
	made, err := backup.Recover(t.Context(), by)
	if err != nil || made.Cluster == "" || made.Forgotten != len(slugs[2]) {
		t.Fatalf("%+v was made, %v", made, err)
	}
	s = run(data)
	var out struct{}
	for _, slug := range slugs[1] {
		s.ask(http.MethodGet, "/workspaces/slug/"+slug, "", rootToken, http.StatusOK, &out)
	}
	for _, slug := range slugs[2] {
		testkit.Eventually(t, "the slug "+slug+" is free", func() bool {
			return s.try(http.MethodPost, "/workspaces/onboard", `{"name": "again", "slug": "`+slug+`"}`, "", http.StatusCreated, &out) == nil
		})
	}
	s.stop()
	lose(t, data, 0)
	by.Progress = nil
	by.From, by.Data = []string{data}, filepath.Join(t.TempDir(), "other")
	if _, err := backup.Recover(t.Context(), by); err == nil || !strings.Contains(err.Error(), "the directory, is left") {
		t.Errorf("without the directory: %v", err)
	}
}

// A replica that was being filled proves nothing about later entries, and its voters may be earlier ones.
func TestRecover_ReplicasThatWereBeingFilled(t *testing.T) {
	t.Parallel()
	all := []string{"a", "b", "c"}
	founder := cluster.Replica{Last: 30, Term: 2, Voters: []string{"a"}, Filling: true}
	behind := cluster.Replica{Last: 90, Term: 2, Voters: all}
	ahead := cluster.Replica{Last: 95, Term: 2, Voters: all, Filling: true}
	type replicas map[string]cluster.Replica
	for name, test := range map[string]struct {
		replicas replicas
		node     string
		voters   []string
		left     []string
		certain  bool
	}{
		"nothing else is left":          {replicas{"a": founder}, "a", nil, nil, false},
		"several of them":               {replicas{"a": founder, "d": ahead}, "d", nil, nil, false},
		"one with an earlier voter":     {replicas{"b": behind, "c": ahead}, "c", all, []string{"b"}, false},
		"one behind an earlier voter":   {replicas{"a": founder, "b": behind}, "b", all, []string{"b"}, false},
		"one ahead of a majority":       {replicas{"b": behind, "c": behind, "d": ahead}, "d", all, []string{"b", "c"}, true},
		"one in the place of its voter": {replicas{"a": founder, "b": behind, "c": behind}, "b", all, []string{"b", "c"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var remains []*cluster.Remains
			for _, node := range slices.Sorted(maps.Keys(test.replicas)) {
				remains = append(remains, &cluster.Remains{Node: node, Replicas: []cluster.Replica{test.replicas[node]}})
			}
			s := backup.Furthest(remains, 0)
			if s.Node != test.node || !slices.Equal(s.Voters, test.voters) || !slices.Equal(s.Left, test.left) || s.Certain() != test.certain {
				t.Errorf("%+v, certain: %t", s, s.Certain())
			}
		})
	}
}

// startIn starts a service over a directory, without a workspace.
func startIn(t *testing.T, dir string, shards int) *service {
	t.Helper()
	n, err := node.Start(t.Context(), node.Config{
		Data: dir, HTTP: "127.0.0.1:0", Shards: shards, RootToken: rootToken, OpenOnboarding: true,
		RequestTimeout: 30 * time.Second, Version: "test", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, url: "http://" + n.HTTPAddr()}
	s.stop = func() {
		t.Helper()
		if err := n.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(n.Join(t.Context()), n.WaitReady(t.Context())); err != nil {
		t.Fatal(err)
	}
	return s
}

// onboard makes a workspace and returns its id.
func (s *service) onboard(slug string) storage.ID {
	s.t.Helper()
	var made struct {
		Workspace struct {
			ID string `json:"id"`
		} `json:"workspace"`
	}
	s.post("/workspaces/onboard", `{"name": "`+slug+`", "slug": "`+slug+`"}`, &made)
	id, ok := storage.ParseID(made.Workspace.ID)
	if !ok {
		s.t.Fatalf("not an id: %q", made.Workspace.ID)
	}
	return id
}
