package cluster

import (
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/internal/testkit"
)

// Followers are told once of the last entries, and empty entries come ever more rarely.
func TestQuietWatch(t *testing.T) {
	t.Parallel()
	var q quietWatch
	lack, complete := func(int64) bool { return true }, func(int64) bool { return false }
	at := int64(time.Hour)
	look := func(after time.Duration, committed uint64, lacking func(int64) bool) quietStep {
		at += int64(after)
		return q.look(at, committed, lacking)
	}
	for i, step := range []struct {
		after     time.Duration
		committed uint64
		lacking   func(int64) bool
		want      quietStep
	}{
		{0, 7, lack, quietNothing},
		{offerAfter - 1, 7, lack, quietNothing},
		{1, 7, nil, quietNothing},
		{0, 7, complete, quietNothing},
		{tellAfter - offerAfter, 7, complete, quietTell},
		{time.Hour, 7, complete, quietNothing},
		{0, 7, lack, quietOffer},
		{0, 7, lack, quietNothing},
		{offerAfter - 1, 7, lack, quietNothing},
		{1, 7, lack, quietOffer},
		{0, 8, lack, quietNothing}, // the empty entry itself is committed
		{offerAfter, 8, lack, quietNothing},
		{offerAfter, 8, lack, quietOffer},
		{offerPause, 8, nil, quietTell},
		{offerPause, 8, lack, quietOffer},
		{offerPause, 8, lack, quietOffer},
		{0, 8, complete, quietNothing},
		{0, 8, lack, quietOffer}, // it had all entries meanwhile
	} {
		if got := look(step.after, step.committed, step.lacking); got != step.want {
			t.Fatalf("step %d: %d, want %d", i, got, step.want)
		}
	}
	q.look(at, 9, nil)
	since := at
	q.look(at+int64(offerAfter), 9, func(after int64) bool {
		if after != since {
			t.Errorf("lacking after %d, want the time of the last commit, %d", after, since)
		}
		return false
	})
}

// A follower reports its last entry, unless it has missed for a while that it is committed.
func TestUntoldWatch(t *testing.T) {
	t.Parallel()
	var u untoldWatch
	now := time.Unix(0, 0)
	for i, step := range []struct {
		after             time.Duration
		last, known, want uint64
	}{
		{0, 0, 0, 0},
		{time.Hour, 9, 5, 9},
		{untoldAfter - 1, 9, 5, 9},
		{1, 9, 5, 5},
		{time.Hour, 9, 5, 5},
		{0, 10, 9, 10}, // an empty entry came, and what it told
		{untoldAfter - 1, 10, 9, 10},
		{1, 10, 10, 10}, // it was told of that one
		{time.Hour, 10, 10, 10},
		{0, 10, 12, 10}, // applied from a snapshot
		{time.Hour, 10, 12, 10},
	} {
		now = now.Add(step.after)
		if got := u.report(now, step.last, step.known); got != step.want {
			t.Fatalf("step %d: %d, want %d", i, got, step.want)
		}
	}
}

// Followers that get no more entries learn that the last ones are committed.
func TestQuiet_TellsFollowers(t *testing.T) {
	t.Parallel()
	w := rarelyCommitted(t)
	w.nodes["a"].mustPropose(t, 1, "last")
	last := w.nodes["a"].group(1).raft.LastIndex()
	w.same(t, 1, "a", "b", "c")
	if now := w.nodes["a"].group(1).raft.LastIndex(); now != last {
		t.Errorf("entry %d followed the last write, %d", now, last)
	}
}

// A follower that crashed has the entries in its log, and not in its state. It learns that they are
// committed although its leader told it before.
func TestQuiet_TellsARestartedFollower(t *testing.T) {
	t.Parallel()
	w := newNetwork()
	w.tune = func(t *tuning) { t.commit = time.Minute }
	disks := w.growCrashable(t, "a", "b", "c")
	w.nodes["a"].mustPropose(t, 1, "last")
	w.same(t, 1, "a", "b", "c")
	left := w.kill(t, "b", disks["b"], "a", "c")
	w.boot(t, "b", left, false, 1)
	w.same(t, 1, "a", "b", "c")
}

// A follower that lacks entries of which Raft does not think gets an empty entry, and with it those.
func TestQuiet_OffersAnEntry(t *testing.T) {
	t.Parallel()
	w := rarelyCommitted(t)
	w.nodes["a"].takeWatchdog()
	a := w.nodes["a"].group(1)
	term, last := a.raft.CurrentTerm(), a.raft.LastIndex()
	var steps sync.WaitGroup
	testkit.Eventually(t, "an empty entry is appended", func() bool {
		answer := &raft.AppendEntriesResponse{Term: term, LastLog: last - 1, Success: true}
		a.tracking.record("b", &raft.AppendEntriesRequest{Term: term}, answer, a.tuning.leaseClock(), last)
		a.checkFollowers(true, &steps)
		steps.Wait()
		return a.raft.LastIndex() > last
	})
}

// A follower that refuses because entries are still on their way to it goes on to count as one that
// follows.
func TestTrackingTransport_Tell(t *testing.T) {
	t.Parallel()
	now := int64(5)
	to, w := newBlockingTransport(t, &now)
	for _, agrees := range []bool{true, false} {
		go func() { <-to.asked; to.answer <- raft.AppendEntriesResponse{Term: 3, LastLog: 9, Success: agrees} }()
		w.tell("b", "b", &raft.AppendEntriesRequest{Term: 3, PrevLogEntry: 9, LeaderCommitIndex: 9})
		if lag, follows := w.followerProgress(3, "b", time.Hour); lag != 1 || !follows {
			t.Errorf("success %v: lag %d, follows %v", agrees, lag, follows)
		}
	}
	w.silent.Store(true)
	w.tell("b", "b", &raft.AppendEntriesRequest{Term: 3}) // would wait for an answer
}

// On an idle node the watchdog comes to a relaxed follower when its leader may be silent, to a relaxed
// leader with the beats, and to all others each time.
func TestLeaderWatchdog_ComesAgain(t *testing.T) {
	t.Parallel()
	w := rarelyCommitted(t)
	for _, name := range []string{"a", "b"} {
		g := w.nodes[name].group(1)
		testkit.Eventually(t, name+" has nothing else to do", func() bool { return name == "a" || g.isRelaxed() })
		v := newLeaderWatchdog(w.nodes[name].Node)
		w.nodes[name].takeWatchdog()
		now := time.Now()
		next := v.check(g, now, true, false, false)
		switch heard := g.heard(); name {
		case "a":
			if !g.isRelaxed() || next.Before(now.Add(beatEvery)) {
				t.Errorf("to a relaxed leader after %v", next.Sub(now))
			}
			if next = v.check(g, now, false, false, false); next.After(now) {
				t.Errorf("to a busy leader after %v", next.Sub(now))
			}
		default:
			if next.Before(heard) || next.After(heard.Add(electionTimeout)) {
				t.Errorf("to a relaxed follower %v after its leader", next.Sub(heard))
			}
			g.tighten()
			if next = v.check(g, heard.Add(electionTimeout), true, false, false); next.After(heard.Add(electionTimeout)) {
				t.Errorf("to a follower that misses its leader %v after it", next.Sub(heard))
			}
		}
	}
}
