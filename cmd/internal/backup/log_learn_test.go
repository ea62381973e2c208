package backup

import (
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/cluster"
	"switchyard/internal/testkit/bucket"
	"switchyard/storage"
)

// whole reports whether the archived log of shard 1 has all entries behind the image of a backup.
func (b *logbook) whole(m *Manifest) bool {
	b.t.Helper()
	return b.last(m) == uint64(len(b.entries[1]))
}

// last returns the last entry of shard 1 to which the segments lead from the image of a backup.
func (b *logbook) last(m *Manifest) uint64 {
	b.t.Helper()
	l, err := b.nodes[0].To.listLogs(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	_, last, err := l.chain(b.t.Context(), logOf{logCluster, 1}, m.Files[1].Index)
	if err != nil {
		b.t.Fatal(err)
	}
	return last
}

// rename fails the test if a directory can't be renamed.
func (b *logbook) rename(from, to string) {
	b.t.Helper()
	if err := os.Rename(from, to); err != nil {
		b.t.Fatal(err)
	}
}

// The directory of backups is away for a time, as one whose file system is unmounted, and an empty one is in its
// place.
func TestLogArchiver_WritesNothingIntoAnotherDirectory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openLogbook(t, time.Minute)
		b.write(1, 5, 10)
		m := b.backUp()
		b.run()
		b.write(1, 5, 10)
		b.pass(time.Minute + time.Second)
		b.rename(b.dir, b.dir+".away")
		if err := os.Mkdir(b.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		b.write(1, 5, 10)
		b.pass(5 * time.Minute)
		status := b.nodes[0].Status()
		if status.Failures < 5 || !strings.Contains(status.Error, "are not there") || !math.IsInf(status.Age(time.Now()), 1) {
			t.Errorf("%+v while another directory is there", status)
		}
		if left, err := os.ReadDir(b.dir); len(left) > 0 || err != nil {
			t.Errorf("the other directory has %v, %v", left, err)
		}
		if err := os.Remove(b.dir); err != nil {
			t.Fatal(err)
		}
		b.rename(b.dir+".away", b.dir)
		b.pass(2 * time.Minute)
		if status := b.nodes[0].Status(); status.Failures != 0 || status.Lost != 0 || status.Age(time.Now()) > 60 || !b.whole(m) || b.reach(m) > time.Minute {
			t.Errorf("%+v with the directory, %s behind", status, b.reach(m))
		}

		// It stays away. The archive begins anew, and a restart does not change that.
		b.rename(b.dir, b.dir+".away")
		b.pass(foreignFor + 2*time.Minute)
		if status := b.nodes[0].Status(); status.Failures != 0 || status.Lost != 0 || !b.whole(m) || b.reach(m) > time.Minute {
			t.Errorf("%+v in a new directory, %s behind", status, b.reach(m))
		}
		// The first one comes back. Most entries of the log are truncated, but it has them.
		b.rename(b.dir, b.dir+".new")
		b.rename(b.dir+".away", b.dir)
		b.change(func() { b.first[1] = 15 })
		b.write(1, 1, 10)
		b.pass(2 * time.Minute)
		if status := b.nodes[0].Status(); status.Failures != 0 || status.Lost != 0 || !b.whole(m) || b.reach(m) > time.Minute {
			t.Errorf("%+v with the first directory, %s behind", status, b.reach(m))
		}
	})
}

// Where the backups are gone, no logs are archived either, however long that lasts: they would lead nowhere.
func TestLogArchiver_WritesNothingWhereTheBackupsAreGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := openLogbook(t, time.Minute)
		b.write(1, 5, 10)
		b.backUp()
		for _, a := range b.nodes {
			a.Refused = func() error { return errEmptied }
		}
		b.run()
		b.pass(2 * foreignFor)
		if status := b.nodes[0].Status(); status.Failures < 20 || status.Error != errEmptied.Error() {
			t.Errorf("%+v", status)
		}
		if _, err := os.Stat(b.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory is there: %v", err)
		}
	})
}

