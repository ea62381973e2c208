package cluster

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// leaseTest is a lease of 600 on a clock of its own, whose rounds wait to be
// answered.
type leaseTest struct {
	lease
	now    atomic.Int64
	rounds atomic.Int64
	answer chan error
	beat   atomic.Int64 // when the heartbeat was sent that was answered last; 0 for none
}

func newLease() *leaseTest {
	lt := &leaseTest{answer: make(chan error)}
	lt.now.Store(1000)
	lt.length = 600
	lt.clock = lt.now.Load
	lt.proven = func(uint64, int64) (int64, bool) { return lt.beat.Load(), lt.beat.Load() != 0 }
	lt.verify = func(_ uint64, start int64) (int64, error) {
		lt.rounds.Add(1)
		return start, <-lt.answer
	}
	return lt
}

// reads runs n readers and waits until they read or wait.
func (lt *leaseTest) reads(n int) (answers func() []error) {
	var (
		mu  sync.Mutex
		got []error
	)
	for range n {
		go func() {
			err := lt.barrier(time.Time{})
			mu.Lock()
			got = append(got, err)
			mu.Unlock()
		}()
	}
	synctest.Wait()
	return func() []error {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return append([]error(nil), got...)
	}
}

func wantAnswers(t *testing.T, got []error, n int, want error) {
	t.Helper()
	if len(got) != n {
		t.Fatalf("%d answered, want %d", len(got), n)
	}
	for _, err := range got {
		if !errors.Is(err, want) {
			t.Fatalf("answered %v, want %v", err, want)
		}
	}
}

func TestLease_OneRoundServesAllAndCountsFromItsStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lt := newLease()
		lt.beginEpoch(1)
		answers := lt.reads(20)
		wantAnswers(t, answers(), 0, nil)
		lt.now.Store(1500) // the round takes 500
		lt.answer <- nil
		wantAnswers(t, answers(), 20, nil)
		if n := lt.rounds.Load(); n != 1 {
			t.Fatalf("%d rounds", n)
		}
		lt.now.Store(1599)
		lt.reads(1)
		if n := lt.rounds.Load(); n != 2 { // asked for ahead: it is valid for 1 more
			t.Fatalf("%d rounds", n)
		}
		lt.now.Store(1600)
		late := lt.reads(3)
		wantAnswers(t, late(), 0, nil)
		lt.answer <- nil
		wantAnswers(t, late(), 3, nil)
		lt.endEpoch()
		lt.awaitRound()
	})
}

func TestLease_RenewsAheadOnlyForReaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lt := newLease()
		lt.beginEpoch(1)
		first := lt.reads(1)
		lt.answer <- nil
		wantAnswers(t, first(), 1, nil)
		lt.now.Store(1300)
		wantAnswers(t, lt.reads(5)(), 5, nil)
		if n := lt.rounds.Load(); n != 1 {
			t.Fatalf("renewed early: %d rounds", n)
		}
		lt.now.Store(1500) // in the last fifth
		wantAnswers(t, lt.reads(5)(), 5, nil)
		if n := lt.rounds.Load(); n != 2 {
			t.Fatalf("%d rounds", n)
		}
		lt.answer <- nil
		synctest.Wait()
		lt.now.Store(2050) // 1500 + 550
		wantAnswers(t, lt.reads(1)(), 1, nil)
		lt.answer <- nil
		lt.endEpoch()
		lt.awaitRound()
		if n := lt.rounds.Load(); n != 3 {
			t.Fatalf("%d rounds", n)
		}
	})
}

// While heartbeats are answered the readers of a group need no rounds.
func TestLease_ExtendedByHeartbeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lt := newLease()
		lt.beat.Store(990)
		lt.beginEpoch(1)
		wantAnswers(t, lt.reads(5)(), 5, nil)
		for now := int64(1000); now < 5000; now += 10 { // heartbeats every 450, answered after 20
			lt.now.Store(now)
			lt.beat.Store(max(990, 1000+(now-1020)/450*450))
			wantAnswers(t, lt.reads(2)(), 2, nil)
		}
		if n := lt.rounds.Load(); n != 0 {
			t.Fatalf("%d rounds", n)
		}
		// No heartbeat is answered from now on.
		lt.beat.Store(4600)
		lt.now.Store(5079)
		wantAnswers(t, lt.reads(1)(), 1, nil)
		if n := lt.rounds.Load(); n != 0 {
			t.Fatalf("%d rounds before the last fifth", n)
		}
		lt.now.Store(5080)
		wantAnswers(t, lt.reads(3)(), 3, nil)
		if n := lt.rounds.Load(); n != 1 {
			t.Fatalf("%d rounds", n)
		}
		lt.now.Store(5200)
		late := lt.reads(2)
		wantAnswers(t, late(), 0, nil)
		lt.answer <- errors.New("deposed")
		if got := late(); len(got) != 2 || got[0] == nil || got[1] == nil {
			t.Fatalf("read after the lease: %v", got)
		}
		lt.endEpoch()
		lt.beat.Store(5200)
		if err := lt.barrier(time.Time{}); !errors.Is(err, errNotOwner) || lt.until.Load() != 0 || lt.open.Load() {
			t.Fatalf("extended after the end of the epoch: %v", err)
		}
		lt.awaitRound()
	})
}

func TestLease_SlowRoundGivesNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lt := newLease()
		lt.beginEpoch(1)
		answers := lt.reads(2)
		lt.now.Store(5000) // stopped for longer than a lease
		lt.answer <- nil
		wantAnswers(t, answers(), 0, nil)
		lt.answer <- nil
		wantAnswers(t, answers(), 2, nil)
		lt.endEpoch()
		lt.awaitRound()
	})
}

func TestLease_LostLeadership(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lt := newLease()
		if err := lt.barrier(time.Time{}); !errors.Is(err, errNotOwner) {
			t.Fatalf("before it is owned: %v", err)
		}
		lt.beginEpoch(1)
		failing := lt.reads(2)
		deposed := errors.New("deposed")
		lt.answer <- deposed
		wantAnswers(t, failing(), 2, deposed)
		var typed *Error
		if !errors.As(failing()[0], &typed) || !typed.NotApplied() {
			t.Fatal("a read that was not answered was not applied")
		}
		outliving := lt.reads(1)
		lt.endEpoch()
		lt.answer <- nil
		wantAnswers(t, outliving(), 1, errNotOwner)

		// A round of an earlier ownership proves nothing about this one.
		lt.beginEpoch(2)
		old := lt.reads(1)
		lt.endEpoch()
		lt.beginEpoch(3)
		lt.answer <- nil
		wantAnswers(t, old(), 0, nil)
		lt.answer <- nil
		wantAnswers(t, old(), 1, nil)
		lt.endEpoch()
		if err := lt.barrier(time.Time{}); !errors.Is(err, errNotOwner) {
			t.Fatalf("after it was lost: %v", err)
		}
		lt.awaitRound()
	})
}

func TestLease_Deadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lt := newLease()
		lt.beginEpoch(1)
		began := time.Now()
		if err := lt.barrier(began.Add(time.Second)); !errors.Is(err, errDeadline) || time.Since(began) != time.Second {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		lt.answer <- nil
		lt.endEpoch()
		lt.awaitRound()
	})
}

func BenchmarkReadBarrier(b *testing.B) {
	l := &lease{length: int64(time.Hour), clock: newLeaseClock(time.Now).now, proven: func(uint64, int64) (int64, bool) { return 0, false }, verify: func(_ uint64, start int64) (int64, error) { return start, nil }}
	l.beginEpoch(1)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := l.barrier(time.Time{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
