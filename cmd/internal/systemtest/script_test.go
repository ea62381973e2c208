package systemtest

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/cluster"
	"switchyard/cmd/internal/node"
	"switchyard/httpapi/httpscript"
	"switchyard/storage"
)

// rootToken is the operator's in tests.
const rootToken = "root-token-of-the-system-tests"

// inProcess starts a whole node in this process: its real storage on disk, its
// real replication, its real listeners.
func inProcess(t *testing.T, change func(*node.Config)) *node.Node {
	t.Helper()
	n, _ := stoppable(t, change)
	return n
}

// stoppable is inProcess for a test that ends the node itself, with stop. However it
// ends, what it has stored is proved as `switchyard verify` does.
func stoppable(t *testing.T, change func(*node.Config)) (n *node.Node, stop func()) {
	t.Helper()
	cfg := node.Config{
		Data: t.TempDir(), HTTP: "127.0.0.1:0", Metrics: "127.0.0.1:0", Shards: 4, RootToken: rootToken,
		OpenOnboarding: true, RequestTimeout: 10 * time.Second, Version: "test",
		Logger: slog.New(slog.NewTextHandler(LogSecrets.Log(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&cfg)
	}
	n, err := node.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := n.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
			return
		}
		prove(ctx, t, cfg.Data)
	})
	t.Cleanup(stop)
	if err := n.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n, stop
}

// prove verifies what a stopped node has stored.
func prove(ctx context.Context, t *testing.T, data string) {
	t.Helper()
	store, err := storage.Open(storage.Config{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	report, err := storage.Verify(ctx, store.State(), cluster.Schema(), tracker.Schema())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range report.Problems {
		t.Errorf("verify: %v", p)
	}
}

// TestScripts runs every HTTP script against a whole node.
func TestScripts(t *testing.T) {
	t.Parallel()
	n := inProcess(t, func(c *node.Config) { c.WebhooksPerHost = tracker.DefaultWebhooksPerHost })
	base := "http://" + n.HTTPAddr()
	files, err := filepath.Glob("../../../httpapi/testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			script, err := httpscript.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := script.Run(t.Context(), httpscript.Target{BaseURL: base, Vars: map[string]string{"root": rootToken}}); err != nil {
				t.Error(err)
			}
		})
	}
}
