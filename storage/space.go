package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Space watches the free bytes of the file system that holds a store. Below a reserve the disk
// counts as full: writers should stop, so that the rest is left for flushes, compactions and the
// ends of the logs, which free space again. Reads need no space. Above the reserve and a quarter
// more the disk counts as free.
type Space struct {
	fs     vfs.FS
	dir    string
	logger *slog.Logger
	asked  uint64 // the reserve asked for; 0: by the size of the file system

	presence presence
	gone     atomic.Pointer[error] // the directory was lost
	ballast  ballast
	watched  atomic.Bool
	full     atomic.Bool
	free     atomic.Uint64
	reserve  atomic.Uint64

	met   chan struct{} // capacity 1: a write met a full disk
	quit  chan struct{}
	ended chan struct{}

	mu     sync.Mutex
	onFull []func(bool)
	onLow  []func()
	onLost []func(error)

	// Owned by the watching goroutine.
	reported bool // argument of the last call of onFull
	warned   bool // a failed measurement was logged
	lowAt    time.Time
}

// Bounds of the reserve: enough to write out every memtable (128 MiB of the state's and 32 of the
// logs', which shrink on the way) and to merge the result, and less on a small file system.
const (
	mostReserve  = 256 << 20
	reserveShare = 5 // a fifth of the file system
	mostBallast  = 64 << 20
	ballastShare = 16
)

// Reserve returns the number of bytes to keep free on a file system of a size, of which asked were asked
// for; 0: none in particular.
func Reserve(asked, total uint64) uint64 {
	if asked != 0 {
		return asked
	}
	return min(total/reserveShare, mostReserve)
}

// lowEvery is the shortest time between two calls of OnLow's function.
const lowEvery = 2 * time.Second

// fillRate, in bytes per second, is faster than disks are filled: no check is needed before the
// reserve could be reached at this rate. The pause stays between shortestLook and longestLook.
const (
	fillRate     = 1 << 30
	shortestLook = 50 * time.Millisecond
	longestLook  = time.Second
	fullLook     = 250 * time.Millisecond
)

func newSpace(fs vfs.FS, dir string, logger *slog.Logger) *Space {
	return &Space{
		fs: fs, dir: dir, logger: logger,
		presence: presence{fs: fs},
		ballast:  ballast{fs: fs, path: filepath.Join(dir, "ballast")},
		met:      make(chan struct{}, 1),
		quit:     make(chan struct{}),
		ended:    make(chan struct{}),
	}
}

// Full reports whether changes should be refused.
func (s *Space) Full() bool { return s.full.Load() }

// Shortage says how little space is left, and so which writes are still allowed.
type Shortage uint8

const (
	// Ample space: all changes are taken.
	Ample Shortage = iota
	// Short is less than the reserve: writes that free space go on, and the operator's work.
	Short
	// Scarce is less than half the reserve: deletions of whole workspaces go on, and the operator's
	// work. Otherwise deletions by many tenants could use up the space that these need.
	Scarce
	// Spent is less than a quarter of the reserve: the rest is for flushes and compactions.
	Spent
)

// Upper bounds of the levels at which space counts as scarce and as spent.
const (
	mostScarce = mostReserve / 2
	mostSpent  = mostReserve / 4
)

// Shortage tells how little space is left, as it was last measured.
func (s *Space) Shortage() Shortage {
	if !s.full.Load() {
		return Ample
	}
	free, reserve := s.free.Load(), s.reserve.Load()
	switch {
	case free < min(reserve/4, mostSpent):
		return Spent
	case free < min(reserve/2, mostScarce):
		return Scarce
	}
	return Short
}

// SpentSpare returns the number of bytes that may still be taken while space counts as spent, by the
// entries without which a shard could get no owner: those above an eighth of the reserve.
func (s *Space) SpentSpare() uint64 {
	free := s.free.Load()
	return free - min(free, s.reserve.Load()/8, mostSpent/2)
}

// spare returns the number of free bytes above those at which space counts as scarce, or false if the
// space was not measured.
func (s *Space) spare() (bytes uint64, measured bool) {
	free, reserve := s.free.Load(), s.reserve.Load()
	return free - min(free, reserve/2, mostScarce), reserve != 0
}

// Free is the number of bytes that were free when last measured; 0 before Watch.
func (s *Space) Free() uint64 { return s.free.Load() }

// Reserve is the number of free bytes below which the disk counts as full.
func (s *Space) Reserve() uint64 { return s.reserve.Load() }

// OnFull has fn called at every change of Full, in order and from one goroutine.
// It must not block: nothing is measured meanwhile. Near the reserve a busy node
// may come and go every second or so.
func (s *Space) OnFull(fn func(full bool)) {
	s.mu.Lock()
	s.onFull = append(s.onFull, fn)
	s.mu.Unlock()
}

// OnLow sets a function that is called repeatedly while less than twice the reserve is free. It
// should give back space. It must not block.
func (s *Space) OnLow(fn func()) {
	s.mu.Lock()
	s.onLow = append(s.onLow, fn)
	s.mu.Unlock()
}

