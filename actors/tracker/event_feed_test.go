package tracker

import (
	"strings"
	"testing"

	"switchyard/storage"
)

// textFor returns the text of a batch's events for a caller.
func textFor(b *EventBatch, who *Caller, types EventSet, after uint64) ([]byte, error) {
	if _, _, err := b.Pick(who, types, after); err != nil {
		return nil, err
	}
	return b.Text(), nil
}

func TestEventBatch_IsEncodedOnceForAllWhoSeeTheSame(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	for range 4 {
		w.create(CreateIssueIn{})
	}
	v := NewView(storage.NewView(w.db, 1, w.workspace), nil, w.now, nil)
	b, err := ReadEvents(v, 1, 10, 1<<20)
	if err != nil || b.Last != 4 || b.More {
		t.Fatalf("batch up to %d, %v", b.Last, err)
	}
	first, err := textFor(b, &w.ann, allEvents, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []*Caller{&w.gus, w.somebody(ActorAgent, "bot")} {
		text, err := textFor(b, who, allEvents, 1)
		if err != nil || &text[0] != &first[0] {
			t.Errorf("%s has a text of its own: %v", who.ID, err)
		}
	}
	less, err := textFor(b, &w.gus, allEvents, 3)
	if err != nil || !strings.HasPrefix(string(less), "id: 4\n") {
		t.Errorf("text %q, %v", less, err)
	}
	if none, err := textFor(b, &w.gus, allEvents, 4); none != nil || err != nil {
		t.Errorf("text %q, %v", none, err)
	}
}

// The memory of a text is known before it is encoded, with and without links that the caller may
// not see.
func TestEventBatch_KnowsTheSizeOfATextFirst(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hidden := w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(w.secret)}})
	w.create(CreateIssueIn{IssueFields: IssueFields{ParentID: Some(hidden.ID)}})
	v := NewView(storage.NewView(w.db, 1, w.workspace), nil, w.now, nil)
	b, err := ReadEvents(v, 0, 10, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for i, who := range []*Caller{&w.ann, &w.gus} {
		size, made, err := b.Pick(who, allEvents, 0)
		if err != nil || made || size == 0 || len(b.texts) != i {
			t.Fatalf("%s: size %d, made: %t, %d texts, %v", who.ID, size, made, len(b.texts), err)
		}
		if text := b.Text(); cap(text) != size || len(text) == 0 {
			t.Errorf("%s: a text of %d bytes in %d, want them in %d", who.ID, len(text), cap(text), size)
		}
		if again, made, err := b.Pick(who, allEvents, 0); err != nil || !made || again != size {
			t.Errorf("%s: size %d the second time, made: %t, %v", who.ID, again, made, err)
		}
	}
}
