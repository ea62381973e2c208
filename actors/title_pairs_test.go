package actors

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

// pairing is a workspace whose titles are kept in pairs of terms, whatever the size of a segment.
type pairing struct {
	*listed
	made int
}

// duplicates creates an issue, and gives the titles that it may be a duplicate of.
func (p *pairing) duplicates(title string) (titles []string) {
	p.t.Helper()
	reply, err := p.engine.Do(p.admitted(p.home.id, p.home.credential, tracker.CreateIssue), tracker.CreateIssue, &tracker.CreateIssueIn{Title: title})
	if err != nil {
		p.t.Fatal(err)
	}
	var made struct{ PossibleDuplicates []struct{ Title string } }
	if err := json.Unmarshal(reply.Body, &made); err != nil {
		p.t.Fatal(err)
	}
	for _, d := range made.PossibleDuplicates {
		titles = append(titles, d.Title)
	}
	return titles
}

// grow creates issues of different titles until a segment is made of them.
func (p *pairing) grow(n int) {
	p.t.Helper()
	for range n {
		p.made++
		p.create(fmt.Sprintf("Wagon%d leaks oil%d", p.made, p.made), true)
	}
}

// Pairs are made on a goroutine of their own once a creation needs them, and give their memory back with the workspace.
func TestEngine_MakesPairsOfTitles(t *testing.T) {
	t.Parallel()
	p := &pairing{listed: newListed(t)}
	// A turn that somebody else has is waited for.
	for range cap(p.engine.turns) {
		p.engine.turns <- struct{}{}
	}
	var asked atomic.Bool
	p.engine.tails.Pair(1, func(shard storage.Shard, workspace storage.ID, order *storage.PairsOrder) bool {
		asked.Store(true)
		return p.engine.makePairs(shard, workspace, order)
	})
	p.grow(600)
	for range cap(p.engine.turns) {
		<-p.engine.turns
	}
	testkit.Eventually(t, "the pairs are made", func() bool {
		p.grow(1)
		return asked.Load() && p.engine.pairMakers.Load() == 0 && p.engine.tails.Use().Columns > 0
	})
	if got := p.duplicates("Oil3 leaks from wagon3"); len(got) != 1 || got[0] != "Wagon3 leaks oil3" {
		t.Errorf("duplicates %q", got)
	}
}

// So many make pairs at a time, and none once the engine has been closed. What is not begun is asked for again.
func TestEngine_MakesFewPairsAtATime(t *testing.T) {
	t.Parallel()
	e := newListed(t).engine
	e.pairMakers.Store(pairMakers)
	if e.makePairs(1, storage.ID{}, &storage.PairsOrder{}) {
		t.Error("one more is begun")
	}
	if n := e.pairMakers.Load(); n != pairMakers {
		t.Errorf("%d are counted", n)
	}
}
