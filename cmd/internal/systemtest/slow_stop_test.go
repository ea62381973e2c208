package systemtest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// TestCluster_SlowStop stops a node that waits for a client to read its answer. Its shards are with the
// other nodes all that time: none is given back to it, where nobody would answer.
func TestCluster_SlowStop(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "4")
	load, err := newTraffic(ctx, f, 4, 2)
	if err != nil {
		t.Fatal(err)
	}
	var directory string // its owner decides on leaderships
	if err := f.members[0].Await(ctx, "all share the leaderships", func(v ClusterView) bool {
		directory = v.Shards[0].Leader
		return Settled(3)(v) && Shared(v)
	}); err != nil {
		t.Fatal(err)
	}
	leaver, stays := f.members[1], f.members[2]
	if leaver.Name == directory {
		leaver, stays = stays, leaver
	}
	testkit.Unread(t, strings.TrimPrefix(leaver.URL, "http://"))
	load.run(ctx, testkit.Seed(t), 60*time.Millisecond)
	stopped, began := make(chan error, 1), time.Now()
	go func() { stopped <- leaver.Terminate(ctx) }()
	if err := stays.Await(ctx, leaver.Name+" leads nothing", func(v ClusterView) bool {
		for _, s := range v.Shards {
			if s.Leader == leaver.Name || s.Leader == "" {
				return false
			}
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	for stops := true; stops; {
		v, err := stays.View(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range v.Shards {
			if s.Leader == leaver.Name {
				t.Fatalf("%s leads shard %d while it stops", leaver.Name, s.ID)
			}
		}
		select {
		case err := <-stopped:
			if err != nil {
				t.Fatal(err)
			}
			stops = false
		case <-time.After(50 * time.Millisecond): // as Await asks
		}
	}
	// Placement looks at the leaderships once a second.
	if took := time.Since(began); took < 3*time.Second {
		t.Errorf("it stopped after %s: the client did not hold it up, so this proves little", took)
	}
	if err := errors.Join(leaver.Start(), f.stand(ctx, 3)); err != nil {
		t.Fatal(err)
	}
	load.end()
	load.neverSilent(t, restartGap)
	load.finish(ctx, t)
}
