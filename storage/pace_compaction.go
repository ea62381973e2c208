package storage

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// compactionCategory is the category that Pebble gives the files of compactions, but not those of
// flushes, which must never fall behind.
const compactionCategory = vfs.DiskWriteCategory("pebble-compaction")

const (
	// compactionWork is how long a compaction works between two rests.
	compactionWork = 4 * time.Millisecond
	// restShare is the length of a rest, in times of the work before it, while level 0 has at most
	// easyLevels sublevels. A compaction at full speed takes a whole processor for a second or two, and
	// the requests of that time wait.
	restShare  = 2
	easyLevels = 4
	// longestWork bounds the work that counts for one rest.
	longestWork = 25 * time.Millisecond
	// urgentLevels is the number of sublevels of level 0 from which compactions don't rest: reads
	// slow down with each, and writes from slowedLevels on. In between, rests get shorter with each.
	// So a load that lasts gets as much of the processors as its compactions need, and not by turns
	// too little and a whole one.
	urgentLevels = 10
	// urgencyEvery is how often the sublevels are counted.
	urgencyEvery = 250 * time.Millisecond
)

// rests are those of all compactions of one instance.
type rests struct {
	// sublevels counts the sublevels of level 0; nil until the instance is open.
	sublevels atomic.Pointer[func() int32]
	// short reports whether the disk is short of space, which compactions give back.
	short   func() bool
	closing <-chan struct{}

	mu     sync.Mutex
	since  time.Time     // the last write of a compaction, or the end of the rest before it
	work   time.Duration // since the last rest
	looked time.Time     // when the sublevels were counted
	share  float64       // length of a rest, in times of the work before it
}

// worked notes that a compaction is about to write, and returns how long it should rest before.
func (r *rests) worked() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.work += min(now.Sub(r.since), longestWork)
	r.since = now
	if r.work < compactionWork {
		return 0
	}
	work := min(r.work, longestWork)
	r.work = 0
	sublevels := r.sublevels.Load()
	if sublevels == nil || r.short() {
		return 0
	}
	if now.Sub(r.looked) >= urgencyEvery {
		r.looked, r.share = now, shareOf((*sublevels)())
	}
	return time.Duration(r.share * float64(work))
}

// shareOf returns the length of a rest, in times of the work before it, at a number of sublevels.
func shareOf(sublevels int32) float64 {
	left := min(max(urgentLevels-sublevels, 0), urgentLevels-easyLevels)
	return restShare * float64(left) / (urgentLevels - easyLevels)
}

// rest waits, unless the store is closing.
func (r *rests) rest(wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.closing:
	}
	r.mu.Lock()
	r.since = time.Now()
	r.mu.Unlock()
}

// compactionFile is a file that a compaction writes. Its writer rests in turns with its work.
type compactionFile struct {
	vfs.File
	rests *rests
}

func (f compactionFile) Write(b []byte) (int, error) {
	if wait := f.rests.worked(); wait > 0 {
		f.rests.rest(wait)
	}
	return f.File.Write(b)
}
