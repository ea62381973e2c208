package storage

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The categories that Pebble gives the files of compactions, of rewrites of files of values, and of
// flushes.
const (
	compactionCategory = vfs.DiskWriteCategory("pebble-compaction")
	rewriteCategory    = vfs.DiskWriteCategory("pebble-blob-file-rewrite")
	flushCategory      = vfs.DiskWriteCategory("pebble-memtable-flush")
)

const (
	// workBetween is how long a flush or compaction works between two rests.
	workBetween = 4 * time.Millisecond
	// longestWork bounds the work that counts for one rest.
	longestWork = 25 * time.Millisecond
)

const (
	// restShare is the length of a compaction's rest, in times of the work before it, while level 0 has
	// at most easyLevels sublevels. A compaction at full speed takes a whole processor for a second or
	// two, and the requests of that time wait.
	restShare  = 2
	easyLevels = 4
	// urgentLevels is the number of sublevels of level 0 from which compactions don't rest: reads
	// slow down with each, and writes from slowedLevels on. In between, rests get shorter with each.
	// So a load that lasts gets as much of the processors as its compactions need, and not by turns
	// too little and a whole one.
	urgentLevels = 10
	// urgencyEvery is how often the sublevels are counted.
	urgencyEvery = 250 * time.Millisecond
)

const (
	// flushShare is the length of a flush's rest, in times of the work before it, while at most
	// easyMemTables are there: the one being written and the one being flushed. Two more may fill
	// before Pebble lets writes wait. A flush takes a whole processor for a tenth of a second.
	flushShare    = 1
	easyMemTables = 2
	// flushUrgencyEvery is how often the memtables are counted.
	flushUrgencyEvery = 50 * time.Millisecond
)

// rests are those of all compactions, or of all flushes, of one instance.
type rests struct {
	// wanted returns the length of a rest, in times of the work before it. It is asked again after
	// every; nil until the instance is open.
	wanted atomic.Pointer[func() float64]
	every  time.Duration
	// short reports whether the disk is short of space. Then nothing rests: compactions give space back.
	short   func() bool
	closing <-chan struct{}

	mu    sync.Mutex
	since time.Time     // the last write, or the end of the rest before it
	work  time.Duration // since the last rest
	asked time.Time     // when wanted was asked
	share float64       // what it returned
}

// worked notes that a file is about to be written, and returns how long its writer should rest before.
func (r *rests) worked() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.work += min(now.Sub(r.since), longestWork)
	r.since = now
	if r.work < workBetween {
		return 0
	}
	work := min(r.work, longestWork)
	r.work = 0
	wanted := r.wanted.Load()
	if wanted == nil || r.short() {
		return 0
	}
	if now.Sub(r.asked) >= r.every {
		r.asked, r.share = now, (*wanted)()
	}
	return time.Duration(r.share * float64(work))
}

// compactionShare returns the length of a compaction's rest at a number of sublevels.
func compactionShare(sublevels int32) float64 {
	left := min(max(urgentLevels-sublevels, 0), urgentLevels-easyLevels)
	return restShare * float64(left) / (urgentLevels - easyLevels)
}

// flushRest returns the length of a flush's rest at a number of memtables.
func flushRest(memTables int64) float64 {
	if memTables > easyMemTables {
		return 0
	}
	return flushShare
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

// restingFile is a file whose writer rests in turns with its work.
type restingFile struct {
	vfs.File
	rests *rests
}

func (f restingFile) Write(b []byte) (int, error) {
	if wait := f.rests.worked(); wait > 0 {
		f.rests.rest(wait)
	}
	return f.File.Write(b)
}
