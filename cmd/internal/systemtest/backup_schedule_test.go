package systemtest

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// backupsOf returns the moments of the complete backups in a directory, the oldest first.
func backupsOf(t *testing.T, dir string) (moments []time.Time) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if text, ok := strings.CutPrefix(e.Name(), "backup-"); ok {
			moment, err := time.Parse("20060102T150405.000Z", strings.TrimSuffix(text, ".json"))
			if err != nil {
				t.Fatal(err)
			}
			moments = append(moments, moment)
		}
	}
	return moments
}

// lastBackup asks a node for the moment of the newest backup that it knows.
func lastBackup(ctx context.Context, m *Member) (at time.Time, err error) {
	var view struct {
		Backup *struct {
			LastAt       *time.Time `json:"lastAt"`
			EverySeconds int        `json:"everySeconds"`
		} `json:"backup"`
	}
	if err := m.Client(m.fleet.Root).Decode(ctx, "GET", "/cluster", nil, http.StatusOK, &view); err != nil {
		return at, err
	}
	if view.Backup == nil || view.Backup.EverySeconds != 2 {
		return at, errors.New("no backups are scheduled")
	}
	if view.Backup.LastAt != nil {
		at = *view.Backup.LastAt
	}
	return at, nil
}

// TestBackup_ScheduleOfACluster has a cluster take backups while the node that takes them dies.
func TestBackup_ScheduleOfACluster(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	const every = 2 * time.Second
	dir := filepath.Join(t.TempDir(), "backups")
	f := newFleet(ctx, t, 3, "--shards", "2", "--backup-to", dir, "--backup-every", every.String())
	if _, err := f.members[0].Client(f.Root).onboardInsisting(ctx, "Home", "home"); err != nil {
		t.Fatal(err)
	}
	await := func(m *Member, after time.Time) time.Time {
		t.Helper()
		for {
			at, err := lastBackup(ctx, m)
			if err == nil && at.After(after) {
				return at
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				t.Fatalf("%s knows of no backup after %s: %v", m.Name, after, err)
			}
		}
	}
	var owner string
	for _, m := range f.members {
		await(m, time.Now().Add(-time.Hour))
	}
	view, err := f.members[0].View(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range view.Shards {
		if s.ID == 0 {
			owner = s.Leader
		}
	}
	var left *Member
	for _, m := range f.members {
		if m.Name == owner {
			m.Kill()
		} else {
			left = m
		}
	}
	killed := time.Now()
	await(left, await(left, killed))
	moments := backupsOf(t, dir)
	for n := 1; n < len(moments); n++ {
		if apart := moments[n].Sub(moments[n-1]); apart < every {
			t.Errorf("backups %d and %d are %s apart", n, n+1, apart)
		}
	}
	if code, out := f.operator(ctx, "cluster", "status", "--url", left.URL); code != 0 || !strings.Contains(out, "backups to "+dir+" every 2s: backup-") {
		t.Errorf("status: %d %s", code, out)
	}
	f.Close()
	if code, out := f.operator(ctx, "backup", "drill", dir); code != 0 {
		t.Errorf("the drill: %d %s", code, out)
	}
}
