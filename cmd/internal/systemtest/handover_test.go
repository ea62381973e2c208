package systemtest

import (
	"context"
	"testing"
	"time"
)

// A leader that hands over while its link to a follower is cut has entries under way
// to it that are refused once the link carries again. It must end all the same when
// it is told to.
func TestCluster_StopsAfterEntriesWereRefused(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "4")
	load, err := newTraffic(ctx, f, 6, 2)
	if err != nil {
		t.Fatal(err)
	}
	load.run(ctx, seed(t), 20*time.Millisecond)
	defer load.end()
	leader, cut := f.members[0], f.members[1]
	for round := range 3 {
		f.Cut(leader, cut)
		pause(ctx, 500*time.Millisecond)
		if err := f.members[2].operate(ctx, "POST", "/cluster/nodes/"+leader.Name+"/drain"); err != nil {
			t.Fatal(err)
		}
		pause(ctx, 3*time.Second)
		f.Mend()
		if err := f.members[2].operate(ctx, "POST", "/cluster/nodes/"+leader.Name+"/undrain"); err != nil {
			t.Fatal(err)
		}
		if err := f.stand(ctx, 3); err != nil {
			t.Fatal(err)
		}
		stop, done := context.WithTimeout(ctx, 15*time.Second)
		began := time.Now()
		err := leader.Terminate(stop)
		done()
		t.Logf("round %d: stopped after %s", round, time.Since(began))
		if err != nil {
			t.Fatal(err)
		}
		if err := leader.Start(); err != nil {
			t.Fatal(err)
		}
		if err := f.stand(ctx, 3); err != nil {
			t.Fatal(err)
		}
		pause(ctx, 4*time.Second) // leaderships come back
	}
}
