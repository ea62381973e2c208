package systemtest

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// TestCluster_ATimeOfDayThatJumps sets the clock of a workspace's owner a day ahead, or an hour behind. Until
// the owner has left its shards to the others it serves by its time before: an idempotency key that is good
// for a day is still known, and leases go on.
func TestCluster_ATimeOfDayThatJumps(t *testing.T) {
	if testing.Short() {
		t.Skip("needs three nodes and waits")
	}
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	f := NewFleet(faultyBinary(t), t.TempDir(), "--shards", "4")
	f.keepLogs(t)
	f.grow(ctx, t, 3)
	for n, jump := range []string{"26h", "-1h"} {
		o, err := f.members[0].Client(fleetRoot).onboardInsisting(ctx, "Jumps", fmt.Sprintf("jumps-%d", n))
		if err != nil {
			t.Fatal(err)
		}
		path := "/workspaces/" + o.Workspace.ID
		name, err := f.members[0].Owner(ctx, o.Workspace.ID)
		if err != nil {
			t.Fatal(err)
		}
		var owner, asked *Member
		for _, m := range f.members {
			if m.Name == name {
				owner = m
			} else {
				asked = m
			}
		}
		c := asked.Client(o.Token.Token)
		var once, again, session struct{ ID string }
		if err := c.insist(ctx, path+"/issues", object{"title": "Once"}, "once", &once); err != nil {
			t.Fatal(err)
		}
		if err := c.insist(ctx, path+"/issues/"+once.ID+"/dispatch", object{"agentId": "a", "maxDuration": 30}, "session", &session); err != nil {
			t.Fatal(err)
		}
		var claimed struct {
			Sessions []struct {
				Session   struct{ ID string }
				LaneToken string
			}
		}
		if err := c.Decode(ctx, "POST", path+"/agent/sessions/claim", object{"agentId": "a", "leaseSeconds": 600}, http.StatusOK, &claimed); err != nil {
			t.Fatal(err)
		}

		clock := machineFault("jump", "clock", jump, 0)
		if err := clock.strike(ctx, f, owner); err != nil {
			t.Fatal(err)
		}
		round := 0
		testkit.Await(ctx, t, "the shard has another owner", func() bool {
			if err := c.insist(ctx, path+"/issues", object{"title": "Once"}, "once", &again); err != nil || again.ID != once.ID {
				t.Fatalf("after %s: a creation under the same key made issue %q, and %q before: %v", jump, again.ID, once.ID, err)
			}
			round++
			var issue struct{ ID string }
			key := fmt.Sprintf("timer-%d", round) // a new timer makes the scheduler look for those that are due
			if err := c.insist(ctx, path+"/issues", object{"title": key}, key, &issue); err != nil {
				t.Fatal(err)
			}
			if err := c.insist(ctx, path+"/issues/"+issue.ID+"/dispatch", object{"agentId": "b", "maxDuration": 60}, key+"-session", &session); err != nil {
				t.Fatal(err)
			}
			now, err := asked.Owner(ctx, o.Workspace.ID)
			return err == nil && now != name && now != ""
		})
		lane := asked.Client(claimed.Sessions[0].LaneToken)
		testkit.Await(ctx, t, "the lane is answered", func() bool {
			a, err := lane.Do(ctx, "POST", path+"/agent/sessions/"+claimed.Sessions[0].Session.ID+"/heartbeat", object{})
			if err == nil && a.Status != http.StatusOK && a.Status != http.StatusServiceUnavailable {
				t.Fatalf("after %s: a lease of ten minutes is over: %d %s", jump, a.Status, a.Body)
			}
			return err == nil && a.Status == http.StatusOK
		})
		if err := clock.heal(ctx, f, owner); err != nil {
			t.Fatal(err)
		}
	}
}
