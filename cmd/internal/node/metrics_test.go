package node

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// A node may wait long for the others of its cluster, and is watched meanwhile.
func TestMetrics_OfANodeThatHasNotJoined(t *testing.T) {
	t.Parallel()
	c := sane()
	c.Data, c.Peer, c.Gossip, c.Metrics = t.TempDir(), "", "", "127.0.0.1:0"
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	later := []string{"\nswitchyard_shard_leader{", "\nswitchyard_format ", "\nswitchyard_search_tail_bytes{"}
	status, body := ask(t, n, "/metrics")
	if status != http.StatusOK || !strings.Contains(body, "\nswitchyard_memory_budget_bytes ") {
		t.Errorf("before the node has joined: %d: %.300s", status, body)
	}
	for _, name := range later {
		if strings.Contains(body, name) {
			t.Errorf("before the node has joined there is %q", name)
		}
	}
	if err := n.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	status, body = ask(t, n, "/metrics")
	for _, name := range later {
		if status != http.StatusOK || !strings.Contains(body, name) {
			t.Errorf("afterwards there is no %q: %d", name, status)
		}
	}
	// The shards of a new node have their first entries.
	if strings.Contains(body, "\nswitchyard_log_write_seconds_count 0\n") || !strings.Contains(body, "\nswitchyard_log_write_seconds_bucket{") {
		t.Error("no write to a log is counted")
	}
}
