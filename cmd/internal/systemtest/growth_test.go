package systemtest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// TestCluster_GrowsAndShrinksUnderLoad takes one node to five and back by drains
// and removals, with clients that are only ever told to try again.
func TestCluster_GrowsAndShrinksUnderLoad(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 4*time.Minute)
	defer cancel()
	s := testkit.Seed(t)
	f := newFleet(ctx, t, 1, "--shards", "4")
	load, err := newTraffic(ctx, f, 4, 2)
	if err != nil {
		t.Fatal(err)
	}
	load.run(ctx, s, 20*time.Millisecond)
	f.grow(ctx, t, 3)
	f.grow(ctx, t, 5)
	first := f.members[0]
	if err := first.Await(ctx, "the replicas are spread", func(v ClusterView) bool {
		var held []int
		for _, n := range v.Nodes {
			held = append(held, n.Replicas)
		}
		return len(held) == 5 && slices.Max(held)-slices.Min(held) <= 1 && Settled(3)(v)
	}); err != nil {
		t.Fatal(err)
	}
	// Two are emptied and taken out.
	for _, m := range f.members[3:] {
		if err := first.operate(ctx, "POST", "/cluster/nodes/"+m.Name+"/drain"); err != nil {
			t.Fatal(err)
		}
		if err := first.Await(ctx, m.Name+" is empty", func(v ClusterView) bool {
			for _, n := range v.Nodes {
				if n.Name == m.Name {
					return n.Replicas == 0 && n.Leads == 0 && Settled(3)(v)
				}
			}
			return false
		}); err != nil {
			t.Fatal(err)
		}
		if err := first.operate(ctx, "DELETE", "/cluster/nodes/"+m.Name); err != nil {
			t.Fatal(err)
		}
	}
	load.end()
	for _, m := range f.members[3:] {
		m.Kill() // unless it has ended by itself, as removed nodes do
	}
	f.members = f.members[:3]
	load.finish(ctx, t)
	for i, gap := range load.gaps() {
		t.Logf("workspace %d: longest time without an answer %s", i, gap.Round(time.Millisecond))
	}
}

// restartGap is the longest time without an answer that restarts one after another may cause.
const restartGap = 3 * time.Second

// neverSilent fails the test if a workspace had no answer for longer than most.
func (t *traffic) neverSilent(tt *testing.T, most time.Duration) {
	tt.Helper()
	for i, gap := range t.gaps() {
		if gap > most {
			tt.Errorf("workspace %d: no answer for %s", i, gap)
		}
	}
}

// runs restarts a member with the binary of an older version, or with the fleet's if older is empty,
// and waits until the cluster stands.
func (m *Member) runs(ctx context.Context, t *testing.T, older string) {
	t.Helper()
	stop, done := context.WithTimeout(ctx, 30*time.Second)
	defer done()
	if err := m.Terminate(stop); err != nil {
		t.Fatal(err)
	}
	m.older = older
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	if err := m.fleet.stand(ctx, len(m.fleet.members)); err != nil {
		t.Fatal(err)
	}
}

// TestCluster_RollingRestart restarts every node in order under load: nothing fails
// but what says so before anything was done.
func TestCluster_RollingRestart(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	s := testkit.Seed(t)
	f := newFleet(ctx, t, 3, "--shards", "4")
	load, err := newTraffic(ctx, f, 4, 2)
	if err != nil {
		t.Fatal(err)
	}
	load.run(ctx, s, 20*time.Millisecond)
	for _, m := range f.members {
		m.runs(ctx, t, "")
	}
	load.end()
	load.neverSilent(t, restartGap)
	load.finish(ctx, t)
}

// TestCluster_ReplacesADeadNode kills a node for good under load: an empty one
// under a new name takes its place, once the dead one is removed.
func TestCluster_ReplacesADeadNode(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	s := testkit.Seed(t)
	f := newFleet(ctx, t, 3, "--shards", "4")
	load, err := newTraffic(ctx, f, 4, 2)
	if err != nil {
		t.Fatal(err)
	}
	load.run(ctx, s, 20*time.Millisecond)
	gone := f.members[2]
	gone.Kill()
	spare, err := f.Add("node-4", "--join", f.members[0].Seed()+","+f.members[1].Seed())
	if err != nil {
		t.Fatal(err)
	}
	if err := spare.Start(); err != nil {
		t.Fatal(err)
	}
	if err := f.members[0].operate(ctx, "DELETE", "/cluster/nodes/"+gone.Name); err != nil {
		t.Fatal(err)
	}
	f.members = slices.DeleteFunc(f.members, func(m *Member) bool { return m == gone })
	if err := f.members[0].Await(ctx, "the new node holds everything", func(v ClusterView) bool {
		for _, sh := range v.Shards {
			if slices.Contains(sh.Voters, gone.Name) {
				return false
			}
		}
		return Settled(3)(v)
	}); err != nil {
		t.Fatal(err)
	}
	load.end()
	load.finish(ctx, t)

	// The one that was removed is told so when it comes back.
	if err := f.members[0].Start(); err != nil {
		t.Fatal(err)
	}
	if err := f.members[1].Start(); err != nil {
		t.Fatal(err)
	}
	if err := f.members[0].WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	gone.flags = []string{"--join", f.members[0].Seed()}
	mustRefuse(ctx, t, gone, "removed")
}

