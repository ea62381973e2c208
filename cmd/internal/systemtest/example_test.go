package systemtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestExampleAgent runs the agent of examples/agent as its reader would, against a
// real node: three of them work a queue off; one dies and one is stopped in the
// middle of their work, and what they were at is done by the others.
func TestExampleAgent(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	data := t.TempDir()
	node, err := Launch(ctx, binary(t), data, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { node.Kill() }()
	y := newExampleService(ctx, t, node)

	// The agents that will not finish run alone at first, so that each has a session.
	doomed, stopped := y.dispatch("Doomed", "urgent", "Take care."), y.dispatch("Stopped", "urgent", "Take care.")
	victim := y.agent("-lease", "10s", "-step", "1h")
	y.await(doomed, "is being worked on", func(s exampleSession) bool { return len(s.Activities) > 0 })
	leaver := y.agent("-lease", "10m", "-step", "1h", "-grace", "1ms")
	y.await(stopped, "is being worked on", func(s exampleSession) bool { return len(s.Activities) > 0 })
	if err := victim.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := leaver.stop(ctx); err != nil {
		t.Fatal(err)
	}

	asking := y.dispatch("Asking", "high", "Please ask first.")
	all := []string{doomed, stopped, asking}
	for i := range 5 {
		all = append(all, y.dispatch(fmt.Sprint("Work ", i), "medium", ""))
	}
	workers := make([]*exampleAgent, 3)
	for i := range workers {
		workers[i] = y.agent("-lease", "10s", "-step", "1ms")
	}
	y.await(asking, "asks", func(s exampleSession) bool { return s.Status == "waiting" })
	y.post("agent/sessions/"+asking+"/reply", map[string]any{"message": "Go ahead."}, nil)
	for _, id := range all {
		s := y.await(id, "is completed", func(s exampleSession) bool { return s.Status == "completed" })
		if !strings.Contains(s.Result, "in 3 steps") || strings.Contains(s.Result, "Go ahead.") != (id == asking) {
			t.Errorf("%s: the result is %q", id, s.Result)
		}
		if again := s.has("The lease ran out in attempt 1 of 3."); again != (id == doomed) {
			t.Errorf("%s: the lease ran out: %t; %v", id, again, s.Activities)
		}
		if s.has("Released: The agent stops before it is done.") != (id == stopped) {
			t.Errorf("%s: the log is %v", id, s.Activities)
		}
	}
	for _, w := range workers {
		if err := w.stop(ctx); err != nil {
			t.Error(err)
		}
	}
	if err := node.Terminate(ctx); err != nil {
		t.Fatal(err)
	}
	if err := Verify(ctx, binary(t), data); err != nil {
		t.Error(err)
	}
}

// TestExampleAgent_PlanFanOutJoin works a plan of dependent issues, made by one request. An agent is
// killed at a step of it, and the next one goes on from its checkpoint; another hands its work to
// children and gets their results.
func TestExampleAgent_PlanFanOutJoin(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	node, err := Launch(ctx, binary(t), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { node.Kill() }()
	y := newExampleService(ctx, t, node)
	item := func(ref, title, instructions, after string) map[string]any {
		m := map[string]any{"ref": ref, "title": title, "dispatch": map[string]any{"instructions": instructions, "whenReady": true}}
		if after != "" {
			m["relations"] = []any{map[string]any{"type": "blocked_by", "ref": after}}
		}
		return m
	}
	var plan struct {
		Issues   []struct{ ID string }
		Sessions []struct{ ID, Status string }
	}
	y.post("issues/bulk", map[string]any{"items": []any{
		item("schema", "Schema", "Be slow.", ""), item("code", "Code", "Split it.", "schema"), item("ship", "Ship", "Go.", "code"),
	}}, &plan)
	if got := plan.Sessions; len(got) != 3 || got[0].Status != "created" || got[1].Status != "waiting" || got[2].Status != "waiting" {
		t.Fatalf("the sessions of the plan are %+v", got)
	}
	closed := func(issue string) {
		t.Helper()
		if err := y.client.Decode(ctx, "PATCH", "/workspaces/"+y.workspace+"/issues/"+issue, map[string]any{"status": "done"}, 200, nil); err != nil {
			t.Fatal(err)
		}
	}
	schema, code, ship := plan.Sessions[0].ID, plan.Sessions[1].ID, plan.Sessions[2].ID

	victim := y.agent("-lease", "10s", "-step", "300ms")
	// The checkpoint of the first step is stored when the second is logged.
	y.await(schema, "has done two steps", func(s exampleSession) bool { return s.has("Step 2 of 3.") })
	if err := victim.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		y.agent("-lease", "10s", "-step", "1ms")
	}
	first := y.await(schema, "is completed", func(s exampleSession) bool { return s.Status == "completed" })
	// The second claimer begins with the step that the checkpoint lacks: at most the second is done twice.
	if began := first.count("To do: Schema"); began != 1 {
		t.Errorf("the work was begun %d times: %v", began, first.Activities)
	}
	if twice := first.count("Step 1 of 3.") + first.count("Step 2 of 3.") + first.count("Step 3 of 3."); twice > 4 {
		t.Errorf("%d steps were done: %v", twice, first.Activities)
	}
	closed(plan.Issues[0].ID)
	joined := y.await(code, "is completed", func(s exampleSession) bool { return s.Status == "completed" })
	for part := range 3 {
		if want := fmt.Sprintf("Code, part %d: Did", part+1); strings.Count(joined.Result, want) != 1 {
			t.Errorf("the result is %q, want %q in it once", joined.Result, want)
		}
	}
	closed(plan.Issues[1].ID)
	y.await(ship, "is completed", func(s exampleSession) bool { return s.Status == "completed" })
}

// exampleFixture is a workspace with an agent, and the binary that works for it.
type exampleFixture struct {
	t         *testing.T
	ctx       context.Context
	client    *Client
	workspace string
	binary    string
	env       []string
}

func newExampleService(ctx context.Context, t *testing.T, node *Process) *exampleFixture {
	t.Helper()
	y := &exampleFixture{t: t, ctx: ctx, client: NewClient(node.URL, "", 4), binary: filepath.Join(t.TempDir(), "agent")}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", y.binary, "switchyard/examples/agent").CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, out)
	}
	home, err := y.client.Onboard(ctx, "Fleet", "fleet")
	if err != nil {
		t.Fatal(err)
	}
	y.workspace, y.client.Token = home.Workspace.ID, home.Token.Token
	var agent struct{ ID string }
	y.post("agents", map[string]any{"name": "Builder", "provider": "example"}, &agent)
	var token struct{ Token string }
	y.post("tokens", map[string]any{"name": "builder", "actorType": "agent", "agentId": agent.ID, "permissions": "sessions:write"}, &token)
	y.env = append(os.Environ(), "SWITCHYARD_URL="+node.URL, "SWITCHYARD_WORKSPACE="+y.workspace, "SWITCHYARD_TOKEN="+token.Token)
	return y
}

