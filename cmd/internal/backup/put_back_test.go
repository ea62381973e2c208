package backup_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"switchyard/cmd/internal/backup"
	"switchyard/httpapi"
)

// The data of a node alone is put back to an earlier state, and the node goes on. The archive has
// the entries of both histories, and gives no mixture of them. A later backup leads to moments behind it.
func TestRestoreAt_NotOfTwoHistories(t *testing.T) {
	t.Parallel()
	to, data := filepath.Join(t.TempDir(), "backups"), filepath.Join(t.TempDir(), "node")
	first, stop := serve(t, data, logging(to))
	s := first.found()
	s.archived()
	before := time.Now()
	stop()
	snapshot := copyOf(t, data)
	second, stop := serve(t, data, logging(to))
	s = s.as(second)
	for range 20 {
		s.write("Left")
	}
	s.archived()
	stop()
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(data, os.DirFS(snapshot)); err != nil {
		t.Fatal(err)
	}
	third, stop := serve(t, data, logging(to))
	s = s.as(third)
	for range 3 {
		for range 15 {
			s.write("Kept")
		}
		s.archived()
	}
	at := time.Now()
	s.archived()
	outOfReach(t, plain(to), "", at, "two histories")
	if titles := s.restored(plain(to), before).titles(); !slices.Equal(titles, []string{"A title that nobody may read"}) {
		t.Errorf("before the data was put back there are %q", titles)
	}
	want := s.titles()
	if _, _, err := backup.Take(t.Context(), backup.Taking{Client: client(t, s.url), To: plain(to), Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	s.write("Last")
	later := time.Now()
	s.backups("archived", func(b *httpapi.BackupStatus) bool { return moment(t, b.Log.ReachesAt).After(later) })
	stop()
	if titles := s.restored(plain(to), later).titles(); !slices.Equal(titles, append(want, "Last")) {
		t.Errorf("behind a later backup there are %q", titles)
	}
}
