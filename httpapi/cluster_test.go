package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/cluster/topology"
)

// rootEngine admits the operator alone, and runs nothing.
type rootEngine struct{ fakeEngine }

const operatorToken = "the-operators-token"

func (e *rootEngine) Admit(req *tracker.Request, _ *tracker.Op) error {
	switch req.Credential {
	case operatorToken:
		req.Caller.Root, req.Caller.Token = true, "root"
		return nil
	case token:
		return tracker.Forbidden("This is for the operator of the service.", "Use the root token.")
	}
	return tracker.Unauthorized()
}

// fakeCluster has two nodes, and notes what it is asked to do.
type fakeCluster struct {
	mu   sync.Mutex
	done []string
	fail error
	hang bool
	due  time.Time // of the last change
	name string    // of the node; node-2 and node-3 are members too
}

func (c *fakeCluster) Load(_ context.Context, node string) (NodeLoad, error) {
	if node != c.name {
		return NodeLoad{}, &tracker.Error{Code: tracker.CodeNotFound, Message: "No node is called " + node + ".", Hint: "Look."}
	}
	return NodeLoad{Node: node, StuckShards: []int{}, FailedShards: []int{}}, c.fail
}

func (c *fakeCluster) Elsewhere(node string) bool {
	return node != c.name && slices.Contains([]string{"node-1", "node-2", "node-3"}, node)
}

func (c *fakeCluster) Topology(context.Context) (Topology, error) {
	return Topology{Topology: topology.Topology{
		ClusterID: "c1", Format: 2,
		Nodes: []NodeStatus{{Name: "node-1", State: "alive", NewestFormat: 2, Leads: 1}, {Name: "node-2", State: "dead", NewestFormat: 1}},
		Shards: []ShardStatus{
			{ID: 0, Leader: "node-1", Term: 3, Voters: []string{"node-1"}, NonVoters: []string{}, Applied: 17},
			{ID: 1, Voters: []string{}, NonVoters: []string{}},
		},
	}}, c.fail
}

func (c *fakeCluster) WorkspaceOwner(_ context.Context, workspace [16]byte) (WorkspaceOwner, error) {
	return WorkspaceOwner{Shard: int(workspace[15]), Owner: "node-2"}, c.fail
}

func (c *fakeCluster) Drain(ctx context.Context, node string) (DrainStart, error) {
	return DrainStart{Node: node, Moves: DrainsReplicas}, c.change(ctx, "drain "+node)
}

func (c *fakeCluster) Undrain(ctx context.Context, node string) error {
	return c.change(ctx, "undrain "+node)
}

func (c *fakeCluster) Remove(ctx context.Context, node string) error {
	return c.change(ctx, "remove "+node)
}

func (c *fakeCluster) change(ctx context.Context, what string) error {
	c.mu.Lock()
	c.due, _ = ctx.Deadline()
	c.mu.Unlock()
	if c.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail == nil {
		c.done = append(c.done, what)
	}
	return c.fail
}

func (c *fakeCluster) changes() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.done)
}

