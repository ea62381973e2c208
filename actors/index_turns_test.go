package actors

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

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
			if !t.begin() {
				return
			}
			count(1)
			time.Sleep(time.Second) // the bubble's clock
			count(-1)
			t.end(time.Second)
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
			turns := newIndexTurns(t.Context(), 1, func() int { return c.crowding })
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
		var crowding atomic.Int64
		turns := newIndexTurns(stopped, 1, func() int { return int(crowding.Load()) })
		if !turns.begin() {
			t.Fatal("the first place is not free")
		}
		var got [3]bool
		for i := range got {
			go func() { got[i] = turns.begin() }()
		}
		synctest.Wait()
		crowding.Store(indexCrowding)
		turns.end(time.Second) // frees one place at once, and makes another
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
		if turns.taken != 2 {
			t.Errorf("%d places are taken", turns.taken)
		}
	})
}
