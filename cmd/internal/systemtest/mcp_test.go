package systemtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/cmd/internal/node"
	"switchyard/httpapi"
)

func TestMCP_AnAgentWorksWithTheTools(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := inProcess(t, nil)
	base := "http://" + n.HTTPAddr()
	l := newLane(ctx, t, NewClient(base, "", 8), "tools")
	a := l.hire(ctx, t, base)

	if got := a.InitializeResult(); got.ServerInfo.Name != "switchyard" || got.Instructions == "" {
		t.Errorf("the server says %s", str(got))
	}
	var names []string
	for name := range a.outputs {
		names = append(names, name)
	}
	slices.Sort(names)
	if got := strings.Join(names, " "); got != "ask checkpoint heartbeat list_children log read_issue read_session relate release report spawn_child wait" {
		t.Errorf("the tools are %s", got)
	}

	var issue Issue
	a.call(ctx, "read_issue", nil, &issue)
	if issue.ID != l.issue || issue.Title != "Mend the gate" || issue.Status != "in_progress" {
		t.Errorf("the issue is %+v", issue)
	}

	var logged activities
	a.call(ctx, "log", map[string]any{"activities": []any{map[string]any{"message": "Looked."}, map[string]any{"type": "thought", "message": "<Oil> & \u2028?"}}}, &logged)
	if len(logged.Activities) != 2 || logged.Activities[0].Type != "action" || logged.Activities[1].Message != "<Oil> & \u2028?" {
		t.Errorf("logged %+v", logged)
	}

	// A question: its answer wakes the waiting agent.
	var asked activities
	a.call(ctx, "ask", map[string]any{"question": "Oil or grease?"}, &asked)
	answered := make(chan error, 1)
	go func() {
		awaitMetric(ctx, t, "http://"+n.MetricsAddr(), "switchyard_waiting_requests 1")
		answered <- l.admin.Decode(ctx, "POST", l.path+"/reply", map[string]string{"message": "Grease."}, http.StatusOK, nil)
	}()
	var read activities
	began := time.Now()
	a.call(ctx, "read_session", map[string]any{"since": asked.Activities[0].ID, "wait": 30}, &read)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 20*time.Second || len(read.Activities) != 1 || read.Activities[0].Type != "response" || read.Activities[0].Message != "Grease." {
		t.Errorf("after %v: %+v", took, read)
	}

	var spawned struct {
		Session struct{ ID, Status string }
		Issue   Issue
	}
	a.call(ctx, "spawn_child", map[string]any{"title": "Buy grease", "description": "A tin."}, &spawned)
	var children struct {
		Sessions []struct{ ID, Label, Status string }
	}
	a.call(ctx, "list_children", nil, &children)
	if len(children.Sessions) != 1 || children.Sessions[0].ID != spawned.Session.ID || children.Sessions[0].Label != "Buy grease" || children.Sessions[0].Status != "created" {
		t.Errorf("the children are %+v, spawned was %+v", children, spawned)
	}

	var related struct {
		Relation struct{ Type, IssueID, Title string }
	}
	a.call(ctx, "relate", map[string]any{"type": "blocked_by", "issueId": spawned.Issue.ID}, &related)
	a.call(ctx, "relate", map[string]any{"type": "blocked_by", "issueId": spawned.Issue.ID}, &related)
	var shown struct {
		ID        string
		Relations []struct{ Type, IssueID, Title string }
	}
	a.call(ctx, "read_issue", nil, &shown)
	if r := related.Relation; shown.ID != l.issue || len(shown.Relations) != 1 || shown.Relations[0] != r || r.Type != "blocked_by" || r.IssueID != spawned.Issue.ID || r.Title != "Buy grease" {
		t.Errorf("related %+v, shown %+v", related, shown)
	}

	var session struct{ Status, Result string }
	a.call(ctx, "report", map[string]any{"prUrl": "https://example.com/1", "prState": "open"}, &session)
	if session.Status != "running" {
		t.Errorf("after a report that ends nothing: %+v", session)
	}
	final := map[string]any{"status": "completed", "result": "No squeak."}
	a.call(ctx, "report", final, &session)
	a.call(ctx, "report", final, &session)
	if session.Status != "completed" || session.Result != "No squeak." {
		t.Errorf("at the end: %+v", session)
	}
	if e := a.fail(ctx, "report", map[string]any{"status": "failed"}); e.Code != "CONFLICT" {
		t.Errorf("another final report: %+v", e)
	}
	if _, err := a.CallTool(ctx, &mcp.CallToolParams{Name: "log", Arguments: map[string]any{"message": "late"}}); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("after the end: %v", err)
	}

	// The tools have the same effects as the paths.
	var events struct {
		Status     string
		Activities []struct{ Type string }
	}
	if err := l.admin.Decode(ctx, "POST", l.path+"/poll", nil, http.StatusOK, &events); err != nil {
		t.Fatal(err)
	}
	if events.Status != "completed" || len(events.Activities) != 4 {
		t.Errorf("the session shows %+v", events)
	}
}