func (y *exampleFixture) post(path string, body, out any) {
	y.t.Helper()
	path = "/workspaces/" + y.workspace + "/" + path
	want := 201
	if strings.HasSuffix(path, "/reply") {
		want = 200
	}
	if err := y.client.Decode(y.ctx, "POST", path, body, want, out); err != nil {
		y.t.Fatal(err)
	}
}

// dispatch makes an issue, dispatches it, and gives the session.
func (y *exampleFixture) dispatch(title, priority, instructions string) string {
	y.t.Helper()
	var issue, session struct{ ID string }
	y.post("issues", map[string]any{"title": title, "priority": priority}, &issue)
	y.post("issues/"+issue.ID+"/dispatch", map[string]any{"instructions": instructions}, &session)
	return session.ID
}

// exampleSession is what the test looks at of a session.
type exampleSession struct {
	Status     string
	Result     string
	Activities []struct{ Message string }
}

func (s *exampleSession) has(text string) bool { return s.count(text) > 0 }

func (s *exampleSession) count(text string) (n int) {
	for _, a := range s.Activities {
		if strings.Contains(a.Message, text) {
			n++
		}
	}
	return n
}

// await polls a session until it is as wanted.
func (y *exampleFixture) await(id, what string, wanted func(exampleSession) bool) exampleSession {
	y.t.Helper()
	// The first look comes back at once; later ones wait for a change, but not long:
	// one between two looks would be waited for in vain.
	path := "/workspaces/" + y.workspace + "/agent/sessions/" + id + "/poll"
	for wait := ""; ; wait = "?wait=1" {
		var s exampleSession
		if err := y.client.Decode(y.ctx, "POST", path+wait, nil, 200, &s); err != nil {
			y.t.Fatalf("session %s: waiting until it %s: %v", id, what, err)
		}
		if wanted(s) {
			return s
		}
		if s.Status == "completed" || s.Status == "failed" || s.Status == "canceled" {
			y.t.Fatalf("session %s ended and never %s: %+v", id, what, s)
		}
	}
}

// exampleAgent is a running process of the example.
type exampleAgent struct {
	cmd    *exec.Cmd
	output *tail
}

func (y *exampleFixture) agent(flags ...string) *exampleAgent {
	y.t.Helper()
	a := &exampleAgent{cmd: exec.CommandContext(y.t.Context(), y.binary, flags...), output: &tail{}}
	a.cmd.Env, a.cmd.Stdout, a.cmd.Stderr = y.env, a.output, a.output
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := a.cmd.Start(); err != nil {
		y.t.Fatal(err)
	}
	y.t.Cleanup(func() {
		_ = a.cmd.Process.Kill()
		_ = a.cmd.Wait()
		if y.t.Failed() {
			y.t.Logf("agent %v:\n%s", flags, a.output)
		}
	})
	return a
}

// stop asks the process to stop and waits until it has, of itself.
func (a *exampleAgent) stop(ctx context.Context) error {
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop an agent: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("an agent was stopped: %w\n%s", err, a.output)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("an agent does not stop: %w\n%s", ctx.Err(), a.output)
	}
}