func setupCluster(t *testing.T, c *fakeCluster, adjust ...func(*Config)) *bundle {
	t.Helper()
	engine, log := &rootEngine{}, &logs{}
	cfg := unhurried(Config{Engine: engine, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if c != nil {
		cfg.Cluster = c
	}
	for _, f := range adjust {
		f(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := serve(t, s)
	b.engine, b.log = &engine.fakeEngine, log
	return b
}

// as sends a request with a credential of the caller's choice.
func (b *bundle) as(t *testing.T, credential, method, path string, headers ...string) *answer {
	t.Helper()
	lines := append([]string{method + " " + path + " HTTP/1.1", "Host: test", "Authorization: Bearer " + credential}, headers...)
	return b.raw(t, 1, strings.Join(lines, "\r\n")+"\r\n\r\n")[0]
}

func TestCluster_AnswersTheOperator(t *testing.T) {
	t.Parallel()
	c := &fakeCluster{}
	b := setupCluster(t, c)
	for _, row := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/cluster", 200, `{"clusterId":"c1","format":2,"nodes":[` +
			`{"name":"node-1","state":"alive","zone":"","http":"","peer":"","gossip":"","version":"","newestFormat":2,"leads":1,"replicas":0},` +
			`{"name":"node-2","state":"dead","zone":"","http":"","peer":"","gossip":"","version":"","newestFormat":1,"leads":0,"replicas":0}],` +
			`"shards":[{"id":0,"leader":"node-1","term":3,"voters":["node-1"],"nonVoters":[],"applied":17,"lag":0},` +
			`{"id":1,"leader":"","term":0,"voters":[],"nonVoters":[],"applied":0,"lag":0}]}`},
		{"GET", "/cluster/workspaces/" + workspaceID, 200, `{"shard":239,"owner":"node-2"}`},
		{"POST", "/cluster/nodes/node-2/drain", 200, `{"node":"node-2","moves":"replicas"}`},
		{"POST", "/cluster/nodes/node-2/undrain", 204, ""},
		{"DELETE", "/cluster/nodes/node%2F2", 204, ""},
	} {
		a := b.as(t, operatorToken, row.method, row.path, "X-Request-Id: mine")
		if a.StatusCode != row.status || a.body != row.body || a.Header.Get("X-Request-Id") != "mine" {
			t.Errorf("%s %s: %d %q", row.method, row.path, a.StatusCode, a.body)
		}
	}
	if got := c.changes(); !slices.Equal(got, []string{"drain node-2", "undrain node-2", "remove node/2"}) {
		t.Errorf("the cluster was asked to %q", got)
	}
	if _, _, calls := b.engine.seen(); calls != 3 { // for the audit
		t.Errorf("the engine was given %d operations, want one for each act", calls)
	}
}

func TestCluster_IsTheOperatorsAlone(t *testing.T) {
	t.Parallel()
	c := &fakeCluster{}
	b := setupCluster(t, c)
	for _, request := range []string{
		"GET /cluster", "GET /cluster/workspaces/" + workspaceID, "POST /cluster/nodes/node-2/drain",
		"POST /cluster/nodes/node-2/undrain", "DELETE /cluster/nodes/node-2",
	} {
		method, path, _ := strings.Cut(request, " ")
		for credential, status := range map[string]int{token: 403, "nobody": 401} {
			if a := b.as(t, credential, method, path); a.StatusCode != status {
				t.Errorf("%s with %q: %d", request, credential, a.StatusCode)
			}
		}
	}
	if got := c.changes(); got != nil {
		t.Errorf("strangers made it %q", got)
	}
}

func TestCluster_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	c := &fakeCluster{}
	b := setupCluster(t, c)
	for _, row := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/cluster/workspaces/none", 404},
		{"GET", "/cluster/nodes", 404},
		{"GET", "/cluster/", 404},
		{"DELETE", "/cluster/nodes/", 404},
		{"POST", "/cluster", 405},
		{"GET", "/cluster/nodes/node-2/drain", 405},
		{"POST", "/cluster/nodes/node-2", 405},
		{"POST", "/cluster/nodes/" + strings.Repeat("n", 256) + "/drain", 400},
	} {
		if a := b.as(t, operatorToken, row.method, row.path); a.StatusCode != row.status {
			t.Errorf("%s %s: %d %s", row.method, row.path, a.StatusCode, a.body)
		}
	}
	c.fail = tracker.Conflict("It is the last node.", "Add one.")
	if a := b.as(t, operatorToken, "DELETE", "/cluster/nodes/node-1"); a.StatusCode != 409 || a.failure.Hint != "Add one." {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	c.fail = tracker.NotFound("node")
	if a := b.as(t, operatorToken, "POST", "/cluster/nodes/node-9/drain"); a.StatusCode != 404 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if got := c.changes(); got != nil {
		t.Errorf("the cluster was made to %q", got)
	}
	if _, _, calls := b.engine.seen(); calls != 0 {
		t.Errorf("%d refusals are in the audit", calls)
	}
}

// The answer comes by the deadline, also if the cluster hangs. The audit then says that nobody knows the outcome of
// the act, as if the cluster had said so.
func TestCluster_AnswersByTheDeadline(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*fakeCluster{"hangs": {hang: true}, "does not know": {fail: tracker.OutcomeUnknown("It was not confirmed.")}} {
		b := setupCluster(t, c, func(c *Config) { c.RequestTimeout = 2 * time.Second })
		left := make(chan time.Duration, 2)
		acts := make(chan tracker.Act, 2)
		b.engine.set(func(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			left <- req.Deadline.Sub(c.due)
			acts <- *in.(*tracker.Act)
			return tracker.Reply{Outcome: tracker.NoContent}, nil
		})
		a := b.as(t, operatorToken, "POST", "/cluster/nodes/node-1/drain")
		details, _ := json.Marshal(a.failure.Details)
		if a.StatusCode != 503 || string(details) != `{"outcome":"unknown"}` {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
		if hint := a.failure.Hint; strings.Contains(hint, "Idempotency-Key") || !strings.Contains(hint, "may have been made") {
			t.Errorf("%s: the hint is %q", name, hint) // acts on nodes take no key
		}
		if len(acts) != 1 {
			t.Fatalf("%s: %d entries in the audit, want 1", name, len(acts))
		}
		if act := <-acts; act.Kind != "node" || act.Act != "drained" || act.Target != "node-1" || string(act.Changes["outcome"].To) != `"unknown"` {
			t.Errorf("%s: the audit says %+v", name, act)
		}
		if got := <-left; got <= 0 {
			t.Errorf("%s: there is no time for the entry", name)
		}
	}
}

// A repeat is carried out again, so a key changes nothing.
func TestCluster_KnowsNoIdempotencyKey(t *testing.T) {
	t.Parallel()
	c := &fakeCluster{}
	b := setupCluster(t, c)
	for range 2 {
		a := b.as(t, operatorToken, "POST", "/cluster/nodes/node-1/drain", "Idempotency-Key: once")
		if a.StatusCode != 200 || a.Header.Get("Idempotency-Replayed") != "" {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	}
	if got := c.changes(); len(got) != 2 {
		t.Errorf("carried out %d times", len(got))
	}
}

func TestCluster_IsDescribed(t *testing.T) {
	t.Parallel()
	described := string(descriptionOf(t, setupCluster(t, &fakeCluster{}).Server))
	var d struct {
		Paths map[string]map[string]struct {
			Description string
			Responses   map[string]json.RawMessage
			Parameters  []struct{ Name string }
		}
	}
	if err := json.Unmarshal([]byte(described), &d); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		method, path string
		statuses     []string
	}{
		{"get", "/cluster", []string{"200", "400", "401", "403", "429", "500", "503"}},
		{"get", "/cluster/workspaces/{organizationId}", []string{"200", "404"}},
		{"post", "/cluster/nodes/{name}/drain", []string{"200", "401", "403", "404", "409", "503"}},
		{"post", "/cluster/nodes/{name}/undrain", []string{"204", "404", "503"}},
		{"delete", "/cluster/nodes/{name}", []string{"204", "404", "409", "503"}},
	} {
		op, ok := d.Paths[row.path][row.method]
		if !ok || op.Description != "Needs the operator's token." {
			t.Errorf("%s %s: %+v", row.method, row.path, op)
		}
		for _, status := range row.statuses {
			if op.Responses[status] == nil {
				t.Errorf("%s %s: %s is not described", row.method, row.path, status)
			}
		}
		for _, p := range op.Parameters {
			if p.Name == idempotencyKey {
				t.Errorf("%s %s takes an Idempotency-Key", row.method, row.path)
			}
		}
	}
	for _, part := range []string{`"enum":["alive","suspect","dead","draining","left"]`, `"enum":["replicas","leaderships"]`} {
		if !strings.Contains(described, part) {
			t.Errorf("the description lacks %s", part)
		}
	}
}

func TestCluster_LeftOutWhereThereIsNone(t *testing.T) {
	t.Parallel()
	b := setupCluster(t, nil)
	if a := b.as(t, operatorToken, "GET", "/cluster"); a.StatusCode != http.StatusNotFound {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}
