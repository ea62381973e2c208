package actors

import (
	"testing"
	"testing/synctest"
	"time"
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
