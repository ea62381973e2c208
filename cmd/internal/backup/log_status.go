package backup

import (
	"math"
	"time"
)

// LogStatus is what a node knows of the archived logs of its cluster.
type LogStatus struct {
	// Known is set once a pass of this node has ended.
	Known bool
	// Reach is the moment up to which the logs of all shards are archived; zero: none is.
	Reach time.Time
	// Gaps are the shards whose archived log does not begin where the image of the newest backup
	// ends: they can't be restored to a moment behind it.
	Gaps []int
	// Segments and Bytes count the segments that this node has archived, and the bytes of their
	// entries. Failed counts its passes that failed, and Lost the gaps that it found.
	Segments, Bytes, Failed, Lost uint64
	// Failures are the passes since the last success, and Error says why the last one failed.
	Failures int
	Error    string
}

// Age is how old the newest archived entry may be: a write that was acknowledged before is in the
// archive. Without archived logs it is infinite.
func (s *LogStatus) Age(now time.Time) float64 {
	if s.Reach.IsZero() {
		return math.Inf(1)
	}
	return max(0, now.Sub(s.Reach).Seconds())
}

// Status returns what this node knows.
func (a *LogArchiver) Status() LogStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status
}

// note counts the end of a pass.
func (a *LogArchiver) note(err error) {
	newest, _ := a.Newest()
	reach, gaps := a.summary(newest)
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &a.status
	s.Known, s.Reach, s.Gaps = true, reach, gaps
	if err == nil {
		s.Failures, s.Error = 0, ""
		return
	}
	s.Failed++
	s.Failures++
	s.Error = err.Error()
}

// summary returns the moment that the logs of all shards reach, and the shards with a gap behind the
// newest backup.
func (a *LogArchiver) summary(newest *Manifest) (reach time.Time, gaps []int) {
	for shard := range a.Logs.Shards() + 1 {
		log, ok := a.known[shard]
		if !ok {
			log = archivedLog{}
		}
		if shard == 0 || log.At.Before(reach) {
			reach = log.At
		}
		if image := newest.file(shard); ok && image != nil && log.After > image.Index {
			gaps = append(gaps, shard)
		}
	}
	return reach, gaps
}
