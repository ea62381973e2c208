package storage

import (
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// tablePause is how long after a flush or compaction that failed no other begins.
const tablePause = 500 * time.Millisecond

// failureEvery is how often a failure that continues is logged.
const failureEvery = 10 * time.Second

// pacer is the file system of one instance. Pebble repeats a failed flush or compaction at once and
// without end; the pacer delays the creation of its first file, or the read at which it fails (damage.go).
// Compactions, and flushes of the state, rest in turns with their work. Nothing else waits but readers of a
// damaged part: writes to the log and their callers are not delayed. Tables are written in large pieces.
type pacer struct {
	vfs.FS
	logger  *slog.Logger
	name    string
	closing <-chan struct{}
	found   chan<- damage // nil: nobody checks damage

	compactions, flushes rests
	hurry                atomic.Int32 // callers who wait for a flush
	raised               atomic.Bool  // Pebble has raised the format of its files

	mu      sync.Mutex
	failed  time.Time // the last failure
	logged  time.Time
	noticed time.Time // when damage was logged
}

// listener has Pebble report failures to the pacer, damage, and a new format of its files.
func (p *pacer) listener() *pebble.EventListener {
	return &pebble.EventListener{
		BackgroundError: p.note, DataCorruption: p.damaged,
		FormatUpgrade: func(pebble.FormatMajorVersion) { p.raised.Store(true) },
	}
}

// watch has compactions and flushes rest from now on, as long as the instance can afford it. Flushes of
// the log are short, and every write waits for them.
func (p *pacer) watch(db *pebble.DB) {
	compactions := func() float64 { return compactionShare(db.Metrics().Levels[0].Sublevels) }
	p.compactions.wanted.Store(&compactions)
	if p.name != stateDir {
		return
	}
	flushes := func() float64 {
		if p.hurry.Load() > 0 {
			return 0
		}
		return flushRest(db.Metrics().MemTable.Count)
	}
	p.flushes.wanted.Store(&flushes)
}

// hurried runs do, which waits for a flush.
func (p *pacer) hurried(do func() error) error {
	p.hurry.Add(1)
	defer p.hurry.Add(-1)
	return do()
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
	if !strings.HasSuffix(name, ".sst") && !strings.HasSuffix(name, ".blob") {
		return p.FS.Create(name, category)
	}
	p.pause()
	f, err := p.FS.Create(name, category)
	if err != nil {
		return nil, err
	}
	switch category {
	case compactionCategory, rewriteCategory:
		f = restingFile{f, &p.compactions}
	case flushCategory:
		f = restingFile{f, &p.flushes}
	}
	if strings.HasSuffix(name, ".blob") {
		return f, nil // see bufferedFile
	}
	return newBufferedFile(f), nil
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
