package systemtest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// TestCluster_RefusesAnOlderDataDirectory puts a node's data directory back to an earlier state. With
// its vote a node that was down meanwhile could lead, and acknowledged writes would be lost. The node
// ends instead, and the writes are there when the third node is back.
func TestCluster_RefusesAnOlderDataDirectory(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "4")
	behind, back, newest := f.members[0], f.members[1], f.members[2]
	home, err := behind.Client("").onboardInsisting(ctx, "Kept", "kept")
	if err != nil {
		t.Fatal(err)
	}

	if err := back.Terminate(ctx); err != nil {
		t.Fatal(err)
	}
	earlier := filepath.Join(t.TempDir(), "earlier")
	if err := os.CopyFS(earlier, os.DirFS(back.Data)); err != nil {
		t.Fatal(err)
	}
	if err := back.Start(); err != nil {
		t.Fatal(err)
	}
	level := Level(3)
	if err := newest.Await(ctx, "all are there again, and the shards are shared", func(v ClusterView) bool { return level(v) && Shared(v) }); err != nil {
		t.Fatal(err)
	}
	if err := behind.Terminate(ctx); err != nil {
		t.Fatal(err)
	}
	// Two of three acknowledge.
	c := newest.Client(home.Token.Token)
	ids := map[string]string{}
	for n := range 20 {
		var issue Issue
		ref := fmt.Sprintf("kept-%d", n)
		if err := c.insist(ctx, "/workspaces/"+home.Workspace.ID+"/issues", object{"title": "Acknowledged", "externalRef": ref}, ref, &issue); err != nil {
			t.Fatal(err)
		}
		ids[ref] = issue.ID
	}
	back.Kill()
	newest.Kill()
	if err := os.RemoveAll(back.Data); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(back.Data, os.DirFS(earlier)); err != nil {
		t.Fatal(err)
	}

	if err := behind.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Await(ctx, t, "the node that was behind answers", func() bool {
		_, err := behind.Client("").Do(ctx, "GET", "/readyz", nil)
		return err == nil
	})
	mustRefuse(ctx, t, back, "older than another node has seen it")
	if err := newest.Start(); err != nil {
		t.Fatal(err)
	}
	c = behind.Client(home.Token.Token)
	for ref, id := range ids {
		testkit.Await(ctx, t, "the shard has an owner", func() bool {
			answer, err := c.Do(ctx, "GET", "/workspaces/"+home.Workspace.ID+"/issues/"+id, nil)
			if err == nil && answer.Status != http.StatusOK && answer.Status != http.StatusServiceUnavailable {
				t.Fatalf("%s, which was acknowledged, is answered %d %s", ref, answer.Status, answer.Body)
			}
			return err == nil && answer.Status == http.StatusOK
		})
	}
}
