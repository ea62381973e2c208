package backup_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"switchyard/cmd/internal/backup"
)

// newKeyFile makes a key, and returns the name of its file, too.
func newKeyFile(t *testing.T) (key *backup.Key, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "key")
	if err := backup.NewKey(file); err != nil {
		t.Fatal(err)
	}
	key, err := backup.ReadKey(file)
	if err != nil {
		t.Fatal(err)
	}
	return key, file
}

// A node with a new key archives its logs anew, from their first entries. The moments behind a backup with
// the old key are those that the old key's segments lead to.
func TestRestoreAt_AfterTheKeyWasChanged(t *testing.T) {
	t.Parallel()
	to, data := filepath.Join(t.TempDir(), "backups"), filepath.Join(t.TempDir(), "node")
	older, olderFile := newKeyFile(t)
	newer, newerFile := newKeyFile(t)
	settings := logging(to)
	settings.KeyFile = olderFile
	first, stop := serve(t, data, settings)
	s := first.found()
	s.archived()
	s.write("Before")
	at := time.Now()
	s.archived()
	stop()
	settings.KeyFile = newerFile
	second, stop := serve(t, data, settings)
	s = s.as(second)
	s.archived()
	s.write("After")
	later := time.Now()
	s.archived()
	stop()
	if titles := s.restored(sealed(to, older), at).titles(); !slices.Equal(titles, []string{"A title that nobody may read", "Before"}) {
		t.Errorf("with the old key there are %q", titles)
	}
	if titles := s.restored(sealed(to, newer), later).titles(); !slices.Equal(titles, []string{"A title that nobody may read", "After", "Before"}) {
		t.Errorf("with the new key there are %q", titles)
	}
	outOfReach(t, sealed(to, older), "", later, "the latest moment before it is")
	outOfReach(t, sealed(to, newer), "", at, "the first one was at")
}
