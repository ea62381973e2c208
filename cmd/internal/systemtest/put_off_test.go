package systemtest

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// TestClaim_WaitsForAPutOffSessionThroughAFailOver kills the owner of a workspace in which a
// claim waits for the notBefore of a session. The claim, asked again at another node, is
// answered within two seconds after that time.
func TestClaim_WaitsForAPutOffSessionThroughAFailOver(t *testing.T) {
	if testing.Short() {
		t.Skip("needs three nodes and waits")
	}
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "4")
	const slug, lease = "put-off", 60 * time.Second
	o, err := f.members[0].Client(fleetRoot).onboardInsisting(ctx, "Put off", slug)
	if err != nil {
		t.Fatal(err)
	}
	s := &timedSpace{id: o.Workspace.ID, token: o.Token.Token}
	name, err := f.members[0].Owner(ctx, s.id)
	if err != nil {
		t.Fatal(err)
	}
	owner := f.members[slices.IndexFunc(f.members, func(m *Member) bool { return m.Name == name })]
	var urls []string // of the nodes that stay
	for _, m := range f.members {
		if m != owner {
			urls = append(urls, m.URL)
		}
	}
	var issue, session struct{ ID string }
	s.call(ctx, t, urls, "/issues", object{"title": "Later"}, http.StatusCreated, &issue)
	at := time.Now().Add(10 * time.Second).UTC().Truncate(time.Millisecond)
	s.call(ctx, t, urls, "/issues/"+issue.ID+"/dispatch", object{"agentId": "later", "notBefore": at.Format(time.RFC3339Nano)}, http.StatusCreated, &session)

	killed := make(chan error, 1)
	go func() { // ends with the context at the latest
		defer owner.Kill()
		c := NewClient(urls[0], s.token, 1)
		defer c.HTTP.CloseIdleConnections()
		for {
			var queue struct {
				ByAgent []struct{ ClaimersWaiting int }
			}
			err := c.Decode(ctx, "GET", "/workspaces/"+s.id+"/agent/queue", nil, http.StatusOK, &queue)
			if err == nil && len(queue.ByAgent) == 1 && queue.ByAgent[0].ClaimersWaiting == 1 {
				killed <- nil
				return
			}
			if !pause(ctx, 20*time.Millisecond) {
				killed <- fmt.Errorf("no claim waits: %w, %w", ctx.Err(), err)
				return
			}
		}
	}()
	var got struct{ Sessions []claimedSession }
	for len(got.Sessions) == 0 {
		s.call(ctx, t, urls, "/agent/sessions/claim", object{"agentId": "later", "wait": 12, "leaseSeconds": lease / time.Second}, http.StatusOK, &got)
	}
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	if len(got.Sessions) != 1 || got.Sessions[0].Session.ID != session.ID {
		t.Fatalf("claimed %+v, want session %s", got.Sessions, session.ID)
	}
	late(t, "the session was claimed", got.Sessions[0].LeaseExpiresAt.Add(-lease), at)
	if now, err := f.other(owner).Owner(ctx, s.id); err != nil || now == name {
		t.Errorf("the workspace is owned by %s, %v", now, err)
	}
}
