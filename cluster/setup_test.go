package cluster

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"switchyard/cluster/raftstore"
	"switchyard/storage"
)

// recorder records the calls of the Watcher.
type recorder struct {
	mu     sync.Mutex
	calls  []string
	gained map[storage.Shard]uint64
	signal chan struct{} // capacity 1
}

func newRecorder() *recorder {
	return &recorder{gained: map[storage.Shard]uint64{}, signal: make(chan struct{}, 1)}
}

func (r *recorder) Gained(shard storage.Shard, epoch uint64) {
	r.note(fmt.Sprintf("gained %d/%d", shard, epoch))
	r.mu.Lock()
	r.gained[shard] = epoch
	r.mu.Unlock()
}

func (r *recorder) Lost(shard storage.Shard, epoch uint64) {
	r.note(fmt.Sprintf("lost %d/%d", shard, epoch))
}

func (r *recorder) note(what string) {
	r.mu.Lock()
	r.calls = append(r.calls, what)
	r.mu.Unlock()
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.calls...)
}

// quiet is a logger for tests that don't read the log.
func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func openStore(t testing.TB, fs vfs.FS, dir string) *storage.Store {
	t.Helper()
	store, err := storage.Open(storage.Config{Dir: dir, FS: fs, Logger: quiet(), CacheBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// running is a node that serves, on a store of its own.
type running struct {
	*Node
	store    *storage.Store
	watcher  *recorder
	stop     func()
	clockOff atomic.Bool   // its clock differs from those of the others
	spent    atomic.Bool   // the node's disk has no room
	spare    atomic.Uint64 // bytes that the node may take without room
}

type settings struct {
	fs     vfs.FS
	dir    string
	shards int
	node   string
	tune   func(*tuning)
}

// startWithin is how long a node may take until it serves. It is long, since tests run on busy machines.
const startWithin = 20 * time.Second

func start(t testing.TB, s settings) *running {
	t.Helper()
	r := &running{store: openStore(t, s.fs, s.dir), watcher: newRecorder()}
	var err error
	r.Node, err = New(Config{Store: r.store, Shards: s.shards, NodeName: s.node, Logger: quiet(), tune: s.tune})
	if err != nil {
		_ = r.store.Close()
		t.Fatal(err)
	}
	r.stop = sync.OnceFunc(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := r.store.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	if err := r.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context(), r.watcher); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	if err := r.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	return r
}

// key of a test row: in the shard's range, under a workspace of its own.
func testKey(shard storage.Shard, name string) []byte {
	start, _ := storage.WorkspaceRange(shard, storage.ID{9})
	return append(append(start, 1), name...)
}

// write builds a batch of rows.
func write(t testing.TB, store *storage.Store, shard storage.Shard, rows ...string) []byte {
	t.Helper()
	b := store.State().NewBatch()
	for _, row := range rows {
		if err := b.Set(testKey(shard, row), []byte("value of "+row), nil); err != nil {
			t.Fatal(err)
		}
	}
	repr := append([]byte(nil), b.Repr()...)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return repr
}

// propose waits for the outcome.
func (r *running) propose(shard storage.Shard, epoch uint64, batch []byte) error {
	done := make(chan error, 1)
	r.Propose(shard, epoch, batch, func(err error) { done <- err })
	return <-done
}

// mustPropose writes rows in the current epoch.
func (r *running) mustPropose(t testing.TB, shard storage.Shard, rows ...string) {
	t.Helper()
	epoch, ok := r.Owner(shard)
	if !ok {
		t.Fatalf("shard %d is not owned", shard)
	}
	if err := r.propose(shard, epoch, write(t, r.store, shard, rows...)); err != nil {
		t.Fatal(err)
	}
}

func (r *running) has(t testing.TB, shard storage.Shard, row string) bool {
	t.Helper()
	value, err := raftstore.ReadRow(r.store.State(), testKey(shard, row))
	if err != nil {
		t.Fatal(err)
	}
	return value != nil
}

func numbers(b []byte) (out []uint64) {
	for ; len(b) >= 8; b = b[8:] {
		out = append(out, binary.BigEndian.Uint64(b))
	}
	return out
}

// depose sends a group the heartbeat of a leader of a later term.
func depose(t testing.TB, g *group, term uint64) {
	t.Helper()
	peer, transport := raft.NewInmemTransport("peer")
	transport.Connect(raft.ServerAddress(g.node), g.transport)
	t.Cleanup(transport.DisconnectAll)
	request := &raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(peer), Addr: []byte(peer)},
		Term:      term,
	}
	if err := transport.AppendEntries(raft.ServerID(g.node), raft.ServerAddress(g.node), request, &raft.AppendEntriesResponse{}); err != nil {
		t.Fatal(err)
	}
}
