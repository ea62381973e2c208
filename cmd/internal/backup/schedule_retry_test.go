package backup

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSchedule_TriesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := rehearse(t, 24*time.Hour)
		r.failing.Store(true)
		r.pass(10*time.Minute + time.Second)
		if status := r.nodes[0].Status(); status.Failures != 1 || status.Failed != 1 || status.Error != errDisk.Error() || status.Name != "" {
			t.Errorf("%+v", status)
		}
		// Pauses of 30 s, 1, 2, 4, 8, 16 and 30 minutes, and of 30 from there on.
		r.pass(70*time.Minute + 91*time.Minute + 30*time.Second)
		if status := r.nodes[0].Status(); status.Failures != 8 {
			t.Errorf("%+v", status)
		}
		r.failing.Store(false)
		r.pass(time.Hour)
		if status := r.nodes[0].Status(); status.Failures != 0 || status.Error != "" || status.Failed != 8 || status.Taken != 1 || status.Name == "" {
			t.Errorf("%+v", status)
		}
		// The archive can't be listed: that fails for the node that takes backups alone.
		if err := errors.Join(os.Rename(r.dir, r.dir+".x"), os.WriteFile(r.dir, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		r.pass(time.Hour)
		if a, b := r.nodes[0].Status(), r.nodes[1].Status(); a.Failures == 0 || b.Failures != 0 || b.Name == "" {
			t.Errorf("%+v and %+v", a, b)
		}
	})
}

// A backup that can't begin because another one holds the directory is tried again soon, however often that
// was so before.
func TestSchedule_WaitsForTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := rehearse(t, 24*time.Hour)
		unlock, err := r.nodes[0].To.place.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.pass(3*time.Hour + 2*time.Minute)
		if status := r.nodes[0].Status(); status.Failures < 8 || !strings.Contains(status.Error, "another backup") {
			t.Errorf("%+v", status)
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		r.pass(12 * time.Minute) // a try that fails may be under way, and the next one takes ten minutes
		if status := r.nodes[0].Status(); status.Taken != 1 || status.Failures != 0 {
			t.Errorf("%+v", status)
		}
	})
}

// A node that leads again begins with short pauses, whatever failed the last time.
func TestSchedule_PausesAreOfOneLead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := rehearse(t, 24*time.Hour)
		r.failing.Store(true)
		r.pass(3 * time.Hour)
		if status := r.nodes[0].Status(); status.Failures < 7 {
			t.Errorf("%+v", status)
		}
		r.leader.Store(1)
		r.failing.Store(false)
		r.pass(24 * time.Hour) // the other one takes a backup
		r.failing.Store(true)
		r.leader.Store(0)
		r.pass(12 * time.Minute)
		r.failing.Store(false)
		before := r.nodes[0].Status()
		r.pass(12 * time.Minute)
		if after := r.nodes[0].Status(); after.Failed != before.Failed || after.Taken != 1 {
			t.Errorf("%+v, and before %+v", after, before)
		}
	})
}
