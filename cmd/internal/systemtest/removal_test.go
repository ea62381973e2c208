package systemtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// TestCluster_RemovesANodeThatRuns removes one of four nodes while it leads shards. The others take
// over what it has, and it ends by itself. Then it is taken back with its data, removed while it is
// dead, and comes back under its name with an empty directory.
func TestCluster_RemovesANodeThatRuns(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 4*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 4, "--shards", "6")
	first, gone := f.members[0], f.members[3]
	without := func(v ClusterView) bool {
		for _, sh := range v.Shards {
			if sh.Leader == gone.Name || slices.Contains(sh.Voters, gone.Name) {
				return false
			}
		}
		return Settled(3)(v)
	}
	if err := first.operate(ctx, "DELETE", "/cluster/nodes/"+gone.Name); err != nil {
		t.Fatal(err)
	}
	for _, m := range f.members[:3] {
		if err := m.Await(ctx, "the others have everything", without); err != nil {
			t.Fatal(err)
		}
	}
	if output, failed, err := gone.Exited(ctx); err != nil || !failed {
		t.Fatalf("the removed node did not end with an error: %v\n%s", err, output)
	}
	if testing.Short() {
		return
	}
	if err := first.operate(ctx, "POST", "/cluster/nodes/"+gone.Name+"/undrain"); err != nil {
		t.Fatal(err)
	}
	holds := func(v ClusterView) bool {
		return !without(v) && Settled(3)(v)
	}
	if err := gone.Start(); err != nil {
		t.Fatal(err)
	}
	if err := first.Await(ctx, "it has replicas again", holds); err != nil {
		t.Fatal(err)
	}
	// Its disk is lost.
	gone.Kill()
	if err := os.RemoveAll(gone.Data); err != nil {
		t.Fatal(err)
	}
	if err := first.operate(ctx, "DELETE", "/cluster/nodes/"+gone.Name); err != nil {
		t.Fatal(err)
	}
	if err := gone.Start(); err != nil {
		t.Fatal(err)
	}
	if err := gone.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	if err := first.Await(ctx, "it has replicas under its old name", holds); err != nil {
		t.Fatal(err)
	}
}

// TestCluster_RemovesANodeThatIsPaused removes a node while it is paused, and starts an empty one under
// its name. The others refuse the first one when it goes on, so that it ends.
func TestCluster_RemovesANodeThatIsPaused(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "4")
	first, gone := f.members[0], f.members[2]
	if err := gone.Pause(); err != nil {
		t.Fatal(err)
	}
	silent := func(v ClusterView) bool {
		for _, n := range v.Nodes {
			if n.Name == gone.Name {
				return n.State != "alive"
			}
		}
		return false
	}
	if err := first.Await(ctx, "the paused node does not hear of its removal", silent); err != nil {
		t.Fatal(err)
	}
	if err := first.operate(ctx, "DELETE", "/cluster/nodes/"+gone.Name); err != nil {
		t.Fatal(err)
	}
	successor, err := f.Add(gone.Name, "--join", first.Seed())
	if err != nil {
		t.Fatal(err)
	}
	successor.Data += "-successor"
	if err := successor.Start(); err != nil {
		t.Fatal(err)
	}
	if err := successor.WaitReady(ctx); err != nil { // it has joined, so the first one is released
		t.Fatal(err)
	}
	if err := gone.Resume(); err != nil {
		t.Fatal(err)
	}
	ending, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if output, failed, err := gone.Exited(ending); err != nil || !failed || !strings.Contains(output, "belongs to another node") {
		t.Fatalf("the removed node did not end with an error: %v\n%s", err, output)
	}
}

// startEmpty wipes the disk of a member that does not run, and starts it under its name.
func (m *Member) startEmpty() error {
	if err := os.RemoveAll(m.Data); err != nil {
		return err
	}
	m.flags = []string{"--join", m.fleet.other(m).Seed()} // the first one would form a cluster of its own
	return m.Start()
}

// removals are faults in which a node leaves the cluster and comes back empty, under its name.
func removals() []fault {
	back := func(_ context.Context, _ *Fleet, m *Member) error { return m.startEmpty() }
	return []fault{
		{
			name: "removed while it runs", hold: 0,
			strike: func(ctx context.Context, f *Fleet, m *Member) error {
				if err := f.other(m).operate(ctx, "DELETE", "/cluster/nodes/"+m.Name); err != nil {
					return err
				}
				_, _, err := m.Exited(ctx)
				return err
			},
			heal: back,
		},
		{
			name: "its disk is lost", hold: 0,
			strike: func(ctx context.Context, f *Fleet, m *Member) error {
				m.Kill()
				return f.other(m).operate(ctx, "DELETE", "/cluster/nodes/"+m.Name)
			},
			heal: back,
		},
		{
			// Its votes are lost with its disk. It may not vote under its name until the name is free.
			name: "wiped under its name", hold: 0,
			strike: func(ctx context.Context, _ *Fleet, m *Member) error {
				m.Kill()
				if err := m.startEmpty(); err != nil {
					return err
				}
				ctx, cancel := context.WithTimeout(ctx, standWithin)
				defer cancel()
				output, failed, err := m.Exited(ctx)
				if err == nil && (!failed || !strings.Contains(strings.ToLower(output), "remove")) {
					err = fmt.Errorf("it ended (failed %t) and did not ask for its removal:\n%s", failed, output)
				}
				return err
			},
			heal: func(ctx context.Context, f *Fleet, m *Member) error {
				if err := f.other(m).operate(ctx, "DELETE", "/cluster/nodes/"+m.Name); err != nil {
					return err
				}
				return m.startEmpty()
			},
		},
	}
}

// TestCluster_RemovalsUnderLoad lets nodes be removed, running or dead, again and again.
func TestCluster_RemovalsUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	t.Parallel()
	length, _ := chaosLength()
	ctx, cancel := limited(t, length+4*time.Minute)
	defer cancel()
	s := testkit.Seed(t)
	f := newFleet(ctx, t, 3, "--shards", "4")
	load, err := newTraffic(ctx, f, 6, 2)
	if err != nil {
		t.Fatal(err)
	}
	load.run(ctx, s, 20*time.Millisecond)
	stormed := storm(ctx, f, removals(), rand.New(rand.NewPCG(s, 1)), length, 3, t.Logf)
	load.end()
	if stormed != nil {
		t.Error(stormed)
	}
	load.finish(ctx, t)
}
