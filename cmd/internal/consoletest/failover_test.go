package consoletest

import (
	"context"
	"fmt"
	"testing"

	"switchyard/cmd/internal/systemtest"
)

// TestSession_IsFollowedThroughAFailOver: somebody follows a session on one node while the node that owns the
// workspace is killed. What the agent logs before, meanwhile and after is there once, in order, and nobody
// reloads the page.
func TestSession_IsFollowedThroughAFailOver(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	fleet, s := cluster(ctx, t)
	owner, follower := owners(ctx, t, fleet, s)
	s.url = follower.URL

	agent := s.send(ctx, "POST", "/agents", object{"name": "Builder", "isDefault": true})
	token := s.send(ctx, "POST", "/tokens", object{"name": "builder", "actorType": "agent", "agentId": agent["id"], "permissions": "sessions:write"})["token"].(string)
	issue := s.issue(ctx, "Survive the owner", nil)
	session := s.send(ctx, "POST", "/issues/"+issue["id"].(string)+"/dispatch", object{"instructions": "Go on."})["id"].(string)
	claimed := s.sendAs(ctx, token, "POST", s.path+"/agent/sessions/claim", object{"leaseSeconds": 600})
	lane := claimed["sessions"].([]any)[0].(object)["laneToken"].(string)

	v := visit(ctx, t, follower.URL)
	// While the workspace has no owner, reads and the event stream are 503.
	v.watch.allow("GET 503 /workspaces/*", "POST 503 /workspaces/*")
	v.signIn(s, s.token)
	v.open(s.page("sessions/" + session))
	v.settles()
	v.sees("Live")
	log := v.the("log", "Activities")

	c := systemtest.NewClient(follower.URL, lane, 1)
	defer c.HTTP.CloseIdleConnections()
	note := func(n int) {
		t.Helper()
		// Repeated under its key, as an agent does, until there is an owner.
		for {
			answer, err := c.Do(ctx, "POST", s.path+"/agent/sessions/"+session+"/log", object{"message": fmt.Sprintf("Step %d of 9.", n)}, "Idempotency-Key", fmt.Sprint("step-", n))
			switch {
			case err != nil:
				t.Fatal(err)
			case answer.Status == 201:
				return
			case answer.Status != 503:
				t.Fatalf("log step %d: %d %s", n, answer.Status, answer.Body)
			}
		}
	}
	for n := 1; n <= 3; n++ {
		note(n)
	}
	log.the("listitem", ".*").counts(3)
	v.sees("Step 3 of 9.")
	owner.Kill()
	for n := 4; n <= 9; n++ {
		note(n)
	}
	log.the("listitem", ".*").counts(9)
	v.sees("Step 9 of 9.", "Live")
	got := eval[[]string](v, `[...document.querySelectorAll("[role=log] .activity-text")].map((p) => p.textContent)`)
	for i, text := range got {
		if want := fmt.Sprintf("Step %d of 9.", i+1); text != want {
			t.Errorf("activity %d is %q, want %q", i+1, text, want)
		}
	}

	// An answer that the visitor sends now reaches the agent's session at its new owner.
	v.the("textbox", "Reply").fill("Well done.")
	v.the("button", "Send reply").click()
	log.the("listitem", ".*").counts(10)
	log.appears()
	v.sees("Well done.")
	v.misses("Connection lost")
}

// cluster runs three nodes with a workspace until the test ends.
func cluster(ctx context.Context, t testing.TB) (*systemtest.Fleet, *service) {
	t.Helper()
	fleet := systemtest.NewFleet(shared.built.switchyard, t.TempDir(), "--shards", "2")
	t.Cleanup(fleet.Close)
	var seed []string
	for n := 1; n <= 3; n++ {
		m, err := fleet.Add(fmt.Sprintf("node-%d", n), seed...)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			if err := m.WaitReady(ctx); err != nil {
				t.Fatal(err)
			}
			seed = []string{"--join", m.Seed()}
		}
	}
	for _, m := range fleet.Members() {
		if err := m.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
	}
	level := systemtest.Level(3)
	err := fleet.Members()[0].Await(ctx, "every member is a voter and they share the shards", func(v systemtest.ClusterView) bool { return level(v) && systemtest.Shared(v) })
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, url: fleet.Members()[0].URL}
	s.onboard(ctx, "Acme", "acme")
	return fleet, s
}

// owners returns the node that owns the service's workspace, and one of the others.
func owners(ctx context.Context, t testing.TB, fleet *systemtest.Fleet, s *service) (owner, other *systemtest.Member) {
	t.Helper()
	name, err := fleet.Members()[0].Owner(ctx, s.path[len("/workspaces/"):])
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fleet.Members() {
		if m.Name == name {
			owner = m
		} else {
			other = m
		}
	}
	return owner, other
}