// TestMCP_GivesTheSessionUp has agents that keep a checkpoint, wait for conditions and give the
// session back with the tools. The next claim brings what they left.
func TestMCP_GivesTheSessionUp(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := inProcess(t, nil)
	base := "http://" + n.HTTPAddr()
	l := newLane(ctx, t, NewClient(base, "", 8), "gives-up")
	if err := l.admin.Decode(ctx, "POST", "/workspaces/"+l.workspace+"/issues/"+l.issue+"/dispatch", map[string]string{"agentId": "smith"}, http.StatusCreated, nil); err != nil {
		t.Fatal(err)
	}
	type claim struct {
		Session     struct{ ID string }
		LaneToken   string
		Attempt     int
		Checkpoint  json.RawMessage
		LastAttempt *struct{ End string }
		WokenBy     []struct{ Condition json.RawMessage }
	}
	claimed := func() (claim, *agent) {
		var got struct{ Sessions []claim }
		if err := l.admin.Decode(ctx, "POST", "/workspaces/"+l.workspace+"/agent/sessions/claim", map[string]string{"agentId": "smith"}, http.StatusOK, &got); err != nil || len(got.Sessions) != 1 {
			t.Fatalf("claimed %+v, %v", got, err)
		}
		one := got.Sessions[0]
		l.session, l.token = one.Session.ID, one.LaneToken
		l.path = "/workspaces/" + l.workspace + "/agent/sessions/" + l.session
		return one, l.hire(ctx, t, base)
	}
	over := func(a *agent) {
		t.Helper()
		if _, err := a.CallTool(ctx, &mcp.CallToolParams{Name: "log", Arguments: map[string]any{"message": "late"}}); err == nil || !strings.Contains(err.Error(), "Conflict") {
			t.Errorf("after the session was given up: %v", err)
		}
	}

	_, a := claimed()
	a.call(ctx, "log", map[string]any{
		"plan":  []any{map[string]any{"id": "1", "title": "Oil it", "status": "in_progress"}},
		"usage": map[string]any{"inputTokens": 3, "costMicros": 7},
	}, nil)
	a.call(ctx, "checkpoint", map[string]any{"value": map[string]any{"step": 1}}, nil)
	for _, wrong := range []map[string]any{{}, {"all": []any{}}, {"any": []any{map[string]any{"session": l.session}}}} {
		if e := a.fail(ctx, "wait", wrong); e.Code != "BAD_REQUEST" {
			t.Errorf("wait %s: %+v", str(wrong), e)
		}
	}
	var session struct {
		Status, FailureReason string
		Plan                  []struct{ Title string }
		Usage                 struct{ InputTokens, CostMicros int }
	}
	a.call(ctx, "wait", map[string]any{"any": []any{map[string]any{"issue": l.issue}, map[string]any{"reply": true}}}, &session)
	if session.Status != "waiting" {
		t.Errorf("the session that waits is %+v", session)
	}
	over(a)
	if err := l.admin.Decode(ctx, "POST", l.path+"/reply", map[string]string{"message": "Grease."}, http.StatusOK, nil); err != nil {
		t.Fatal(err)
	}

	second, a := claimed()
	if second.Attempt != 1 || string(second.Checkpoint) != `{"step":1}` || second.LastAttempt == nil || second.LastAttempt.End != "waited" || len(second.WokenBy) != 1 || string(second.WokenBy[0].Condition) != `{"reply":true}` {
		t.Errorf("the claim after the wait is %+v", second)
	}
	if e := a.fail(ctx, "release", map[string]any{"reason": "", "notBefore": "soon"}); e.Code != "BAD_REQUEST" || !strings.Contains(string(e.Details), `"path":"reason"`) || !strings.Contains(string(e.Details), `"path":"notBefore"`) {
		t.Errorf("a wrong release: %+v", e)
	}
	a.call(ctx, "release", map[string]any{"reason": "No quota", "retryAfterSeconds": 0, "countAttempt": true}, &session)
	if session.Status != "created" {
		t.Errorf("the session that was released is %+v", session)
	}
	over(a)

	third, a := claimed()
	if third.Attempt != 2 || third.LastAttempt == nil || third.LastAttempt.End != "released" {
		t.Errorf("the claim after the release is %+v", third)
	}
	a.call(ctx, "report", map[string]any{"status": "failed", "failureReason": "no_oil", "retryable": false}, nil)
	if err := l.admin.Decode(ctx, "GET", l.path, nil, http.StatusOK, &session); err != nil {
		t.Fatal(err)
	}
	if session.Status != "failed" || session.FailureReason != "no_oil" || len(session.Plan) != 1 || session.Plan[0].Title != "Oil it" || session.Usage.InputTokens != 3 || session.Usage.CostMicros != 7 {
		t.Errorf("at the end: %+v", session)
	}
}

