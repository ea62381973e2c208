package storage

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// tablePause is how long after a flush or compaction that failed no other begins.
const tablePause = 500 * time.Millisecond

// failureEvery is how often a failure that continues is logged.
const failureEvery = 10 * time.Second

// pacer is the file system of one instance. Pebble repeats a failed flush or compaction at once and
// without end; the pacer delays the creation of its first file. Nothing else waits: writes to the
// log and their callers are not delayed.
type pacer struct {
	vfs.FS
	logger  *slog.Logger
	name    string
	closing <-chan struct{}

	mu     sync.Mutex
	failed time.Time // the last failure
	logged time.Time
}

// listener has Pebble report failures to the pacer.
func (p *pacer) listener() *pebble.EventListener {
	return &pebble.EventListener{BackgroundError: p.note}
}

// note is called with locks of Pebble's held and returns at once.
func (p *pacer) note(err error) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = now
	if now.Sub(p.logged) >= failureEvery {
		p.logged = now
		p.logger.Error("writing a table failed, and is tried again until it succeeds", "component", "pebble", "instance", p.name, "error", err.Error())
	}
}

// Create makes a file; a table or a file of values waits out the pause.
func (p *pacer) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob") {
		p.pause()
	}
	return p.FS.Create(name, category)
}

func (p *pacer) pause() {
	p.mu.Lock()
	wait := time.Until(p.failed.Add(tablePause))
	p.mu.Unlock()
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.closing:
	}
}

// Unwrap returns the wrapped file system.
func (p *pacer) Unwrap() vfs.FS { return p.FS }