// mustRefuse starts a node that must end by itself and say why.
func mustRefuse(ctx context.Context, t *testing.T, m *Member, why string) {
	t.Helper()
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	output, failed, err := m.Exited(ctx)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if !failed || !strings.Contains(strings.ToLower(output), why) {
		t.Errorf("%s ended (failed %t) and said, without %q:\n%s", m.Name, failed, why, output)
	}
}

// TestCluster_FormsTogether starts three empty nodes at once that expect each other,
// as a fresh deployment does.
func TestCluster_FormsTogether(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	f := NewFleet(binary(t), t.TempDir(), "--shards", "2")
	f.keepLogs(t)
	f.form(ctx, t, 3, func(int) []string { return nil })
	o, err := f.members[1].Client("").onboardInsisting(ctx, "Together", "together")
	if err != nil {
		t.Fatal(err)
	}
	c := f.members[2].Client(o.Token.Token)
	var made Issue
	if err := c.insist(ctx, "/workspaces/"+o.Workspace.ID+"/issues", map[string]any{"title": "x"}, "together", &made); err != nil {
		t.Fatal(err)
	}
	// All at once again, each with its data and the same flags.
	for _, m := range f.members {
		m.Kill()
	}
	for _, m := range f.members {
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range f.members {
		if err := m.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
	}
	issues, err := f.members[0].Client(o.Token.Token).Walk(ctx, o.Workspace.ID, "")
	if err != nil || len(issues) != 1 {
		t.Fatalf("%d issues, %v", len(issues), err)
	}
}

// TestCluster_GrowsFromANodeAlone starts a node with defaults, restarts it with ports
// for others, and has a second node of the machine join it with the key that the first
// has made.
func TestCluster_GrowsFromANodeAlone(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	here := func(n int) []string { // addresses of its own, since others need to know them
		host := loopbackNet() + strconv.Itoa(n)
		return []string{"--peer", host + ":7947", "--gossip", host + ":7946"}
	}
	stop := func(p *Process) {
		t.Helper()
		if err := p.Terminate(ctx); err != nil {
			t.Fatal(err)
		}
	}
	config := []string{"XDG_CONFIG_HOME=" + t.TempDir()}
	node, err := Launch(ctx, binary(t), first, config, "--shards", "2", "--node-name", "first")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(node.Output(), "Other nodes reach this one") {
		t.Errorf("a node alone opens ports for others:\n%s", node.Output())
	}
	home, err := NewClient(node.URL, "", 1).Onboard(ctx, "Growing", "growing")
	if err != nil {
		t.Fatal(err)
	}
	stop(node)

	ports := here(1)
	if node, err = Launch(ctx, binary(t), first, config, ports...); err != nil {
		t.Fatal(err)
	}
	join := append(here(2), "--node-name", "second", "--join", ports[3])
	// Another user's nodes have another key.
	if stranger, err := Launch(ctx, binary(t), second+"-keyless", []string{"XDG_CONFIG_HOME=" + t.TempDir()}, join...); err == nil {
		stranger.Kill()
		t.Error("a node with a key of its own has joined")
	} else if !strings.Contains(err.Error(), "--gossip-key") {
		t.Errorf("a node with a key of its own: %v", err)
	}
	other, err := Launch(ctx, binary(t), second, config, join...)
	if err != nil {
		t.Fatal(err)
	}
	var got object
	if err := NewClient(other.URL, home.Token.Token, 1).Decode(ctx, "GET", "/workspaces/"+home.Workspace.ID, nil, 200, &got); err != nil || got["slug"] != "growing" {
		t.Errorf("by the second node: %v, %v", got, err)
	}
	stop(node)
	if node, err = Launch(ctx, binary(t), first, nil); err == nil {
		node.Kill()
		t.Error("the first node has started alone again")
	} else if !strings.Contains(err.Error(), "give --peer and --gossip") {
		t.Errorf("alone again: %v", err)
	}
	if node, err = Launch(ctx, binary(t), first, config, ports...); err != nil {
		t.Fatal(err)
	}
	other.Kill()
	node.Kill()
}

// TestCluster_Refusals starts nodes that must not get in.
func TestCluster_Refusals(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	key, other := "MDEyMzQ1Njc4OWFiY2RlZg==", "ZmVkY2JhOTg3NjU0MzIxMA=="
	f := newFleet(ctx, t, 1, "--shards", "2", "--gossip-key", key)
	first := f.members[0]
	add := func(name string, flags ...string) *Member {
		m, err := f.Add(name, append([]string{"--join", first.Seed()}, flags...)...)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	mustRefuse(ctx, t, add("wrong-key", "--gossip-key", other), "gossip-key")
	double := add(first.Name)
	double.Data += "-double"
	mustRefuse(ctx, t, double, "--node-name")

	// One of another cluster.
	stranger := add("stranger")
	stranger.flags = nil
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	if err := stranger.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	stranger.Kill()
	stranger.flags = []string{"--join", first.Seed()}
	mustRefuse(ctx, t, stranger, "cluster")

	// One whose disk was wiped.
	wiped := add("wiped")
	if err := wiped.Start(); err != nil {
		t.Fatal(err)
	}
	if err := wiped.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	wiped.Kill()
	wiped.Data += "-new"
	mustRefuse(ctx, t, wiped, "remove")
	if err := first.operate(ctx, "DELETE", "/cluster/nodes/wiped"); err != nil {
		t.Fatal(err)
	}
	if err := wiped.Start(); err != nil {
		t.Fatal(err)
	}
	if err := wiped.WaitReady(ctx); err != nil {
		t.Fatal(fmt.Errorf("after the removal: %w", err))
	}
}
