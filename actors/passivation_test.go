package actors

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestSweep_PassivatesWhatIsIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		busy, idle := workspaceNumber(1), workspaceNumber(2)
		b.mustCount(idle, 1)
		for n := range 4 {
			b.mustCount(busy, n+1)
			pass(20 * time.Second)
		}
		synctest.Wait()
		if n := b.engine.Stats().ActiveActors; n != 1 {
			t.Errorf("%d actors, want the busy one", n)
		}
		pass(2 * time.Minute)
		synctest.Wait()
		if n := b.engine.Stats().ActiveActors; n != 0 {
			t.Errorf("%d actors, want none", n)
		}
		for _, s := range b.engine.shards {
			if len(s.handles) != 0 {
				t.Errorf("shard %d keeps %d handles", s.number, len(s.handles))
			}
		}
		b.mustCount(idle, 2)
		b.mustCount(busy, 5)
	})
}

func TestSweep_LosesNoCommand(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const workspaces, callers, each = 3, 6, 200
	quit := make(chan struct{})
	var sweeper sync.WaitGroup
	sweeper.Go(func() { // passivates workspaces all the time
		for {
			select {
			case <-quit:
				return
			default:
				b.engine.sweepOnce(func(*handle) bool { return true })
			}
		}
	})
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for range each {
				if _, err := b.count(workspaceNumber(c % workspaces)); err != nil {
					t.Errorf("a command got lost: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	close(quit)
	sweeper.Wait()
	for n := range workspaces {
		if got := b.stored(workspaceNumber(n)); got != "400" {
			t.Errorf("workspace %d counted to %s", n, got)
		}
	}
}

func TestPassivationLatch(t *testing.T) {
	t.Parallel()
	var g passivationLatch
	if ok, _ := g.enter(1); !ok {
		t.Fatal("an open latch refused a command")
	}
	if ok, full := g.enter(1); ok || !full {
		t.Fatal("the limit let one more in")
	}
	if g.shut() {
		t.Fatal("shut with one inside")
	}
	g.leave()
	if !g.hold() || g.shut() {
		t.Fatal("shut with a hold")
	}
	if ok, _ := g.enter(1); !ok {
		t.Fatal("a hold counted as a command")
	}
	g.leave()
	g.unhold()
	if !g.shut() || g.shut() {
		t.Fatal("an empty latch shuts once")
	}
	if ok, full := g.enter(1); ok || full || g.hold() {
		t.Fatal("a shut latch let a command in")
	}
}
