package delivery

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// setup returns a dispatcher over an empty database that has not started, and has loaded a number
// of workspaces, each with a webhook.
func setup(t *testing.T, workspaces int) *Dispatcher {
	t.Helper()
	db, err := pebble.Open("", &pebble.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	all := New(Config{
		State: db, Stopped: ctx, Clock: time.Now, Logger: slog.New(slog.DiscardHandler), Most: 16, Workspace: Rate{Requests: 10},
		Busy: func() bool { return false }, Shortage: func(storage.Shard) storage.Shortage { return storage.Ample }, Enter: func() bool { return true }, Leave: func() {},
	})
	d := all.dispatcher(1, func() (*tracker.ReadOnlySet, error) { return &tracker.ReadOnlySet{}, nil })
	for n := range workspaces {
		var id storage.ID
		binary.BigEndian.PutUint64(id[8:], uint64(n))
		s := d.space(id)
		h := newHook(s, id)
		h.renew(&tracker.WebhookTarget{})
		s.hooks = map[storage.ID]*hook{id: h}
		d.spaces[id] = s
		d.ready(&h.first)
		d.ready(&h.again)
	}
	return d
}

// A dispatcher begins with all workspaces of its shard that have webhooks. It keeps no more of
// the idle ones than it should.
func TestDispatcher_DropsIdleWorkspaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := setup(t, 3*spacesKept)
		ended := make(chan struct{})
		go func() {
			d.loop()
			close(ended)
		}()
		<-time.After(10 * shrinkPause)
		d.Stop()
		<-ended
		if n := len(d.spaces); n == 0 || n > spacesKept {
			t.Errorf("%d workspaces are cached", n)
		}
	})
}

// A workspace that was dropped from the cache is loaded again for the deliveries of one webhook. It is idle once
// they are made, also with other webhooks, which have none.
func TestDispatcher_LoadedAgainIsIdle(t *testing.T) {
	t.Parallel()
	d := setup(t, 0)
	id := storage.ID{15: 1}
	hooks := []storage.ID{subscribe(t, d, id), subscribe(t, d, id)}
	d.refreshSpace(id, &dirtyHooks{kinds: dirtyQueued, hooks: hooks[:1]})
	for d.start(); d.running.all > 0; d.start() {
		d.done(<-d.ended)
	}
	if s := d.spaces[id]; s == nil || len(s.hooks) != len(hooks) || !s.idle(time.Now()) {
		t.Errorf("the workspace is not idle: %+v", s)
	}
}

// subscribe stores a webhook of a workspace.
func subscribe(t *testing.T, d *Dispatcher, workspace storage.ID) storage.ID {
	t.Helper()
	db, ok := d.of.cfg.State.(*pebble.DB)
	if !ok {
		t.Fatal("the state is no database")
	}
	l := tracker.NewWriteBuffer(storage.NewTx(db, d.shard, workspace), rand.Reader)
	defer func() { _ = l.Close() }()
	reply, err := l.Run(tracker.CreateWebhook, tracker.ServiceRequest("test", workspace), &tracker.CreateWebhookIn{URL: "https://example.com"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	repr, err := l.Seal()
	if err != nil {
		t.Fatal(err)
	}
	batch := db.NewBatch()
	if err := errors.Join(batch.SetRepr(bytes.Clone(repr)), batch.Commit(pebble.NoSync), batch.Close()); err != nil {
		t.Fatal(err)
	}
	l.Committed()
	var made tracker.WebhookWithSecret
	if err := json.Unmarshal(reply.Body, &made); err != nil {
		t.Fatal(err)
	}
	id, _ := storage.ParseID(made.ID)
	return id
}

// A workspace whose rate has been used stays in the cache: loaded again, it could use the whole
// rate once more.
func TestDispatcher_KeepsUsedRates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := setup(t, 1)
		for id, s := range d.spaces {
			s.hooks = nil // nothing is to be sent
			s.rates.reserve(time.Now(), 1)
			if s.idle(time.Now()) {
				t.Errorf("%s is idle", id)
			}
			if later := time.Now().Add(time.Second); !s.idle(later) {
				t.Errorf("%s is not idle", id)
			}
		}
	})
}
