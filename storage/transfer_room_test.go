package storage

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// measured is a store on a disk whose free space free sets, in MiB, of 1000. The reserve is 200.
func measured(t *testing.T) (s *Store, free func(mib uint64)) {
	t.Helper()
	fs := sized(900<<20, 1000<<20)
	s = ok(Open(Config{Dir: "store", FS: fs, CacheBytes: 1 << 20, Logger: quiet}))(t)
	t.Cleanup(func() { must(t, s.Close()) })
	return s, func(mib uint64) {
		fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: mib << 20, TotalBytes: 1000 << 20})
		s.space.check()
	}
}

// An import ends when the disk gets too full for it, and leaves nothing there.
func TestImport_StopsOnAFullDisk(t *testing.T) {
	t.Parallel()
	from := memory(t)
	scatter(t, from, 5, 100, 1)
	rows := stream(t, from, 5)
	to, free := measured(t)
	free(49)
	if err := receive(t, to, 5, bytes.NewReader(rows)); !errors.Is(err, ErrNoRoom) {
		t.Errorf("an import on a full disk: %v", err)
	}
	free(51)
	must(t, receive(t, to, 5, bytes.NewReader(rows)))
}

// An export that would use up the last of the space fails before it begins.
func TestExport_LeavesSpace(t *testing.T) {
	t.Parallel()
	s, free := measured(t)
	scatter(t, s, 5, 100, 1) // more than 2 MiB
	must(t, s.FlushState())
	free(101)
	if e, err := s.Export(t.Context(), 5, time.Second); !errors.Is(err, ErrNoRoom) {
		t.Errorf("an export without room: %v", err)
		must(t, e.Close())
	}
	_ = stream(t, s, 6) // an empty shard fits
	free(110)
	for range maxExports + 1 { // the refused one is not counted as under way
		_ = stream(t, s, 5)
	}
}
