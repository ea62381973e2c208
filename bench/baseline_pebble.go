package bench

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// writes is the size of one create's writes.
type writes struct {
	Keys  int `json:"keys"`
	Bytes int `json:"bytes"`
	// Assumed is set if the node gave no figures and these are used instead.
	Assumed bool `json:"assumed,omitempty"`
}

// String returns the size as a line of the report.
func (w writes) String() string {
	text := fmt.Sprintf("a create writes %d keys, %d bytes", w.Keys, w.Bytes)
	if w.Assumed {
		text += " (assumed: the node's metrics were not to be had)"
	}
	return text
}

// assumedWrites are those of a create with every index, by the time of writing.
var assumedWrites = writes{Keys: 16, Bytes: 2700, Assumed: true}

// rawPebble is a database whose only work is to commit synced batches of a
// create's keys and bytes: what a create could reach if it were nothing but that.
type rawPebble struct {
	db    *pebble.DB
	dir   string
	size  writes
	taken atomic.Uint64
}

func openRawPebble(dir string, size writes) (*rawPebble, error) {
	dir, err := os.MkdirTemp(dir, scratchName)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	db, err := pebble.Open(filepath.Join(dir, "raw"), &pebble.Options{
		FormatMajorVersion: pebble.FormatNewest, MemTableSize: 32 << 20, MemTableStopWritesThreshold: 4,
		Logger: silent{},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("bench: open a database: %w", err), os.RemoveAll(dir))
	}
	return &rawPebble{db: db, dir: dir, size: size}, nil
}

func (r *rawPebble) close() error {
	return errors.Join(r.db.Close(), os.RemoveAll(r.dir))
}

// committer is one writer; it does in place of requests what a connection does.
func (r *rawPebble) committer() doer {
	const key = 40
	return &committer{raw: r, key: make([]byte, key), value: make([]byte, max(1, r.size.Bytes/r.size.Keys-key))}
}

type committer struct {
	raw        *rawPebble
	key, value []byte
}

func (c *committer) do([]byte) (int, []byte, error) {
	n := c.raw.taken.Add(1)
	b := c.raw.db.NewBatch()
	for i := range c.raw.size.Keys {
		// Tables first, then the workspace, then the time: as far apart as a create's.
		c.key[0] = byte(i)
		binary.BigEndian.PutUint64(c.key[8:], n%64)
		binary.BigEndian.PutUint64(c.key[16:], n)
		binary.BigEndian.PutUint64(c.value, n*uint64(i+1)*0x9e3779b97f4a7c15)
		if err := b.Set(c.key, c.value, nil); err != nil {
			return 0, nil, err
		}
	}
	if err := b.Commit(pebble.Sync); err != nil {
		return 0, nil, err
	}
	return 0, nil, b.Close()
}

func (c *committer) close() {}

type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}

// Fatalf is called when a write failed: the measurement is over.
func (silent) Fatalf(format string, args ...any) { panic("bench: " + fmt.Sprintf(format, args...)) }
