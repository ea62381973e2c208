package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/testkit"
)

// twoClocks are the clocks of a machine, set by the test.
type twoClocks struct{ monotonic, day int64 }

func (c *twoClocks) read() (monotonic, day int64) { return c.monotonic, c.day }

// pass lets time go by on the monotonic clock, and on the time of day with a deviation.
func (c *twoClocks) pass(d, deviation time.Duration) {
	c.monotonic += int64(d)
	c.day += int64(d + deviation)
}

func TestLeaseClock_JumpsWithTheTimeOfDay(t *testing.T) {
	t.Parallel()
	machine := &twoClocks{day: 1_763_000_000_000_000_000}
	c := newLeaseClockOf(machine.read)
	for _, step := range []struct {
		name         string
		d, deviation time.Duration
		want         time.Duration // passed on the lease's clock
	}{
		{"none", time.Second, 0, time.Second},
		{"adjusted", time.Second, 5 * time.Millisecond, time.Second},
		{"suspended", time.Millisecond, 2 * time.Second, 2*time.Second + 6*time.Millisecond},
		{"after that", time.Second, 0, time.Second},
		{"set back", time.Second, -time.Hour, time.Second},
		{"suspended after that", 0, time.Second, time.Second},
	} {
		before := c.now()
		machine.pass(step.d, step.deviation)
		if got := time.Duration(c.now() - before); got != step.want {
			t.Errorf("%s: %s have passed, want %s", step.name, got, step.want)
		}
	}
}

// The lease of a machine that was suspended is over when the machine goes on.
func TestLease_EndsInASuspension(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		machine := &twoClocks{monotonic: int64(time.Hour), day: 1_763_000_000_000_000_000}
		lt := newLease()
		lt.length, lt.clock = int64(480*time.Millisecond), newLeaseClockOf(machine.read).now
		lt.beginEpoch(1)
		first := lt.reads(1)
		lt.answer <- nil
		wantAnswers(t, first(), 1, nil)
		machine.pass(time.Millisecond, 0)
		wantAnswers(t, lt.reads(1)(), 1, nil)
		machine.pass(time.Millisecond, time.Second)
		after := lt.reads(1)
		wantAnswers(t, after(), 0, nil)
		lt.answer <- nil
		wantAnswers(t, after(), 1, nil)
		lt.endEpoch()
		lt.awaitRound()
	})
}

// A round that proves nothing gives no lease, in the first moments of a process either.
func TestLease_NothingProven(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	g := w.owner(t, 1, "a").group(1)
	from, err := g.verifyLeadership(g.raft.CurrentTerm()+1, 0) // no voter has answered in that term
	if err != nil || from+g.lease.length >= 0 {
		t.Errorf("a round without proof counts from %d, %v", from, err)
	}
}

// The answers to heartbeats prove the leadership while this node leads, and nothing once it does not: by
// then it may have voted for its successor.
func TestLease_ProvenByAnswers(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	a := w.owner(t, 1, "a")
	g := a.group(1)
	epoch, _ := a.Owner(1)
	clock := g.tuning.leaseClock
	testkit.Eventually(t, "the answers prove the leadership", func() bool {
		from, ok := g.provenLeadership(epoch, clock())
		return ok && clock()-from < g.lease.length
	})
	if _, ok := g.provenLeadership(epoch+1, clock()); ok {
		t.Error("they prove another epoch")
	}
	testkit.Eventually(t, "b follows and takes the shard over", func() bool {
		return a.changeReplica(t.Context(), 1, replicaChange{replicaTransfer, "b"}) == nil
	})
	members := g.raft.GetConfiguration().Configuration().Servers
	if _, ok := g.tracking.provenSince(epoch, "a", members, clock()); !ok {
		t.Fatal("the answers are gone")
	}
	if _, ok := g.provenLeadership(epoch, clock()); ok {
		t.Error("they prove the leadership after its end")
	}
}
