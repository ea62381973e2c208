package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A shard's rows are sent as a stream of tables, each covering a section of the
// shard's key range; together the sections cover it without gaps. Format 1:
//
//	magic (7 bytes), format (1), shard (2), sections (4), xxHash64 of these (8),
//	per section: length (8), xxHash64 of the table (8), table
//
// Numbers are big endian. A table holds the section's rows and one range deletion
// over all of the section: ingested together at one sequence number, the rows
// stay and whatever was there before goes.
const (
	streamMagic      = "swshard"
	streamFormat     = 1
	streamHeaderLen  = 7 + 1 + 2 + 4 + 8
	sectionHeaderLen = 8 + 8

	// streamTables is the tables' format. Raise it only when every node that may take
	// part in an upgrade reads the new one.
	streamTables = sstable.TableFormatPebblev7

	// sectionBytes is the size from which a section ends; maxSectionBytes bounds received sections,
	// since a row is not divided.
	sectionBytes    = 32 << 20
	maxSectionBytes = 1 << 30
	maxSections     = 1 << 16
)

// streamCompression compresses the tables' blocks. MinLZ takes two thirds of Snappy's processor time for
// issues and captures, and makes streams 1 % longer. All programs that read streamTables read it.
var streamCompression = sstable.MinLZCompression

// ErrStream refuses a stream that is not a complete, undamaged export of the shard.
var ErrStream = errors.New("storage: not a whole export of the shard")

// ErrBusy is the error of an export while other exports are under way.
var ErrBusy = errors.New("storage: other shards are being exported")

// ErrNoRoom is the error of an export or import that the disk has no room for.
var ErrNoRoom = errors.New("storage: the disk has no room for a shard's rows")

func streamHeader(shard Shard, sections int) []byte {
	h := append(make([]byte, 0, streamHeaderLen), streamMagic...)
	h = binary.BigEndian.AppendUint16(append(h, streamFormat), uint16(shard))
	h = binary.BigEndian.AppendUint32(h, uint32(sections))
	return binary.BigEndian.AppendUint64(h, xxhash.Sum64(h))
}

func parseStreamHeader(h []byte, shard Shard) (sections int, err error) {
	body, sum := h[:streamHeaderLen-8], binary.BigEndian.Uint64(h[streamHeaderLen-8:])
	switch {
	case string(h[:len(streamMagic)]) != streamMagic || xxhash.Sum64(body) != sum:
		return 0, fmt.Errorf("%w: its header is damaged", ErrStream)
	case h[7] != streamFormat:
		return 0, fmt.Errorf("%w: format %d is not known here", ErrStream, h[7])
	case Shard(binary.BigEndian.Uint16(h[8:])) != shard:
		return 0, fmt.Errorf("%w: it is of shard %d, not %d", ErrStream, binary.BigEndian.Uint16(h[8:]), shard)
	}
	n := binary.BigEndian.Uint32(h[10:])
	if n == 0 || n > maxSections {
		return 0, fmt.Errorf("%w: it has %d sections", ErrStream, n)
	}
	return int(n), nil
}

func sectionHeader(size int64, sum uint64) []byte {
	h := binary.BigEndian.AppendUint64(make([]byte, 0, sectionHeaderLen), uint64(size))
	return binary.BigEndian.AppendUint64(h, sum)
}

// maxExports is how many shards are exported at once: each holds a copy of its shard on the disk.
// Two may be for a backup.
const maxExports = 3

// transfer is the directory for the files of exports and imports. They belong to the running
// process only.
type transfer struct {
	fs      vfs.FS
	dir     string
	slots   chan struct{}
	next    atomic.Uint64
	writing sstable.WriterOptions
	reading sstable.ReaderOptions
}

// takeSlot takes one of the slots, and waits for one up to a time. A free one is taken also when the time has
// passed before it was looked at.
func (t *transfer) takeSlot(ctx context.Context, wait time.Duration) error {
	select {
	case t.slots <- struct{}{}:
		return nil
	default:
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	select {
	case t.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-late.C:
		return ErrBusy
	}
}

func (t *transfer) open(fs vfs.FS, dir string, state *pebble.Options) error {
	state = state.Clone()
	state.EnsureDefaults()
	t.fs, t.dir = fs, transferDir(dir)
	t.slots = make(chan struct{}, maxExports)
	// The last level's tables would be written on the promise that nothing is below.
	t.writing = state.MakeWriterOptions(len(state.Levels)-2, streamTables)
	t.writing.Compression = streamCompression
	t.reading = state.MakeReaderOptions()
	if err := fs.RemoveAll(t.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove what was left of a transfer: %w", err)
	}
	return nil
}

// transferDir returns the directory for transfers in that of a store.
func transferDir(dir string) string { return filepath.Join(dir, "export") }

// removeTransfers deletes what was left of transfers in the directory of a store that is not open, and
// reports whether it did. Pebble's lock shows that no other process uses the directory.
func removeTransfers(fs vfs.FS, dir string) bool {
	lock, err := pebble.LockDirectory(filepath.Join(dir, stateDir), fs)
	if err != nil {
		return false
	}
	err = fs.RemoveAll(transferDir(dir))
	return errors.Join(err, lock.Close()) == nil
}

// makeDir makes a directory for one transfer.
func (t *transfer) makeDir(kind string, shard Shard) (string, error) {
	name := fmt.Sprintf("%s-%d-%d", kind, shard, t.next.Add(1))
	dir := filepath.Join(t.dir, name)
	if err := t.fs.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make room for a transfer: %w", err)
	}
	return dir, nil
}

func sectionPath(dir string, n int) string {
	return filepath.Join(dir, strconv.Itoa(n)+".sst")
}
