package storage

import (
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// A store is opened in the oldest format, goes up by Raise alone, and stays there.
func TestStore_Raise(t *testing.T) {
	const older = pebble.FormatValueSeparation - 1
	dir, was := t.TempDir(), pebbleFormats
	t.Cleanup(func() { pebbleFormats = was })
	pebbleFormats = map[Format]pebble.FormatMajorVersion{FormatFirst: older, FormatNumbered: pebble.FormatValueSeparation}
	versions := func(s *Store) [2]pebble.FormatMajorVersion {
		return [2]pebble.FormatMajorVersion{s.Raft().FormatMajorVersion(), s.State().FormatMajorVersion()}
	}
	open := func() *Store {
		t.Helper()
		s, err := Open(Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	if got := versions(s); got != [2]pebble.FormatMajorVersion{older, older} {
		t.Errorf("a new store has the versions %v", got)
	}
	if err := s.Raise(FormatNewest + 1); err == nil {
		t.Error("an unknown format was accepted")
	}
	for range 2 {
		if err := s.Raise(FormatNumbered); err != nil {
			t.Fatal(err)
		}
	}
	want := [2]pebble.FormatMajorVersion{pebble.FormatValueSeparation, pebble.FormatValueSeparation}
	if got := versions(s); got != want {
		t.Errorf("a raised store has the versions %v", got)
	}
	if err := s.Raise(FormatFirst); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	if got := versions(s); got != want {
		t.Errorf("opened again it has the versions %v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// Every format that this program writes has a version of Pebble's files, and none goes down.
func TestPebbleFormats(t *testing.T) {
	last := pebble.FormatMajorVersion(0)
	for f := FormatOldest; f <= FormatNewest; f++ {
		version, ok := pebbleFormats[f]
		if !ok || version < last || version > pebble.FormatNewest {
			t.Errorf("format %d has version %d of Pebble's files", f, version)
		}
		last = version
	}
}