func TestMCP_ToolsRefuseWhatThePathsRefuse(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := inProcess(t, func(c *node.Config) { c.MaxActiveChildren = 2 })
	base := "http://" + n.HTTPAddr()
	l := newLane(ctx, t, NewClient(base, "", 8), "refusals")
	a := l.hire(ctx, t, base)
	for _, row := range []struct {
		tool      string
		arguments map[string]any
		path      string
	}{
		{"read_issue", map[string]any{"id": l.issue}, "id"},
		{"log", map[string]any{}, "message"},
		{"log", map[string]any{"message": strings.Repeat("x", 32769)}, "message"},
		{"log", map[string]any{"message": "x", "payload": strings.Repeat("x", 70_000)}, "payload"},
		{"log", map[string]any{"message": "a\x00b"}, "message"},
		{"log", map[string]any{"activities": []any{}}, "activities"},
		{"log", map[string]any{"activities": []any{map[string]any{}}}, "activities[0].message"},
		{"ask", map[string]any{"question": "x", "payload": strings.Repeat("x", 70_000)}, "payload"},
		{"report", map[string]any{"status": "done"}, "status"},
		{"report", map[string]any{"result": 5}, "result"},
		{"spawn_child", map[string]any{"title": ""}, "title"},
		{"relate", map[string]any{"type": "duplicates", "issueId": l.issue}, "type"},
		{"relate", map[string]any{"type": "blocks", "issueId": l.issue}, "issueId"},
		{"relate", map[string]any{"type": "blocks", "issueId": "no such issue"}, "issueId"},
		{"relate", map[string]any{"type": "blocks"}, "issueId"},
		{"list_children", map[string]any{"limit": 101}, "limit"},
		{"list_children", map[string]any{"cursor": "x"}, "cursor"},
		{"read_session", map[string]any{"wait": "long"}, "wait"},
	} {
		e := a.fail(ctx, row.tool, row.arguments)
		if e.Code != "BAD_REQUEST" || !strings.Contains(string(e.Details), `"path":"`+row.path+`"`) {
			t.Errorf("%s %.60s: %s %s", row.tool, str(row.arguments), e.Code, e.Details)
		}
	}
	for range 2 {
		a.call(ctx, "spawn_child", map[string]any{"title": "Child"}, nil)
	}
	if e := a.fail(ctx, "spawn_child", map[string]any{"title": "One too many"}); e.Code != "TOO_MANY_REQUESTS" {
		t.Errorf("one child too many: %+v", e)
	}
	if _, err := a.CallTool(ctx, &mcp.CallToolParams{Name: "delete_everything"}); err == nil || !strings.Contains(err.Error(), "delete_everything") {
		t.Errorf("a tool there is not: %v", err)
	}
	if _, err := a.ListResources(ctx, nil); err == nil {
		t.Error("there are resources")
	}
	// A deleted issue takes its sessions with it.
	if err := l.admin.Decode(ctx, "DELETE", "/workspaces/"+l.workspace+"/issues/"+l.issue, nil, http.StatusNoContent, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := a.CallTool(ctx, &mcp.CallToolParams{Name: "read_issue"}); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("after the issue's deletion: %v", err)
	}
}

