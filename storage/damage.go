package storage

import (
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// IsDamage reports whether an error of a read says that a part of the state's files is missing, or is
// not what was written.
func IsDamage(err error) bool { return pebble.IsCorruptionError(err) }

// damaged is told of damage in a file of the state. Readers of that part get the error, others notice
// nothing. Without a listener Pebble would end the process, at each read. It is called on the goroutine
// of the reader or the compaction, and returns at once.
func (p *pacer) damaged(info pebble.DataCorruptionInfo) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.noticed) < failureEvery {
		return
	}
	p.noticed = now
	p.logger.Error("a file of the state is damaged: what is in that part of it can't be read", "component", "pebble", "instance", p.name, "file", info.Path, "error", info.Details.Error())
}
