package actors

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/storage"
)

// fakeTails are tails as a test wants them.
type fakeTails struct {
	crowding atomic.Int64
	awaited  sync.Map // by workspace
}

func (f *fakeTails) Crowding() int { return int(f.crowding.Load()) }

func (f *fakeTails) TakeAwaited(workspace storage.ID) bool {
	_, is := f.awaited.LoadAndDelete(workspace)
	return is
}

// running counts how many of so many queries, each of a second, run at once.
func (t *indexTurns) running(queries int) (most int64, took time.Duration) {
	var mu sync.Mutex
	var now int64
	count := func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		now += n
		most = max(most, now)
	}
	began := time.Now()
	done := make(chan struct{})
	for range queries {
		go func() {
			defer func() { done <- struct{}{} }()
			turn := t.begin(storage.ID{}, false)
			if turn == nil {
				return
			}
			count(1)
			time.Sleep(time.Second) // the bubble's clock
			count(-1)
			t.end(turn, time.Second)
		}()
	}
	for range queries {
		<-done
	}
	return most, time.Since(began)
}

func TestIndexTurns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		crowding int
		most     int64
		took     time.Duration
	}{
		{0, 1, 9*time.Second + 8*longestIndexRest},
		{indexCrowding - 1, 1, 9*time.Second + 8*longestIndexRest},
		{indexCrowding, 2, 5 * time.Second},
		{2 * indexCrowding, 3, 3 * time.Second},
		{1000, maxIndexTurns, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			tails := &fakeTails{}
			tails.crowding.Store(int64(c.crowding))
			turns := newIndexTurns(t.Context(), 1, tails)
			if most, took := turns.running(9); most != c.most || took != c.took {
				t.Errorf("crowded %d times: %d at once, %s, want %d, %s", c.crowding, most, took, c.most, c.took)
			}
			time.Sleep(longestIndexRest) // the last rest
		})
	}
}

// More places come to those that wait already, and a node that closes lets nobody wait.
func TestIndexTurns_Waiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopped, stop := context.WithCancel(t.Context())
		tails := &fakeTails{}
		turns := newIndexTurns(stopped, 1, tails)
		first := turns.begin(storage.ID{}, false)
		if first == nil {
			t.Fatal("the first place is not free")
		}
		var got [3]bool
		for i := range got {
			go func() { got[i] = turns.begin(storage.ID{}, false) != nil }()
		}
		synctest.Wait()
		tails.crowding.Store(indexCrowding)
		turns.end(first, time.Second) // frees one place at once, and makes another
		synctest.Wait()
		begun := 0
		for _, ok := range got {
			if ok {
				begun++
			}
		}
		if begun != 2 {
			t.Errorf("%d begin, want 2", begun)
		}
		stop()
		synctest.Wait()
		if turns.taken != 2 || len(turns.waiting) > 0 {
			t.Errorf("%d places are taken, %d wait", turns.taken, len(turns.waiting))
		}
	})
}

// A segment that searches need has every other place, without a rest; the others have theirs in their order.
func TestIndexTurns_Awaited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tails := &fakeTails{}
		turns := newIndexTurns(t.Context(), 1, tails)
		type query struct {
			workspace byte
			segment   bool
		}
		var mu sync.Mutex
		var order []query
		began := time.Now()
		var ended sync.WaitGroup
		for _, q := range []query{{1, true}, {2, true}, {2, true}, {3, false}, {3, true}, {3, true}, {4, true}} {
			ended.Go(func() {
				turn := turns.begin(storage.ID{q.workspace}, q.segment)
				mu.Lock()
				order = append(order, q)
				mu.Unlock()
				time.Sleep(longestIndexRest) // the bubble's clock
				if q.workspace == 3 {
					tails.awaited.Store(storage.ID{3}, true) // it is searched all the time
				}
				turns.end(turn, longestIndexRest)
			})
			synctest.Wait() // they come in this order
			tails.awaited.Store(storage.ID{3}, true)
		}
		ended.Wait()
		want := []query{{1, true}, {3, true}, {2, true}, {3, true}, {2, true}, {3, false}, {4, true}}
		if !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		// Seven queries, and the rests of those that nothing awaited but the last.
		if took := time.Since(began); took != 11*longestIndexRest {
			t.Errorf("they take %s, want %s", took, 11*longestIndexRest)
		}
		time.Sleep(longestIndexRest) // the last rest
	})
}
