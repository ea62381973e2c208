package systemtest

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// TestCluster_GossipKeyIsReplaced replaces the key of a cluster under load, as docs/install.md says: in three
// rolling restarts, in which each node gets both keys, then the new one first, then the new one alone.
// Afterwards the old key lets nobody in.
func TestCluster_GossipKeyIsReplaced(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 4*time.Minute)
	defer cancel()
	s := testkit.Seed(t)
	f := newFleet(ctx, t, 3, "--shards", "4")
	load, err := newTraffic(ctx, f, 4, 2)
	if err != nil {
		t.Fatal(err)
	}
	next := base64.StdEncoding.EncodeToString([]byte("the next key of the fleet: 32 by"))
	LogSecrets.Give(next)
	given := map[*Member][]string{}
	for _, m := range f.members {
		given[m] = slices.Clone(m.flags)
	}
	load.run(ctx, s, 20*time.Millisecond)
	for _, keys := range []string{fleetKey + "," + next, next + "," + fleetKey, next} {
		for _, m := range f.members {
			m.flags = append(slices.Clone(given[m]), "--gossip-key", keys)
			m.runs(ctx, t, "")
		}
	}
	load.end()

	stranger, err := f.Add("node-4", "--join", f.members[0].Seed(), "--gossip-key", fleetKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	if out, failed, err := stranger.Exited(ctx); err != nil || !failed || !strings.Contains(out, "another --gossip-key") {
		t.Errorf("a node with the old key: %v, failed %t, %s", err, failed, out)
	}
	f.members = slices.DeleteFunc(f.members, func(m *Member) bool { return m == stranger })
	load.finish(ctx, t)
}