// OnLost has fn called once when the store's directory is gone. It must not block.
func (s *Space) OnLost(fn func(error)) {
	s.mu.Lock()
	s.onLost = append(s.onLost, fn)
	s.mu.Unlock()
}

// Lost returns an error if the store's directory is gone; nil while it exists. A store without its
// directory can't be closed: it would wait for flushes that never succeed.
func (s *Space) Lost() error {
	if err := s.gone.Load(); err != nil {
		return *err
	}
	return nil
}

// Look looks at once whether the store's directory exists, and returns what Lost does.
func (s *Space) Look() error {
	if err := s.presence.lost(); err != nil {
		s.lose(err)
	}
	return s.Lost()
}

// lose notes that the directory is gone, and refuses all changes from then on.
func (s *Space) lose(err error) {
	s.free.Store(0)
	s.full.Store(true)
	if !s.gone.CompareAndSwap(nil, &err) {
		return
	}
	s.mu.Lock()
	onLost := s.onLost
	s.mu.Unlock()
	for _, fn := range onLost {
		fn(err)
	}
}

// measure returns the free bytes and the size of the file system.
func (s *Space) measure() (free, total uint64, err error) {
	usage, err := s.fs.GetDiskUsage(s.dir)
	if err != nil {
		return 0, 0, fmt.Errorf("measure the free space of %s: %w", s.dir, err)
	}
	return usage.AvailBytes, usage.TotalBytes, nil
}

// room makes sure that a store can be opened: with less than a ballast's worth of
// space Pebble would fail halfway. The ballast itself is given up for it.
func (s *Space) room() error {
	free, total, err := s.measure()
	if err != nil { // nothing can be said, so nothing is
		return nil
	}
	least := ballastFor(total)
	if free < least && s.ballast.drop() {
		if free, _, err = s.measure(); err != nil {
			return nil
		}
	}
	if free < least {
		return fmt.Errorf("the disk that holds %s %w: %d MiB are free and %d MiB are needed to start; free some space and start again", s.dir, errFull, free>>20, least>>20)
	}
	return nil
}

func ballastFor(total uint64) uint64 { return min(total/ballastShare, mostBallast) }

// watch starts measuring with a first look; end stops it.
func (s *Space) watch(reserve uint64) {
	s.asked = reserve
	if next, ok := s.check(); ok {
		s.watched.Store(true)
		go s.run(next)
	}
}

func (s *Space) run(next time.Duration) {
	defer close(s.ended)
	timer := time.NewTimer(next)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-s.met:
		case <-s.quit:
			return
		}
		next, _ = s.check()
		timer.Reset(next)
	}
}

// stopWatching stops the watching.
func (s *Space) stopWatching() {
	close(s.quit)
	if s.watched.Load() {
		<-s.ended
	}
}

// check measures once, reports changes, and returns the pause until the next look, or false if the
// file system can't be measured.
func (s *Space) check() (time.Duration, bool) {
	if err := s.presence.lost(); err != nil {
		s.lose(err)
		return longestLook, true
	}
	free, total, err := s.measure()
	if errors.Is(err, vfs.ErrUnsupported) {
		return 0, false
	}
	if err != nil {
		if !s.warned {
			s.warned = true
			s.logger.Warn("the disk can't be watched", "error", err)
		}
		return longestLook, true
	}
	s.warned = false
	reserve := Reserve(s.asked, total)
	s.free.Store(free)
	s.reserve.Store(reserve)
	switch {
	case free < reserve:
		s.full.Store(true)
	case free >= reserve+reserve/4 && !errors.Is(s.ballast.create(ballastFor(total)), syscall.ENOSPC):
		// If the ballast took too much of it, the next look says so.
		s.full.Store(false)
	}
	s.notify(free, reserve)
	if s.full.Load() {
		return fullLook, true
	}
	return min(max(time.Duration(float64(free-min(free, reserve))/fillRate*float64(time.Second)), shortestLook), longestLook), true
}

// notify calls the functions that were set for changes.
func (s *Space) notify(free, reserve uint64) {
	s.mu.Lock()
	onFull, onLow := s.onFull, s.onLow
	s.mu.Unlock()
	full := s.full.Load()
	if full != s.reported {
		s.reported = full
		if full {
			s.lowAt = time.Time{}
			s.logger.Warn("the disk is full: changes are refused until there is space", "dir", s.dir, "free", free, "reserve", reserve)
		} else {
			s.logger.Info("the disk has space again: changes are taken", "dir", s.dir, "free", free, "reserve", reserve)
		}
		for _, fn := range onFull {
			fn(full)
		}
	}
	if now := time.Now(); (full || free/2 < reserve) && now.Sub(s.lowAt) >= lowEvery {
		s.lowAt = now
		for _, fn := range onLow {
			fn()
		}
	}
}

// spent is called by a write that met a full disk, before its second attempt; all other writes wait
// until it returns.
func (s *Space) spent() {
	if s.watched.Load() { // otherwise nothing would notice when space is free again
		s.free.Store(0)
		s.full.Store(true)
	}
	if s.ballast.drop() {
		s.logger.Warn("the disk is full to the last byte: the ballast is given up", "dir", s.dir)
	}
	select {
	case s.met <- struct{}{}:
	default:
	}
}
