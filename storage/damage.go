package storage

import (
	"errors"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// IsDamage reports whether an error of a read says that a part of an instance's files is missing, is not
// what was written, or can't be read by the disk.
func IsDamage(err error) bool { return pebble.IsCorruptionError(err) || errors.Is(err, syscall.EIO) }

// damaged is told of damage in a file. Readers of that part get the error, others notice nothing. Without
// a listener Pebble would end the process, at each read. It is called on the goroutine of the reader or
// the compaction, and returns at once.
func (p *pacer) damaged(info pebble.DataCorruptionInfo) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.noticed) < failureEvery {
		return
	}
	p.noticed = now
	what := "state"
	if p.name == raftDir {
		what = "replication log"
	}
	p.logger.Error("a file of the "+what+" is damaged: what is in that part of it can't be read", "component", "pebble", "instance", p.name, "file", info.Path, "error", info.Details.Error())
}
