package systemtest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchyard/internal/testkit"
	"switchyard/storage"
)

// chaosLength is how long faults happen: SWITCHYARD_CHAOS_MINUTES, or as long as
// the tests of every change can afford.
func chaosLength() (length, pauseFor time.Duration) {
	if minutes, err := strconv.ParseFloat(os.Getenv("SWITCHYARD_CHAOS_MINUTES"), 64); err == nil {
		return time.Duration(minutes * float64(time.Minute)), 30 * time.Second
	}
	return 20 * time.Second, 4 * time.Second
}

// chaosShards returns the number of shards of a storm's cluster: SWITCHYARD_CHAOS_SHARDS, or a few.
func chaosShards() string { return cmp.Or(os.Getenv("SWITCHYARD_CHAOS_SHARDS"), "4") }

// chaosNodes returns the number of nodes of a storm's cluster: SWITCHYARD_CHAOS_NODES, or 3, or moveNodes in
// half of the long storms and where moves are named.
func chaosNodes(s uint64, length time.Duration, names string) int {
	if nodes, err := strconv.Atoi(os.Getenv("SWITCHYARD_CHAOS_NODES")); err == nil {
		return nodes
	}
	named := slices.ContainsFunc(moves(), func(f fault) bool { return strings.Contains(names, f.name) })
	if named || names == "" && length > time.Minute && s/2%2 == 1 {
		return moveNodes
	}
	return 3
}

// chaosTLS reports whether the nodes of a storm use TLS between them: SWITCHYARD_CHAOS_TLS=1 or 0, or by the
// seed, in half of the storms.
func chaosTLS(s uint64) bool {
	if secure, err := strconv.ParseBool(os.Getenv("SWITCHYARD_CHAOS_TLS")); err == nil {
		return secure
	}
	return s/4%2 == 1
}

// newFleet starts three members, the first alone and the others joining it, and
// returns when every shard has three voters.
func newFleet(ctx context.Context, t *testing.T, size int, flags ...string) *Fleet {
	t.Helper()
	f := NewFleet(binary(t), t.TempDir(), flags...)
	f.keepLogs(t)
	f.grow(ctx, t, size)
	return f
}

// keepLogs ends the fleet with the test, and keeps its logs when that failed.
func (f *Fleet) keepLogs(t *testing.T) {
	t.Cleanup(func() {
		f.Close()
		if t.Failed() {
			keep := filepath.Join(os.TempDir(), fmt.Sprintf("switchyard-%s-%d", filepath.Base(t.Name()), os.Getpid()))
			if err := f.Keep(keep); err != nil {
				t.Log(err)
			}
			t.Logf("the nodes' logs are in %s", keep)
		}
	})
}

