package backup_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"switchyard/cmd/internal/backup"
)

// The scratch directory may be one that is not there, such as below an empty volume.
func TestDrill_MakesItsScratchDirectory(t *testing.T) {
	t.Parallel()
	s, dir := startService(t, 1), filepath.Join(t.TempDir(), "backups")
	s.take(dir, 0)
	scratch := filepath.Join(t.TempDir(), "scratch", "drill")
	d, err := backup.Drill(t.Context(), backup.Drilling{From: plain(dir), Scratch: scratch, Now: time.Now})
	if err != nil || !d.Report.Clean() {
		t.Fatalf("%v, %+v", err, d)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("%v was left, %v", left, err)
	}
}
