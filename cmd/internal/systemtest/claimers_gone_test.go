package systemtest

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"
)

// TestClaim_ByWayOfAnotherNode has two claimers wait at a node that does not serve their workspace. The
// one that waits first leaves. The session that is dispatched then belongs to the other: it is claimed once.
func TestClaim_ByWayOfAnotherNode(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	f := NewFleet(binary(t), t.TempDir(), "--shards", "2")
	f.keepLogs(t)
	f.form(ctx, t, 3, func(int) []string { return nil })
	o, err := f.members[0].Client("").onboardInsisting(ctx, "Left", "left")
	if err != nil {
		t.Fatal(err)
	}
	name, err := f.members[0].Owner(ctx, o.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	var owner, entry *Member
	for _, m := range f.members {
		if m.Name == name {
			owner = m
		} else {
			entry = m
		}
	}
	path := "/workspaces/" + o.Workspace.ID
	boss := owner.Client(o.Token.Token)
	var agent, issue, session struct {
		ID string `json:"id"`
	}
	if err := boss.Decode(ctx, "POST", path+"/agents", object{"name": "Agent"}, http.StatusCreated, &agent); err != nil {
		t.Fatal(err)
	}
	if err := boss.Decode(ctx, "POST", path+"/issues", object{"title": "Work"}, http.StatusCreated, &issue); err != nil {
		t.Fatal(err)
	}
	type claimed struct {
		Sessions []claimedSession `json:"sessions"`
		err      error
	}
	claim := func(ctx context.Context) <-chan claimed {
		answer := make(chan claimed, 1)
		go func() {
			var got claimed
			got.err = entry.Client(o.Token.Token).Decode(ctx, "POST", path+"/agent/sessions/claim", object{"agentId": agent.ID, "wait": 30}, http.StatusOK, &got)
			answer <- got
		}()
		return answer
	}
	metrics := func(m *Member) string { return "http://" + f.address(m.n, 9090) }
	leaving, leave := context.WithCancel(ctx)
	defer leave()
	left := claim(leaving)
	awaitMetric(ctx, t, metrics(owner), "switchyard_waiting_requests 1")
	stays := claim(ctx)
	awaitMetric(ctx, t, metrics(owner), "switchyard_waiting_requests 2")
	leave()
	if got := <-left; !errors.Is(got.err, context.Canceled) {
		t.Fatalf("the claimer that leaves is answered %+v", got)
	}
	awaitMetric(ctx, t, metrics(entry), `switchyard_http_forwarded_total{outcome="abandoned"} 1`)
	if err := boss.Decode(ctx, "POST", path+"/issues/"+issue.ID+"/dispatch", object{"agentId": agent.ID}, http.StatusCreated, &session); err != nil {
		t.Fatal(err)
	}
	if got := <-stays; got.err != nil || len(got.Sessions) != 1 || got.Sessions[0].Session.ID != session.ID {
		t.Errorf("the claimer that stays is answered %+v", got)
	}
	awaitMetric(ctx, t, metrics(owner), "switchyard_waiting_requests 0")
}
