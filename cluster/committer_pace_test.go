package cluster

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// An entry waits before Raft gets it, and proposals that come meanwhile are refused or wait as ever.
func TestCommitter_WaitsForThePace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		ct := newPacedCommitterTest(t, func(*tuning) {}, func(bytes int) time.Duration {
			asked.Add(int64(bytes))
			return 300 * time.Millisecond
		})
		entries := func() int {
			ct.held.mu.Lock()
			defer ct.held.mu.Unlock()
			return len(ct.held.entries)
		}
		answer := func(row string) (err error, answered bool) {
			ct.mu.Lock()
			defer ct.mu.Unlock()
			err, answered = ct.answers[row]
			return err, answered
		}
		ct.c.beginEpoch(7)
		ct.propose(7, "first")
		synctest.Wait()
		if n := entries(); n != 0 || asked.Load() < int64(len("first")) {
			t.Fatalf("%d entries went before the wait, for %d bytes", n, asked.Load())
		}
		ct.propose(7, "second")
		time.Sleep(300 * time.Millisecond) // of the bubble
		synctest.Wait()
		if n := entries(); n != 1 {
			t.Fatalf("%d entries after one wait", n)
		}
		ct.propose(6, "of an old epoch")
		ct.answerNext(nil)
		time.Sleep(300 * time.Millisecond) // of the bubble
		synctest.Wait()
		ct.answerNext(nil)
		synctest.Wait()
		for _, row := range []string{"first", "second"} {
			if err, answered := answer(row); err != nil || !answered {
				t.Errorf("%s is answered %v, %t", row, err, answered)
			}
		}
		if err, _ := answer("of an old epoch"); !errors.Is(err, errNotOwner) {
			t.Errorf("the proposal of an old epoch is answered %v", err)
		}
		ct.propose(7, "last")
		synctest.Wait()
		began := time.Now()
		go func() { // stop ends the wait; the entry is answered by Raft
			synctest.Wait()
			ct.answerNext(nil)
		}()
		ct.c.stop()
		if took := time.Since(began); took > 0 {
			t.Errorf("stop waited for %s", took)
		}
		if err, answered := answer("last"); !answered || err != nil && !errors.Is(err, errNotOwner) {
			t.Errorf("the last proposal is answered %v, %t", err, answered)
		}
	})
}

// queued returns the number of proposals that wait, and their bytes.
func (c *committer) queued() (batches, bytes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lanes.count(), c.lanes.small.bytes + c.lanes.large.bytes
}