// form starts members at once that expect each other, as a fresh deployment does, and
// waits until they share the work. flags gives those of the n-th node, counted from 1.
func (f *Fleet) form(ctx context.Context, t testing.TB, size int, flags func(n int) []string) {
	t.Helper()
	var seeds []string
	for n := range size {
		seeds = append(seeds, f.address(n+1, 7946))
	}
	for n := range size {
		m, err := f.Add(fmt.Sprintf("node-%d", n+1), append(flags(n+1), "--bootstrap-expect", strconv.Itoa(size), "--join", strings.Join(seeds, ","))...)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range f.members {
		if err := m.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
	}
	level := Level(size)
	if err := f.members[0].Await(ctx, "every member is a voter and they share the shards", func(v ClusterView) bool { return level(v) && Shared(v) }); err != nil {
		t.Fatal(err)
	}
}

// grow adds members until there are so many, and waits until they share the work.
func (f *Fleet) grow(ctx context.Context, t testing.TB, size int) {
	t.Helper()
	for len(f.members) < size {
		var flags []string
		if len(f.members) > 0 {
			flags = []string{"--join", f.members[0].Seed()}
		}
		m, err := f.Add(fmt.Sprintf("node-%d", len(f.members)+1), flags...)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
		if len(f.members) == 1 {
			if err := m.WaitReady(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, m := range f.members {
		if err := m.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
	}
	voters := 1
	if size >= 3 {
		voters = 3
	}
	if err := f.members[0].Await(ctx, fmt.Sprintf("every shard has %d voters", voters), Settled(voters)); err != nil {
		t.Fatal(err)
	}
	if err := f.members[0].Await(ctx, "leaderships are shared out", Shared); err != nil {
		t.Fatal(err)
	}
}

// TestCluster_Storm lets every kind of fault happen to three or four nodes under reads and writes, or those
// that SWITCHYARD_CHAOS_FAULTS names, separated by commas.
func TestCluster_Storm(t *testing.T) {
	t.Parallel()
	length, pauseFor := chaosLength()
	runStorm(t, testkit.Seed(t), length, pauseFor)
}

// TestCluster_MillionOperations lets storms of five minutes follow each other, each with a cluster and a seed of its
// own, until a million requests have been answered in them.
func TestCluster_MillionOperations(t *testing.T) {
	if testing.Short() {
		t.Skip("takes most of an hour; make full runs it")
	}
	t.Parallel()
	const operations = 1_000_000
	answered := int64(0)
	for s := testkit.Seed(t); answered < operations && !t.Failed(); s++ {
		t.Run(fmt.Sprintf("SWITCHYARD_TEST_SEED=%d", s), func(t *testing.T) {
			answered += runStorm(t, s, 5*time.Minute, 30*time.Second)
		})
		t.Logf("%d requests answered so far", answered)
	}
}

// runStorm starts a cluster and lets faults happen to it for so long, a paused node for at most pauseFor. It checks
// that the history of the clients is linearizable, that nothing acknowledged was lost and nothing done twice, that
// listeners were told of every change once and in order, that a minute after the last fault every shard has its owner
// and all of its voters, that streams and claims go on by way of every node, and that the replicas are equal and verify
// at the end. It returns how many requests were answered with success.
func runStorm(t *testing.T, s uint64, length, pauseFor time.Duration) int64 {
	t.Helper()
	program := faultyBinary(t)
	kinds, names := slices.Concat(faults(pauseFor), removals(), damages(), machineFaults()), os.Getenv("SWITCHYARD_CHAOS_FAULTS")
	nodes, secure := chaosNodes(s, length, names), chaosTLS(s)
	if nodes >= moveNodes {
		kinds = append(kinds, moves()...)
	}
	// A cluster with an older version writes an older format, so half of the long storms have none.
	older := strings.Contains(names, "older version") || names == "" && length > time.Minute && s%2 == 0 && hasOlder(t.Context()) == nil
	if older {
		kinds = append(kinds, olderVersion(olderBinary(t)))
	}
	all, err := chosen(kinds, names)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := limited(t, length+4*time.Minute)
	defer cancel()
	f := NewFleet(program, t.TempDir(), "--shards", chaosShards())
	f.keepLogs(t)
	if older {
		f.Format = int(storage.FormatNewest - 1)
	}
	if secure {
		if err := f.Secure(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d nodes, TLS between them: %t", nodes, secure)
	f.grow(ctx, t, nodes)
	load, err := newTraffic(ctx, f, 6, 2)
	if err != nil {
		t.Fatal(err)
	}
	load.run(ctx, s, 20*time.Millisecond)
	load.listen(ctx, s)
	stormed := storm(ctx, f, all, rand.New(rand.NewPCG(s, 1)), length, 3, t.Logf)
	load.end()
	if stormed != nil {
		t.Error(stormed)
	}
	load.finish(ctx, t)
	t.Logf("%d requests answered; longest answer %s; longest gaps of the workspaces %v; streams, broken and events told: %v", load.served.Load(), load.longest.Round(time.Millisecond), load.gaps(), load.listened())
	return load.served.Load()
}

// finish checks the books, then stops the fleet and compares what is on its disks.
func (t *traffic) finish(ctx context.Context, tt *testing.T) {
	tt.Helper()
	if err := t.history.check(time.Minute, filepath.Join(os.TempDir(), fmt.Sprintf("switchyard-history-%d.html", os.Getpid()))); err != nil {
		tt.Error(err)
	}
	f := t.fleet
	if err := f.stand(ctx, 3); err != nil {
		tt.Fatal(err)
	}
	t.verify(ctx)
	t.verifyEvents(ctx)
	for _, b := range t.broken {
		tt.Error(b)
	}
	if t.longest > 11*time.Second {
		tt.Errorf("a request was answered after %s", t.longest)
	}
	if err := f.members[0].Await(ctx, "nobody is behind and nothing is written", Quiet(3)); err != nil {
		tt.Fatal(err)
	}
	f.compare(ctx, tt)
}

// compare stops every member, and checks each store and that replicas are equal. A timer may
// still write while one member after the other stops. So replicas that have applied the log
// up to the same entry must be equal, and of each shard two at least.
func (f *Fleet) compare(ctx context.Context, t *testing.T) {
	t.Helper()
	for _, m := range f.members {
		stop, cancel := context.WithTimeout(ctx, 30*time.Second)
		if err := m.Terminate(stop); err != nil {
			t.Error(err)
		}
		cancel()
	}
	seen := map[int]map[Fingerprint][]string{}
	for _, m := range f.members {
		if err := Verify(ctx, f.Binary, m.Data); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		prints, err := Fingerprints(ctx, f.Binary, m.Data)
		if err != nil {
			t.Fatalf("%s: %v", m.Name, err)
		}
		for shard, print := range prints {
			if seen[shard] == nil {
				seen[shard] = map[Fingerprint][]string{}
			}
			seen[shard][print] = append(seen[shard][print], m.Name)
		}
	}
	for shard, prints := range seen {
		byEntry, byRows, most := map[string]int{}, map[string]int{}, 0
		for print, members := range prints {
			byEntry[print.Applied]++
			byRows[print.Rows] += len(members)
			most = max(most, byRows[print.Rows])
		}
		for entry, n := range byEntry {
			if n > 1 {
				t.Errorf("the replicas of shard %d differ at entry %s: %v", shard, entry, prints)
			}
		}
		if most < min(2, len(f.members)) {
			t.Errorf("no two replicas of shard %d are equal: %v", shard, prints)
		}
	}
}
