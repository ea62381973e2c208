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

// tableNews is how often a failure that goes on is logged.
const tableNews = 10 * time.Second

// pacer is the file system of one instance. Pebble tries a failed flush or
// compaction again at once and for ever; here the creation of its first file waits
// a while. Only those wait: the log's writes, and whoever answers after them, have
// nothing to do with it.
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
	if now.Sub(p.logged) >= tableNews {
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

// Unwrap gives the file system below.
func (p *pacer) Unwrap() vfs.FS { return p.FS }
