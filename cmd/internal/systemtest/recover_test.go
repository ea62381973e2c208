package systemtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRecover_AfterALostMajority kills the three nodes of a cluster, of which one directory is
// left, and makes a new cluster of it.
func TestRecover_AfterALostMajority(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	f := NewFleet(binary(t), t.TempDir(), "--shards", "3")
	t.Cleanup(f.Close)
	f.form(ctx, t, 3, func(int) []string { return nil })
	var homes []Onboarded
	var paths []string
	for n := range 4 {
		o, err := f.members[n%3].Client("").onboardInsisting(ctx, "Home", fmt.Sprintf("home-%d", n))
		if err != nil {
			t.Fatal(err)
		}
		homes = append(homes, o)
		c := f.members[n%3].Client(o.Token.Token)
		for i := range 5 {
			var issue object
			if err := c.Decode(ctx, "POST", "/workspaces/"+o.Workspace.ID+"/issues", object{"title": fmt.Sprintf("Issue %d", i)}, http.StatusCreated, &issue); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, "/workspaces/"+o.Workspace.ID+"/issues/"+fmt.Sprint(issue["id"]))
		}
	}
	if err := f.members[0].Await(ctx, "nobody is behind", Level(3)); err != nil {
		t.Fatal(err)
	}
	// The third node misses the last issues.
	f.members[2].Kill()
	for n, o := range homes {
		issue := f.members[n%2].Client(o.Token.Token).createInsisting(ctx, t, o.Workspace.ID, "Late")
		paths = append(paths, "/workspaces/"+o.Workspace.ID+"/issues/"+issue)
	}
	for _, m := range f.members {
		m.Kill()
	}
	recovers := func(want int, says string, args ...string) {
		t.Helper()
		code, out := backupCommand(t, append([]string{"recover"}, args...)...)
		if code != want || !strings.Contains(out, says) {
			t.Fatalf("recover %s: %d, %s; want %q", args, code, out, says)
		}
	}
	all := []string{"--from", f.members[0].Data, "--from", f.members[1].Data, "--from", f.members[2].Data}
	left := all[2:4]
	behind := slices.Concat(all[4:6], left)
	recovers(0, "A majority of every shard's voters is left", all...)
	recovers(0, "the last acknowledged changes", left...)
	recovers(0, "A majority", behind...)
	recovers(0, "Nothing was made", left...)
	older := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(older, os.DirFS(f.members[1].Data)); err != nil {
		t.Fatal(err)
	}
	recovers(1, "are both of node node-2", "--from", older, left[0], left[1])
	recovers(1, "is no node's data", "--from", t.TempDir())
	recovers(1, "needs --data", append(left[:2:2], "--accept-loss")...)
	recovers(1, "is not empty", append(left[:2:2], "--accept-loss", "--data", f.members[0].Data)...)

	data := filepath.Join(t.TempDir(), "new")
	recovers(0, "is the data of a new cluster", append(behind, "--accept-loss", "--data", data)...)
	if code, out := backupCommand(t, "verify", "--data", data); code != 0 {
		t.Fatalf("verify: %d, %s", code, out)
	}
	recovers(1, "is of cluster", append(left[:2:2], "--from", data)...)
	node, err := Launch(ctx, binary(t), data, []string{"SWITCHYARD_ROOT_TOKEN=" + fleetRoot})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Kill)
	for i, path := range paths {
		c := NewClient(node.URL, homes[min(i/5, 3)].Token.Token, 1)
		if i >= 20 {
			c.Token = homes[i-20].Token.Token
		}
		if err := c.Decode(ctx, "GET", path, nil, http.StatusOK, nil); err != nil {
			t.Error(err)
		}
	}
	for _, o := range homes {
		c := NewClient(node.URL, o.Token.Token, 1)
		var issue object
		if err := c.Decode(ctx, "POST", "/workspaces/"+o.Workspace.ID+"/issues", object{"title": "After"}, http.StatusCreated, &issue); err != nil {
			t.Fatal(err)
		}
		if number := issue["number"]; number != 7.0 {
			t.Errorf("the seventh issue has number %v", number)
		}
	}
}

// createInsisting makes an issue over changes of owners, and returns its id.
func (c *Client) createInsisting(ctx context.Context, t *testing.T, workspace, title string) string {
	t.Helper()
	for {
		answer, err := c.Do(ctx, "POST", "/workspaces/"+workspace+"/issues", object{"title": title}, "Idempotency-Key", title)
		var issue object
		if err == nil && answer.Status == http.StatusCreated && json.Unmarshal(answer.Body, &issue) == nil {
			return fmt.Sprint(issue["id"])
		}
		if ctx.Err() != nil {
			t.Fatalf("the issue is not made: %v, %d %s", err, answer.Status, answer.Body)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