func TestMCP_OnlyTheSessionsOwnTokenConnects(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	n := inProcess(t, nil)
	base := "http://" + n.HTTPAddr()
	l := newLane(ctx, t, NewClient(base, "", 8), "own")
	stranger := newLane(ctx, t, NewClient(base, "", 8), "stranger")
	first := *l
	l.register(ctx, t)
	if err := l.admin.Decode(ctx, "POST", first.path+"/cancel", nil, http.StatusOK, nil); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, token, says string
		lane              *lane
	}{
		{"none", "", "Unauthorized", l},
		{"no token", "swl_x", "Unauthorized", l},
		{"of an ended session", first.token, "Unauthorized", &first},
		{"of another session", first.token, "Forbidden", l},
		{"of another workspace", stranger.token, "Not Found", l},
		{"of another workspace's admin", stranger.admin.Token, "Not Found", l},
	} {
		if cs, err := row.lane.connect(ctx, base, row.token); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("a token %s: %v", row.name, err)
			if err == nil {
				_ = cs.Close()
			}
		}
	}
	for _, token := range []string{l.token, l.admin.Token, rootToken} {
		cs, err := l.connect(ctx, base, token)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "read_issue"}); err != nil {
			t.Error(err)
		}
		_ = cs.Close()
	}
}

func TestMCP_MessagesCountAgainstTheTokensRate(t *testing.T) {
	t.Parallel()
	n := inProcess(t, func(c *node.Config) { c.Rate = httpapi.Rate{Requests: 3, Per: time.Hour} })
	l := newLane(t.Context(), t, NewClient("http://"+n.HTTPAddr(), "", 1), "rated-tools")
	c := &Client{URL: l.admin.URL, Token: l.token, HTTP: l.admin.HTTP}
	ping := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "ping"}
	for _, left := range []string{"2", "1", "0"} {
		answer, err := c.Do(t.Context(), "POST", l.path+"/mcp", ping)
		if err != nil || answer.Status != http.StatusOK || answer.Header.Get("RateLimit-Remaining") != left {
			t.Fatalf("with %s left: %d %v, %v", left, answer.Status, answer.Header, err)
		}
	}
	answer, err := c.Do(t.Context(), "POST", l.path+"/mcp", ping)
	if err != nil || answer.Status != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" {
		t.Errorf("past the rate: %d %v, %v", answer.Status, answer.Header, err)
	}
}

// TestMCP_AnyNodeAnswersAndTheSessionOutlivesItsOwner has an agent whose every message
// may go to another node, one of which dies.
func TestMCP_AnyNodeAnswersAndTheSessionOutlivesItsOwner(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "4", "--request-timeout", "6s")
	l := newLane(ctx, t, f.members[0].Client(""), "outlives")
	owner, err := f.members[0].Owner(ctx, l.workspace)
	if err != nil {
		t.Fatal(err)
	}
	agents := map[string]*agent{}
	for _, m := range f.members {
		agents[m.Name] = l.hire(ctx, t, m.URL)
	}
	var asked activities
	for _, m := range f.members {
		var issue Issue
		agents[m.Name].call(ctx, "read_issue", nil, &issue)
		agents[m.Name].call(ctx, "log", map[string]any{"message": "by " + m.Name}, nil)
		agents[m.Name].call(ctx, "ask", map[string]any{"question": "Still there?"}, &asked)
		if issue.ID != l.issue {
			t.Errorf("%s reads %+v", m.Name, issue)
		}
	}
	// An agent waits at a node that has to ask the owner, for longer than any other
	// request may take.
	var other *Member
	for _, m := range f.members {
		if m.Name != owner {
			other = m
		}
	}
	began := time.Now()
	var read activities
	agents[other.Name].call(ctx, "read_session", map[string]any{"since": asked.Activities[0].ID, "wait": 7}, &read)
	if took := time.Since(began); took < 6500*time.Millisecond || took > 25*time.Second || len(read.Activities) != 0 {
		t.Errorf("nothing came, and after %v it was %+v", took, read)
	}
	replied := make(chan error, 1)
	go func() {
		c := *l.admin
		c.URL = other.URL
		replied <- c.Decode(ctx, "POST", l.path+"/reply", map[string]string{"message": "Yes."}, http.StatusOK, nil)
	}()
	agents[other.Name].call(ctx, "read_session", map[string]any{"since": asked.Activities[0].ID, "wait": 30}, &read)
	if err := <-replied; err != nil || len(read.Activities) != 1 || read.Activities[0].Message != "Yes." {
		t.Errorf("%v, %+v", err, read)
	}
	for _, m := range f.members {
		if m.Name == owner {
			m.Kill()
		}
	}
	// The protocol's connection was made before, and knows nothing of owners. A read is
	// answered without the client's trying again.
	agents[other.Name].call(ctx, "read_session", nil, &read)
	agents[other.Name].call(ctx, "report", map[string]any{"status": "completed"}, nil)
}
