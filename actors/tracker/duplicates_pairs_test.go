package tracker

import (
	"fmt"
	"testing"

	"switchyard/storage"
)

// paired gives memory in which the pairs of terms of all segments are made, at once or when the next ones are asked for.
func (w *issueFixture) paired(later bool) *Tails {
	tails := NewTails(1 << 20)
	pending := func() {}
	tails.Pair(1, func(shard storage.Shard, workspace storage.ID, order *storage.PairsOrder) bool {
		pending()
		fill := func() {
			v := View{View: storage.NewView(w.db, shard, workspace)}
			if err := v.Pairs(order, func() error { return nil }); err != nil {
				order.GiveUp()
			}
		}
		if pending = fill; !later {
			pending()
			pending = func() {}
		}
		return true
	})
	return tails
}

// eitherWay runs a test of a workspace that searches for duplicates by pairs of terms, and of one that doesn't.
func eitherWay(t *testing.T, fn func(*testing.T, *issueFixture)) {
	t.Helper()
	for _, pairs := range []bool{false, true} {
		t.Run(fmt.Sprint("pairs ", pairs), func(t *testing.T) {
			t.Parallel()
			w := newIssueFixture(t)
			if pairs {
				w.tails = w.paired(false)
				w.buffer.Remember(w.tails)
			}
			fn(t, w)
		})
	}
}

// While the pairs of a segment are made, and where they can't be, duplicates are found without them. What is dropped
// gives its memory back.
func TestPossibleDuplicates_WithoutPairs(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.tails = NewTails(1 << 20)
	var orders []*storage.PairsOrder
	refused := 0
	w.tails.Pair(20, func(_ storage.Shard, _ storage.ID, order *storage.PairsOrder) bool {
		if refused < 2 {
			refused++
			return false
		}
		orders = append(orders, order)
		return true
	})
	w.buffer.Remember(w.tails)
	for i := range 30 {
		w.create(CreateIssueIn{Title: fmt.Sprintf("Points freeze at gate %d", i)})
	}
	w.indexAll()
	find := func(when string) {
		t.Helper()
		if made := w.create(CreateIssueIn{Title: "Points freeze at gate 12"}); len(made.PossibleDuplicates) != 5 {
			t.Errorf("%s: %d duplicates", when, len(made.PossibleDuplicates))
		}
	}
	for range 2 {
		find("refused")
		if columns := w.tails.Use().Columns; columns > 4096 {
			t.Errorf("%d bytes are reserved for pairs that are not made", columns)
		}
	}
	find("pending")
	find("pending")
	if len(orders) != 1 {
		t.Fatalf("%d orders of pairs, want 1", len(orders))
	}
	orders[0].GiveUp()
	find("given up")
	if len(orders) != 1 {
		t.Errorf("what was given up is asked for again")
	}
	w.indexAll()
	for range indexFew {
		w.create(CreateIssueIn{Title: "Another"})
	}
	w.indexAll()
	find("of more segments")
	w.buffer.Remember(w.tails)
	w.buffer.recent.forget()
	if use := w.tails.Use(); use.Columns != 0 && len(orders) == 1 {
		t.Errorf("memory that is kept: %+v", use)
	}
}

// A view of a state that lacks the segment makes no pairs.
func TestView_PairsOfNoSegment(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	v := View{View: storage.NewView(w.db, 1, w.workspace)}
	if err := v.Pairs(&storage.PairsOrder{Segment: storage.Segment{Number: 7, Docs: 3}}, nil); err == nil {
		t.Error("pairs of a segment that is not there")
	}
}
