package actors

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/processors"
)

// hasMemory says whether the listener has memory for parts, and returns how often it was asked
// for some.
func (a *recordingListener) hasMemory(yes bool) (asked int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.full = !yes
	return a.asked
}

// A listener whose part there is no memory for misses nothing, and keeps nobody waiting.
func TestFeed_HoldsBackPartsWithoutMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t, withRoot)
		a := &recordingListener{}
		y.listen(a)
		short := []*recordingListener{{full: true}, {full: true}, {full: true}}
		for _, l := range short {
			y.listen(l)
		}
		pass(time.Second)
		y.create(1)
		synctest.Wait()
		if got := a.heard(); got != "1 " {
			t.Errorf("the listener with memory has heard %q", got)
		}
		before := 0
		for _, l := range short {
			if parts, _ := l.came(); parts != 1 {
				t.Errorf("a listener without memory has %d parts", parts)
			}
			before += l.hasMemory(false)
		}
		// A later round asks one of them, and no more when that one has none.
		y.create(1)
		pass(feedPause)
		synctest.Wait()
		after := 0
		for _, l := range short {
			after += l.hasMemory(false)
		}
		if got := a.heard(); got != "1 2 " || after != before+1 {
			t.Errorf("the listener with memory has heard %q; the others were asked %d times more", got, after-before)
		}
		for _, l := range short {
			l.hasMemory(true)
		}
		pass(2 * time.Second) // nothing happens in the workspace
		synctest.Wait()
		for _, l := range short {
			if got := l.heard(); got != a.heard() || l.ended != 0 {
				t.Errorf("a listener that has memory again has heard %q, ended: %d", got, l.ended)
			}
		}
	})
}

// A listener that gets no memory for its next part is disconnected, and continues later.
func TestFeed_EndsStreamsWithoutMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t, withRoot)
		a, short := &recordingListener{}, &recordingListener{full: true}
		y.listen(a)
		y.listen(short)
		pass(time.Second)
		y.create(1)
		pass(heldBackMost - time.Second)
		synctest.Wait()
		short.mu.Lock()
		early := short.ended
		short.mu.Unlock()
		pass(3 * time.Second)
		synctest.Wait()
		short.mu.Lock()
		defer short.mu.Unlock()
		if early != 0 || short.ended == 0 || a.ended != 0 {
			t.Errorf("ended early: %d, later: %d, the other: %d", early, short.ended, a.ended)
		}
	})
}

// A new listener is greeted also while there is no memory for what follows: the greeting is no
// copy of that.
func TestFeed_GreetsWithoutMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t, withRoot)
		y.create(1)
		a := &recordingListener{full: true}
		y.listenTo(a, &tracker.ListEventsIn{After: tracker.Some(int64(0))})
		if parts, text := a.came(); parts != 1 || text != greeting+"0\n\n" {
			t.Errorf("a new listener without memory has heard %q in %d parts", text, parts)
		}
		a.hasMemory(true)
		pass(2 * time.Second)
		synctest.Wait()
		if parts, _ := a.came(); parts != 2 || a.heard() != "1 " {
			t.Errorf("it has heard %q later, in %d parts", a.heard(), parts)
		}
	})
}

// A round encodes no text that there is no memory for, and no more than feedBuilt of others.
// Listeners that see the same get one text in one round, and the others follow in the next rounds.
func TestFeed_EncodesSoMuchARound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t, withRoot)
		issue := string(decodeBody[tracker.Issue](t, y.must(tracker.CreateIssue, &tracker.CreateIssueIn{Title: "Small"}).Body).ID)
		small := []string{"comment.created", "comment.updated", "comment.deleted"}
		all := make([]*recordingListener, 1<<len(small)+1) // the last sees the same as the first
		for i := range all {
			types := "issue.created"
			for bit, name := range small {
				if i>>bit&1 == 1 {
					types += "," + name
				}
			}
			all[i] = &recordingListener{full: true}
			y.listenTo(all[i], &tracker.ListEventsIn{Types: types})
		}
		pass(time.Second)
		comment := string(decodeBody[tracker.Comment](t, y.must(tracker.CreateComment, &tracker.CreateCommentIn{IssueID: issue, Body: "a"}).Body).ID)
		y.must(tracker.PatchComment, &tracker.PatchCommentIn{ID: comment, Body: tracker.Some("b")})
		y.must(tracker.DeleteComment, &tracker.RecordIn{ID: comment})
		large := tracker.CreateIssueIn{Title: "Large"}
		large.Description = tracker.Some(strings.Repeat("x", 1_000_000))
		y.must(tracker.CreateIssue, &large)
		pass(time.Second)
		synctest.Wait()
		if built := y.engine.feeds.stripe(y.workspace).feeds[y.workspace].built; built != 0 {
			t.Errorf("%d bytes were encoded without memory for them", built)
		}
		for _, l := range all {
			l.hasMemory(true)
		}
		const each = feedBuilt / 1_010_000
		served := make([]int, len(all)) // the number of the step
		for step, left := 1, len(all); left > 0; step++ {
			pass(feedPause / 2)
			synctest.Wait()
			count := 0
			for i, l := range all {
				if served[i] == 0 && strings.Contains(l.heard(), "5 ") {
					served[i], count = step, count+1
				}
			}
			if left -= count; count > each+1 || step > 1000 {
				t.Fatalf("%d listeners were sent a text of 1 MB in one round, want %d texts in each; %d are left", count, each, left)
			}
		}
		if served[0] != served[len(all)-1] {
			t.Errorf("listeners that see the same were served in steps %d and %d", served[0], served[len(all)-1])
		}
	})
}

// Rounds that read the log take turns, so that the node holds the texts of few rounds at once.
func TestFeed_RoundsTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newWorkspaceFixture(t, withRoot)
		a := &recordingListener{}
		y.listen(a)
		pass(time.Second)
		turns := y.engine.feeds.turns
		if got, want := cap(turns), feedTurns*processors.Count(); got != want {
			t.Errorf("%d rounds at a time, want %d", got, want)
		}
		for range cap(turns) {
			turns <- struct{}{}
		}
		y.create(1)
		pass(time.Second)
		synctest.Wait()
		if got := a.heard(); got != "" {
			t.Errorf("a listener has heard %q without a turn", got)
		}
		<-turns
		synctest.Wait()
		if got := a.heard(); got != "1 " || len(turns) != cap(turns)-1 {
			t.Errorf("a listener has heard %q, and %d of %d turns are taken", got, len(turns), cap(turns))
		}
	})
}
