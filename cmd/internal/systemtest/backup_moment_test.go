package systemtest

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/internal/testkit"
)

// reachedLog asks a node up to which moment the logs of all shards are archived.
func reachedLog(ctx context.Context, m *Member) (at time.Time, gaps []int) {
	var view struct {
		Backup struct {
			LastAt *time.Time `json:"lastAt"`
			Log    struct {
				ReachesAt *time.Time `json:"reachesAt"`
				Gaps      []int      `json:"gaps"`
			} `json:"log"`
		} `json:"backup"`
	}
	if err := m.Client(m.fleet.Root).Decode(ctx, "GET", "/cluster", nil, http.StatusOK, &view); err == nil && view.Backup.LastAt != nil && view.Backup.Log.ReachesAt != nil {
		at = *view.Backup.Log.ReachesAt
	}
	return at, view.Backup.Log.Gaps
}

// TestBackup_AMomentOfACluster archives the logs of three nodes under creates while one dies, and
// restores a moment after that. The nodes have one clock, so there is no margin.
func TestBackup_AMomentOfACluster(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	s := testkit.Seed(t)
	dir := filepath.Join(t.TempDir(), "backups")
	f := newFleet(ctx, t, 3, "--shards", "3", "--backup-to", dir, "--backup-every", "1h", "--backup-log-every", "1s")
	load, err := newTraffic(ctx, f, 4, 2)
	if err != nil {
		t.Fatal(err)
	}
	await := func(m *Member) {
		t.Helper()
		for now := time.Now(); ; {
			at, gaps := reachedLog(ctx, m)
			if at.After(now) {
				if len(gaps) > 0 {
					t.Fatalf("%s knows of gaps in the logs of shards %v", m.Name, gaps)
				}
				return
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				t.Fatalf("%s: the logs are archived up to %s", m.Name, at)
			}
		}
	}
	await(f.members[0])
	load.run(ctx, s, 10*time.Millisecond)
	for load.served.Load() < 300 && load.wait(ctx, 10*time.Millisecond) {
	}
	// The owner of the first workspace dies: its epoch ends in the archived log.
	view, err := f.members[0].View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	dead := f.members[2]
	for _, m := range f.members {
		if m.Name == view.Shards[1].Leader {
			dead = m
		}
	}
	var left *Member
	dead.Kill()
	for _, m := range f.members {
		if m != dead {
			left = m
		}
	}
	for before := load.served.Load(); load.served.Load() < before+300 && load.wait(ctx, 10*time.Millisecond); {
	}
	acknowledged := map[*space]map[string]string{}
	for _, sp := range load.spaces {
		acknowledged[sp] = sp.books()
	}
	moment := time.Now()
	later := map[*space]string{}
	var issue Issue
	for _, sp := range load.spaces {
		if err := left.Client(sp.token).insist(ctx, "/workspaces/"+sp.id+"/issues", object{"title": "Later"}, "later", &issue); err != nil {
			t.Fatal(err)
		}
		later[sp] = issue.ID
	}
	if err := left.Client(load.spaces[0].token).Decode(ctx, "DELETE", "/workspaces/"+load.spaces[0].id+"/issues/"+later[load.spaces[0]], nil, http.StatusNoContent, nil); err != nil {
		t.Fatal(err)
	}
	load.end()
	await(left)
	if code, out := f.operator(ctx, "cluster", "status", "--url", left.URL); code != 0 || !strings.Contains(out, "logs are archived every 1s: they have everything but the last ") {
		t.Errorf("status: %d %s", code, out)
	}
	f.Close()

	at := moment.Format(time.RFC3339Nano)
	if code, out := f.operator(ctx, "backup", "drill", dir, "--at", at); code != 0 || !strings.Contains(out, "clean") {
		t.Errorf("the drill: %d %s", code, out)
	}
	future := time.Now().Add(time.Hour).Format(time.RFC3339)
	if code, out := f.operator(ctx, "backup", "drill", dir, "--at", future); code != 1 || !strings.Contains(out, "the latest moment before it is") {
		t.Errorf("a drill of the future: %d %s", code, out)
	}
	to := NewFleet(binary(t), t.TempDir())
	to.keepLogs(t)
	m, err := to.Add("restored")
	if err != nil {
		t.Fatal(err)
	}
	if code, out := to.operator(ctx, "restore", "--from", dir, "--at", at, "--data", m.Data, "--node-name", m.Name); code != 0 || !strings.Contains(out, "The state is that of "+at) {
		t.Fatalf("the restore ended with %d: %s", code, out)
	}
	if err := Verify(ctx, to.Binary, m.Data); err != nil {
		t.Fatal(err)
	}
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	if err := m.WaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	for sp, books := range acknowledged {
		if len(books) == 0 {
			t.Error("a workspace had no creates")
		}
		c := m.Client(sp.token)
		for ref, id := range books {
			if err := c.Decode(ctx, "GET", "/workspaces/"+sp.id+"/issues/"+id, nil, http.StatusOK, &issue); err != nil || issue.ExternalRef == nil || *issue.ExternalRef != ref {
				t.Errorf("issue %s of workspace %s: %v, %+v", id, sp.id, err, issue)
			}
		}
		if err := c.Decode(ctx, "GET", "/workspaces/"+sp.id+"/issues/"+later[sp], nil, http.StatusNotFound, nil); err != nil {
			t.Errorf("an issue of workspace %s that came later: %v", sp.id, err)
		}
		if err := c.insist(ctx, "/workspaces/"+sp.id+"/issues", object{"title": "After"}, "after", &issue); err != nil {
			t.Error(err)
		}
	}
}
