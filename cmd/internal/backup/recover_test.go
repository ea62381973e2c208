package backup_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

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
	var slugs []string
	for _, slug := range []string{"a", "b", "c", "d", "e", "f"} {
		s.onboard(slug)
		slugs = append(slugs, slug)
	}
	s.stop()
	lose(t, dir, 2)
	data := filepath.Join(t.TempDir(), "new")
	by := backup.Recovering{From: []string{dir}, Data: data, Now: time.Now}
	plan, err := backup.Recover(t.Context(), by)
	if err != nil || plan.Cluster != "" || plan.Certain() || plan.Shards[1].Node == "" || plan.Shards[2].Node != "" {
		t.Fatalf("the plan is %+v, %v", plan, err)
	}
	by.AcceptLoss = true
	made, err := backup.Recover(t.Context(), by)
	if err != nil || made.Cluster == "" || made.Forgotten == 0 || made.Forgotten == len(slugs) {
		t.Fatalf("%+v was made, %v", made, err)
	}
	s = run(data)
	for _, slug := range slugs {
		testkit.Eventually(t, "workspace "+slug+" is there, or its slug is free", func() bool {
			var out struct{}
			return s.try(http.MethodGet, "/workspaces/slug/"+slug, "", rootToken, http.StatusOK, &out) == nil ||
				s.try(http.MethodPost, "/workspaces/onboard", `{"name": "again", "slug": "`+slug+`"}`, "", http.StatusCreated, &out) == nil
		})
	}
	s.stop()
	lose(t, data, 0)
	by.From, by.Data = []string{data}, filepath.Join(t.TempDir(), "other")
	if _, err := backup.Recover(t.Context(), by); err == nil || !strings.Contains(err.Error(), "the directory, is left") {
		t.Errorf("without the directory: %v", err)
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

func (s *service) onboard(slug string) {
	s.t.Helper()
	s.post("/workspaces/onboard", `{"name": "`+slug+`", "slug": "`+slug+`"}`, &struct{}{})
}
