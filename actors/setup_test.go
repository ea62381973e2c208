package actors

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// testEngine is an engine over a real store and a local replicator.
type testEngine struct {
	t      testing.TB
	store  *storage.Store
	local  *localReplicator
	engine *Engine
	log    *logs
}

// logs collects log output.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

const testShards = 4

func setup(t testing.TB, adjust ...func(*Config)) *testEngine {
	t.Helper()
	b := &testEngine{t: t, log: &logs{}}
	var err error
	if b.store, err = storage.Open(storage.Config{Dir: "data", FS: vfs.NewMem(), CacheBytes: 1 << 20, RecordBytes: 4 << 20, RecordTables: tracker.RecordTables(), ListedTables: tracker.ListedTables(), Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	b.local = newLocal(b.store, testShards)
	b.start(adjust...)
	t.Cleanup(b.stop)
	return b
}

// start starts an engine over the store, as the owner of every shard.
func (b *testEngine) start(adjust ...func(*Config)) {
	b.t.Helper()
	cfg := Config{Store: b.store, Replicator: b.local, Logger: slog.New(slog.NewTextHandler(b.log, nil))}
	for _, f := range adjust {
		f(&cfg)
	}
	var err error
	if b.engine, err = NewEngine(cfg); err != nil {
		b.t.Fatal(err)
	}
	b.local.gain(b.t, b.engine)
}

func (b *testEngine) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := b.engine.Close(ctx); err != nil {
		b.t.Error(err)
	} else if n := b.engine.changes.used.Load(); n != 0 {
		b.t.Errorf("%d bytes of memory for changes are taken after the end", n)
	} else if n := b.engine.Stats().Deliveries; n.Bytes != 0 || n.Waiting != 0 {
		b.t.Errorf("%d bytes of memory for deliveries are taken after the end, and %d workspaces wait", n.Bytes, n.Waiting)
	}
	b.local.stop()
	if err := b.store.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		b.t.Error(err)
	}
}

// workspaceNumber returns the n-th test workspace's id.
func workspaceNumber(n int) storage.ID {
	id := storage.ID{0: 1}
	binary.BigEndian.PutUint64(id[8:], uint64(n)<<16|uint64(n))
	return id
}

func request(workspace storage.ID) *tracker.Request {
	req := tracker.ServiceRequest("test", workspace)
	req.Deadline = time.Now().Add(10 * time.Second)
	return req
}

func (b *testEngine) do(workspace storage.ID, op *tracker.Op, in any) (string, error) {
	reply, err := b.engine.Do(request(workspace), op, in)
	return string(reply.Body), err
}

// count adds one to the workspace's count and returns it.
func (b *testEngine) count(workspace storage.ID) (int, error) {
	body, err := b.do(workspace, countUp, &countIn{})
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(body)
}

// mustCount adds one to the count and checks the result.
func (b *testEngine) mustCount(workspace storage.ID, want int) {
	b.t.Helper()
	if n, err := b.count(workspace); err != nil || n != want {
		b.t.Fatalf("counted to %d, %v; want %d", n, err, want)
	}
}

// stored reads the workspace's count.
func (b *testEngine) stored(workspace storage.ID) string {
	b.t.Helper()
	body, err := b.do(workspace, readCount, &tracker.None{})
	if err != nil {
		b.t.Fatal(err)
	}
	return body
}

func wantOutcome(t testing.TB, err error, want string) {
	t.Helper()
	if outcome(err) != want {
		t.Fatalf("error %v, want %s", err, want)
	}
}

func wantCode(t testing.TB, err error, want tracker.Code) {
	t.Helper()
	var e *tracker.Error
	if !errors.As(err, &e) || e.Code != want {
		t.Fatalf("error %v, want %s", err, want)
	}
}

// pass advances the time of a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }
