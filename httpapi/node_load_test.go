package httpapi

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/actors/tracker"
)

// loadOf asks a node for the load of another one, or its own.
func loadOf(t *testing.T, b *bundle, node string) *NodeLoad {
	t.Helper()
	a := b.as(t, operatorToken, "GET", "/cluster/nodes/"+node+"/load")
	if a.StatusCode != http.StatusOK {
		t.Fatalf("load of %s: %d %s", node, a.StatusCode, a.body)
	}
	load := &NodeLoad{}
	if err := json.Unmarshal([]byte(a.body), load); err != nil {
		t.Fatal(err)
	}
	return load
}

func TestNodeLoad_CountsRequests(t *testing.T) {
	t.Parallel()
	b := setupCluster(t, &fakeCluster{name: "node-1"})
	b.engine.set(func(_ *tracker.Request, op *tracker.Op, _ any) (tracker.Reply, error) {
		if op == tracker.ListTokens {
			return tracker.Reply{}, tracker.NotApplied("Not now.")
		}
		return tracker.Reply{Outcome: tracker.Done, Body: []byte("{}")}, nil
	})
	for _, row := range []struct {
		credential, method, path string
		status                   int
	}{
		{operatorToken, "GET", "/workspaces/" + workspaceID + "/issues", 200},
		{operatorToken, "GET", "/workspaces/" + workspaceID + "/tokens", 503},
		{operatorToken, "DELETE", "/workspaces/" + workspaceID + "/issues/" + workspaceID, 200},
		{operatorToken, "GET", "/workspaces", 200},
		{"swy_bad", "GET", "/workspaces/" + strings.Replace(workspaceID, "ef", "ab", 1) + "/issues", 401},
	} {
		if a := b.as(t, row.credential, row.method, row.path); a.StatusCode != row.status {
			t.Fatalf("%s %s: %d %s", row.method, row.path, a.StatusCode, a.body)
		}
	}
	got := loadOf(t, b, "node-1")
	want := RequestLoad{Connections: got.Requests.Connections, Answered: 5, Reads: 4, Writes: 1, Unavailable: 1}
	if got.Requests != want || got.Node != "node-1" || got.StartedAt == "" {
		t.Errorf("%+v, want %+v", got.Requests, want)
	}
	if len(got.Busiest) != 1 || got.Busiest[0] != (BusyWorkspace{OrganizationID: workspaceID, Reads: 2, Writes: 1, SlowestMs: got.Busiest[0].SlowestMs}) {
		t.Errorf("the busiest are %+v", got.Busiest)
	}
}

// The time of the slowest request is from its beginning to its answer.
func TestNodeLoad_SlowestRequest(t *testing.T) {
	t.Parallel()
	b := setupCluster(t, &fakeCluster{name: "node-1"})
	var passed atomic.Int64 // since the request began, beside the real time
	b.now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	for _, takes := range []time.Duration{time.Millisecond, 5 * time.Second, 4 * time.Second} {
		b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
			passed.Store(int64(takes))
			return tracker.Reply{Outcome: tracker.Done, Body: []byte("{}")}, nil
		})
		if a := b.as(t, operatorToken, "GET", "/workspaces/"+workspaceID+"/issues"); a.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		passed.Store(0) // the real time tells when the next one begins
	}
	if got := loadOf(t, b, "node-1").Busiest; len(got) != 1 || got[0].SlowestMs < 5000 || got[0].SlowestMs >= 9000 {
		t.Errorf("the busiest are %+v", got)
	}
}

// A backup asks for one image after another. If these requests made the node look busy, images would be copied
// slowly for the sake of nobody.
func TestRequests_WithoutImagesOfShards(t *testing.T) {
	t.Parallel()
	b := setupCluster(t, &fakeCluster{name: "node-1"})
	if a := b.as(t, operatorToken, "GET", "/workspaces"); a.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	before := b.Requests()
	b.engine.lines = newFakeLines(io.EOF)
	for range 3 {
		if a := b.as(t, operatorToken, "HEAD", "/cluster/backup/shards/1"); a.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
	}
	if n := b.Requests(); before != 1 || n != before {
		t.Errorf("%d requests, and %d after images were asked for, want 1", before, n)
	}
	if got := loadOf(t, b, "node-1").Requests.Reads; got != 5 {
		t.Errorf("%d reads, want 5: a list, three images and this", got)
	}
}

func TestNodeLoad_IsAskedOfTheNode(t *testing.T) {
	t.Parallel()
	a := newAtlas("a")
	join := func(name string) *bundle {
		b := setupCluster(t, &fakeCluster{name: name}, func(c *Config) { c.Placement = seat{a, name} })
		a.listen(t, name, b)
		return b
	}
	one, two := join("node-1"), join("node-2")
	if a := two.as(t, operatorToken, "GET", "/workspaces"); a.StatusCode == 0 {
		t.Fatal("no answer")
	}
	if got := loadOf(t, one, "node-2"); got.Node != "node-2" || got.Requests.Answered != 1 {
		t.Errorf("node-2 by way of node-1: %+v", got)
	}
	if got := loadOf(t, one, "node-1"); got.Node != "node-1" || got.Requests.Forwarded != 1 {
		t.Errorf("node-1: %+v", got)
	}
	for _, row := range []struct {
		name, credential, node string
		status                 int
		says                   string
	}{
		{"a name no node has", operatorToken, "node-9", 404, "node-9"},
		{"a node that does not answer", operatorToken, "node-3", 503, "node-3"},
		{"a member", token, "node-2", 403, "operator"},
		{"a stranger", "swy_bad", "node-1", 401, ""},
		{"a stranger asks another node", "swy_bad", "node-2", 401, ""},
	} {
		if a := one.as(t, row.credential, "GET", "/cluster/nodes/"+row.node+"/load"); a.StatusCode != row.status || !strings.Contains(a.body, row.says) {
			t.Errorf("%s: %d %s", row.name, a.StatusCode, a.body)
		}
	}
}

// A connection that the other node has closed meanwhile costs another try, not an error.
func TestNodeLoad_SurvivesAClosedConnection(t *testing.T) {
	t.Parallel()
	a := newAtlas("a")
	b := setupCluster(t, &fakeCluster{name: "node-1"}, func(c *Config) { c.Placement = seat{a, "node-1"} })
	a.listen(t, "node-1", b)
	other := setupCluster(t, &fakeCluster{name: "node-2"}, func(c *Config) { c.Placement = seat{a, "node-2"} })
	a.listen(t, "node-2", other)
	loadOf(t, b, "node-2")
	for _, later := range []bool{false, true} {
		b.pools.mu.Lock()
		for _, kept := range b.pools.nodes {
			for _, c := range kept {
				_ = c.conn.Close()
				if later { // the connection needs another deadline, and can't have it
					c.deadline = time.Time{}
				}
			}
		}
		b.pools.mu.Unlock()
		loadOf(t, b, "node-2")
	}
}
