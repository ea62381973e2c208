package cluster

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/internal/testkit"
)

// rarelyCommitted has three nodes whose leaders send nearly nothing but heartbeats.
func rarelyCommitted(t *testing.T) *network {
	w := newNetwork()
	w.tune = func(t *tuning) { t.commit = time.Minute }
	w.growToThree(t, 1)
	return w
}

// takeWatchdog stops a node's watchdog: the test does its work.
func (r *running) takeWatchdog() {
	r.watchdog.stop()
	r.watchdog.steps.Wait()
	r.watchdog = nil
}

func (g *group) timeout() time.Duration { return g.raft.ReloadableConfig().HeartbeatTimeout }

// The followers of a leader have high time-outs. Raft's own timers are as good as stopped here, so
// that only the calls keep the leader.
func TestRelax_CallsForHeartbeats(t *testing.T) {
	t.Parallel()
	w := rarelyCommitted(t)
	a, b := w.nodes["a"].group(1), w.nodes["b"].group(1)
	for _, name := range []string{"b", "c"} {
		g := w.nodes[name].group(1)
		testkit.Eventually(t, name+" is relaxed", func() bool { return g.isRelaxed() && g.timeout() == followerTimeout })
	}
	term := a.raft.CurrentTerm()
	w.nodes["a"].takeWatchdog()
	a.relax(relaxedTimeout)
	a.setTimeouts(time.Hour)
	for range 20 {
		heard := b.tracking.silence.heard.Load()
		testkit.Eventually(t, "a heartbeat comes", func() bool {
			a.pace(true, true)
			return b.tracking.silence.heard.Load() > heard
		})
	}
	if a.raft.State() != raft.Leader || a.raft.CurrentTerm() != term {
		t.Errorf("the leader is %v in term %d, was elected in %d", a.raft.State(), a.raft.CurrentTerm(), term)
	}
	if got := a.timeout(); got > time.Hour || got < time.Hour-time.Millisecond {
		t.Errorf("the calls leave a time-out of %v", got)
	}
}

// The group of a leader is tightened when its node is busy, and before it hands its leadership over.
func TestRelax_Tightens(t *testing.T) {
	t.Parallel()
	w := rarelyCommitted(t)
	a := w.nodes["a"].group(1)
	w.nodes["a"].takeWatchdog()
	a.pace(true, false)
	a.pace(false, true)
	if a.isRelaxed() || a.timeout() != electionTimeout {
		t.Errorf("a busy leader: relaxed %v, %v", a.isRelaxed(), a.timeout())
	}
	a.pace(false, true)
	if a.pace(true, false); !a.isRelaxed() || a.timeout() != relaxedTimeout {
		t.Errorf("an idle leader: relaxed %v, %v", a.isRelaxed(), a.timeout())
	}
	if err := a.transfer("nobody"); err == nil || a.isRelaxed() || a.timeout() != electionTimeout {
		t.Errorf("a leader that hands over: relaxed %v, %v, %v", a.isRelaxed(), a.timeout(), err)
	}
}

// A relaxed follower finds out in time that its leader is silent.
func TestRelax_SilentLeader(t *testing.T) {
	t.Parallel()
	w := rarelyCommitted(t)
	for _, name := range []string{"b", "c"} {
		testkit.Eventually(t, name+" is relaxed", w.nodes[name].group(1).isRelaxed)
	}
	for _, name := range []string{"b", "c"} {
		w.nodes[name].group(1).setTimeouts(time.Hour) // Raft's own timers are as good as stopped
	}
	w.isolate(true, "a", "b", "c")
	owner := w.owner(t, 1, "b", "c").group(1)
	w.isolate(false, "a", "b", "c")
	testkit.Eventually(t, "its followers are relaxed again", func() bool {
		for _, r := range w.nodes {
			if g := r.group(1); g != owner && !g.isRelaxed() {
				return false
			}
		}
		return owner.raft.State() == raft.Leader
	})
}

// A relaxed follower takes the leadership over at once, although its Raft has not heard from the leader
// for longer than the usual time-out.
func TestRelax_Handover(t *testing.T) {
	t.Parallel()
	w := rarelyCommitted(t)
	a, b := w.nodes["a"].group(1), w.nodes["b"].group(1)
	testkit.Eventually(t, "Raft has not heard from the leader lately", func() bool {
		return b.isRelaxed() && time.Since(b.raft.LastContact()) > electionTimeout
	})
	term := a.raft.CurrentTerm()
	if err := a.handOver(t.Context(), "b", true); err != nil {
		t.Fatal(err)
	}
	w.owner(t, 1, "b")
	if got := b.raft.CurrentTerm(); got != term+1 {
		t.Errorf("the successor leads in term %d, its predecessor did in %d", got, term)
	}
}

// A node is busy while entries come or go, and for a while after.
func TestRelax_BusyPort(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	p := w.add("a", "one", nil)
	at := p.started.Add(time.Hour)
	if !p.isIdle(at) || p.isIdle(p.started) {
		t.Error("a port that nothing used yet")
	}
	p.noteEntries(&raft.AppendEntriesRequest{PrevLogEntry: 7}, at)
	if !p.isIdle(at) {
		t.Error("a request without entries makes the port busy")
	}
	p.noteEntries(&raft.AppendEntriesRequest{Entries: []*raft.Log{{}}}, at)
	if p.isIdle(at.Add(idleAfter-1)) || !p.isIdle(at.Add(idleAfter)) {
		t.Errorf("entries do not make the port busy for %v", idleAfter)
	}
}
