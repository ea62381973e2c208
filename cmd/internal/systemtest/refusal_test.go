package systemtest

import (
	"context"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// A leader that hands over while its link to a follower is cut has entries under way
// to it that are refused once the link carries again. It must end all the same when
// it is told to.
func TestCluster_StopsAfterEntriesWereRefused(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "4")
	load, err := newTraffic(ctx, f, 6, 2)
	if err != nil {
		t.Fatal(err)
	}
	load.run(ctx, testkit.Seed(t), 20*time.Millisecond)
	defer load.end()
	leader, cut, third := f.members[0], f.members[1], f.members[2]
	f.Cut(leader, cut)
	// Writes go to the third node meanwhile, and wait in the link to the other.
	if !pause(ctx, 500*time.Millisecond) {
		t.Fatal(ctx.Err())
	}
	if err := third.operate(ctx, "POST", "/cluster/nodes/"+leader.Name+"/drain"); err != nil {
		t.Fatal(err)
	}
	led := func(v ClusterView) bool {
		for _, s := range v.Shards {
			if s.Leader == "" || s.Leader == leader.Name {
				return false
			}
		}
		return len(v.Shards) > 0
	}
	if err := third.Await(ctx, "another leads every shard", led); err != nil {
		t.Fatal(err)
	}
	// Not so long that Raft gives up waiting for the answers: they are to come.
	f.Mend()
	if err := third.operate(ctx, "POST", "/cluster/nodes/"+leader.Name+"/undrain"); err != nil {
		t.Fatal(err)
	}
	if err := f.stand(ctx, 3); err != nil {
		t.Fatal(err)
	}
	stop, done := context.WithTimeout(ctx, 30*time.Second)
	defer done()
	if err := leader.Terminate(stop); err != nil {
		t.Error(err)
	}
}