// Files of the archive are lost. Entries that the node still has are archived again, and others are a gap.
func TestLogArchiver_NoticesThatTheArchiveLostFiles(t *testing.T) {
	t.Parallel()
	for what, lose := range map[string]func(b *logbook) (whole uint64){
		"the segments are removed": func(b *logbook) uint64 {
			if err := os.RemoveAll(filepath.Join(b.dir, "log")); err != nil {
				b.t.Fatal(err)
			}
			return 5
		},
		"an earlier state is put back": func(b *logbook) uint64 {
			early := filepath.Join(b.t.TempDir(), "early")
			if err := os.CopyFS(early, os.DirFS(b.dir)); err != nil {
				b.t.Fatal(err)
			}
			b.write(1, 5, 10)
			b.pass(time.Minute)
			b.rename(b.dir, b.dir+".late")
			b.rename(early, b.dir)
			return 10
		},
	} {
		for _, truncated := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				b := openLogbook(t, time.Minute)
				b.nodes[0].Logger = slog.New(slog.NewTextHandler(&log, nil))
				b.write(1, 5, 10)
				m := b.backUp()
				b.run()
				b.write(1, 5, 10)
				b.pass(time.Minute + time.Second)
				whole := lose(b)
				if truncated {
					b.change(func() { b.first[1] = 13 })
				}
				b.write(1, 5, 10)
				b.pass(2 * time.Minute)
				status := b.nodes[0].Status()
				if !strings.Contains(log.String(), "are not as this node left them") {
					t.Errorf("%s: the log has %q", what, log.String())
				}
				switch {
				case truncated && (status.Lost != 1 || !slices.Equal(status.Gaps, []int{1}) || b.last(m) != whole || b.reach(m) < 2*time.Minute):
					t.Errorf("%s: %+v, the segments lead to entry %d, %s behind", what, status, b.last(m), b.reach(m))
				case !truncated && (status.Lost != 0 || len(status.Gaps) > 0 || !b.whole(m) || b.reach(m) > time.Minute):
					t.Errorf("%s: %+v, %s behind", what, status, b.reach(m))
				}
				logged := log.Len()
				if b.pass(5 * time.Minute); log.Len() != logged {
					t.Errorf("%s: it goes on in the log: %s", what, log.String()[logged:])
				}
			})
		}
	}
}

// The directory goes while a pass is under way: no mark says that the segments are in the one below it.
func TestLogArchiver_ReplacesNoMarkOfAnotherDirectory(t *testing.T) {
	t.Parallel()
	b := openLogbook(t, time.Minute)
	a := b.nodes[0]
	a.known, a.left = map[int]archivedLog{}, map[int]uint64{}
	b.write(1, 5, 10)
	m := b.backUp()
	b.write(1, 5, 10)
	if err := a.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.Logs = leaving{bookOf{b, 0}, func() { b.rename(b.dir, b.dir+".away") }}
	b.write(1, 5, 10)
	if err := a.pass(t.Context()); err == nil {
		t.Error("the pass did not fail")
	}
	if marks, _, err := a.To.marks(t.Context(), logCluster); len(marks) > 0 || err != nil {
		t.Errorf("the other directory has %+v, %v", marks, err)
	}
	a.Logs = bookOf{b, 0}
	b.rename(b.dir, b.dir+".other")
	b.rename(b.dir+".away", b.dir)
	if err := a.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !b.whole(m) {
		t.Errorf("the segments lead to entry %d", b.last(m))
	}
}

// leaving is logs before whose first reading the directory of backups goes.
type leaving struct {
	bookOf
	leave func()
}

func (l leaving) ReadLog(shard storage.Shard, after uint64, fn func(*cluster.LogEntry) (bool, error)) (uint64, error) {
	l.leave()
	return l.bookOf.ReadLog(shard, after, fn)
}

// A bucket has its objects back, or lost them.
func TestLogArchiver_NoticesThatABucketLostObjects(t *testing.T) {
	t.Parallel()
	service := bucket.New(t)
	place, err := PlaceAt("s3://"+bucket.Name+"/some/where", S3{Endpoint: service.URL, Region: bucket.Region, AccessKey: bucket.AccessKey, SecretKey: bucket.SecretKey, SessionToken: bucket.Session, Spool: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	b := openLogbook(t, time.Minute)
	for _, a := range b.nodes {
		a.To = NewArchive(place, nil)
	}
	a := b.nodes[0]
	a.known, a.left = map[int]archivedLog{}, map[int]uint64{}
	b.write(1, 5, 10)
	m := b.backUp()
	b.write(1, 5, 10)
	if err := a.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{logDir, markDir} {
		for _, name := range service.Names("some/where/" + folder) {
			service.Edit(name, func([]byte) []byte { return nil })
		}
		b.write(1, 1, 10)
		err := a.pass(t.Context())
		if err != nil || !b.whole(m) {
			t.Errorf("without %s the segments lead to entry %d, %v", folder, b.last(m), err)
		}
	}
	for _, name := range service.Names("") {
		service.Edit(name, func([]byte) []byte { return nil })
	}
	if err := a.pass(t.Context()); err == nil || len(service.Names("")) > 0 {
		t.Errorf("the bucket is empty: %v, then it has %q", err, service.Names(""))
	}
}
