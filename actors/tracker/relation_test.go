package tracker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// relate makes a relation as ann.
func (w *issueFixture) relate(issue IssueID, t RelationType, other IssueID) Relation {
	w.Helper()
	return decode[RelationAnswer](w, w.run(&w.ann, PutRelation, relation(issue, t, other)).Body).Relation
}

func relation(issue IssueID, t RelationType, other IssueID) *RelationIn {
	return &RelationIn{ID: string(issue), Type: t, OtherID: string(other)}
}

func (w *issueFixture) unrelate(issue IssueID, t RelationType, other IssueID) {
	w.Helper()
	w.run(&w.ann, DeleteRelation, relation(issue, t, other))
}

// relations describes the relations of an issue as a caller sees them, newest first.
func (w *issueFixture) relations(who *Caller, issue IssueID) (all []string) {
	w.Helper()
	in := ListRelationsIn{ID: string(issue), PagedIn: PagedIn{Limit: 2}}
	for {
		reply, err := w.ask(who, ListRelations, &in)
		if err != nil {
			w.Fatal(err)
		}
		page := decode[RelationPage](w, reply.Body)
		for _, r := range page.Relations {
			all = append(all, fmt.Sprintf("%s %s %s", r.Type, r.Title, r.Status))
		}
		if in.Cursor = page.NextCursor; in.Cursor == "" {
			return all
		}
	}
}

// titled makes issues of these titles.
func (w *issueFixture) titled(all ...string) (ids []IssueID) {
	w.Helper()
	for _, title := range all {
		ids = append(ids, w.create(CreateIssueIn{Title: title}).ID)
	}
	return ids
}

// openBlockers returns the number of an issue's open blockers, as it is stored.
func (w *issueFixture) openBlockers(issue IssueID) uint64 {
	w.Helper()
	v := storage.NewView(w.db, 1, w.workspace)
	id, _ := storage.ParseID(issue)
	n, err := v.Number(blockedTable, issueKey(id))
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// told lists the events of a family behind the first n, with the titles of their issues,
// and returns how many events there are.
func (w *issueFixture) told(n int, family string) (all []string, now int) {
	w.Helper()
	events := w.events()
	for _, e := range events[n:] {
		if strings.HasPrefix(e.Type, family) {
			all = append(all, e.Type+" "+e.Data.Title)
		}
	}
	return all, len(events)
}

func TestPutRelation_FormsAndRepeats(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	ids := w.titled("A", "B")
	a, b := ids[0], ids[1]
	for _, kind := range edgeForms {
		for i, form := range kind {
			first, second := a, b
			if i == 1 {
				first, second = b, a
			}
			if got := w.relate(first, form, second); got.Type != form || got.IssueID != second {
				t.Errorf("%s answers %+v", form, got)
			}
		}
	}
	_, n := w.told(0, "")
	got := w.relate(b, RelationBlockedBy, a)
	if _, now := w.told(0, ""); now != n || got.Title != "A" || got.CreatedByID != "ann" || got.Identifier == nil {
		t.Errorf("a repeat answers %+v, and there are %d events instead of %d", got, now, n)
	}
	want := []string{"relates B backlog", "discovered_from B backlog", "duplicates B backlog", "blocks B backlog"}
	if got := w.relations(&w.ann, a); !slices.Equal(got, want) {
		t.Errorf("A has %q", got)
	}
	want = []string{"relates A canceled", "led_to A canceled", "duplicated_by A canceled", "blocked_by A canceled"}
	if got := w.relations(&w.ann, b); !slices.Equal(got, want) {
		t.Errorf("B has %q", got)
	}
	if closed := w.get(a); closed.Status != StatusCanceled || closed.Resolution == nil || *closed.Resolution != "duplicate" {
		t.Errorf("the duplicate is %s, %v", closed.Status, closed.Resolution)
	}
	w.verify()
	for _, form := range relationTypes {
		if _, _, err := w.try(&w.ann, DeleteRelation, relation(a, form, b)); err != nil {
			if form != RelationBlockedBy && form != RelationDuplicatedBy && form != RelationLedTo {
				t.Errorf("%s: %v", form, err)
			}
			wantCode(t, err, CodeNotFound)
		}
	}
	if got := w.relations(&w.ann, a); len(got) > 0 {
		t.Errorf("A still has %q", got)
	}
	w.verify()
}

func TestPutRelation_Rings(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	ids := w.titled("A", "B", "C", "D", "E")
	hidden := w.create(CreateIssueIn{Title: "Hidden", IssueFields: IssueFields{TeamID: Some(w.secret)}}).ID
	// A blocks B blocks Hidden blocks C blocks D.
	for i, id := range []IssueID{ids[1], hidden, ids[2], ids[3]} {
		before := []IssueID{ids[0], ids[1], hidden, ids[2]}[i]
		w.relate(before, RelationBlocks, id)
	}
	w.relate(ids[4], RelationBlocks, ids[1])
	for _, row := range []struct {
		who  *Caller
		in   *RelationIn
		want string
	}{
		{&w.ann, relation(ids[3], RelationBlocks, ids[0]), "CORE-4 CORE-1 CORE-2 SEC-1 CORE-3"},
		{&w.gus, relation(ids[3], RelationBlocks, ids[0]), "CORE-4 CORE-1 CORE-2 CORE-3"},
		{&w.ann, relation(ids[0], RelationBlockedBy, ids[1]), "CORE-2 CORE-1"},
		{&w.gus, relation(ids[2], RelationBlocks, ids[1]), "CORE-3 CORE-2"},
		{&w.ann, relation(ids[4], RelationBlockedBy, ids[3]), "CORE-4 CORE-5 CORE-2 SEC-1 CORE-3"},
	} {
		_, _, err := w.try(row.who, PutRelation, row.in)
		wantCode(t, err, CodeConflict)
		var e *Error
		errors.As(err, &e)
		if got := strings.Join(e.Details.(RingDetails).Path, " "); got != row.want {
			t.Errorf("%+v as %s: the ring is %q, want %q", *row.in, row.who.ID, got, row.want)
		}
	}
	w.relate(ids[0], RelationDuplicates, ids[1])
	_, _, err := w.try(&w.ann, PutRelation, relation(ids[1], RelationDuplicates, ids[0]))
	wantCode(t, err, CodeConflict)
	w.relate(ids[1], RelationDiscoveredFrom, ids[0])
	w.relate(ids[0], RelationDiscoveredFrom, ids[1]) // only blocks and duplicates must not form rings
	w.verify()
}

func TestPutRelation_HasALimit(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	top := w.titled("Top")[0]
	var last IssueID
	for i := range maxRelations {
		last = w.titled("Other")[0]
		w.relate(top, []RelationType{RelationBlocks, RelationRelates, RelationLedTo}[i%3], last)
	}
	more := w.titled("One more")[0]
	for _, in := range []*RelationIn{relation(top, RelationBlocks, more), relation(more, RelationRelates, top)} {
		_, _, err := w.try(&w.ann, PutRelation, in)
		wantCode(t, err, CodeConflict)
	}
	w.unrelate(last, RelationRelates, top)
	w.relate(more, RelationRelates, top)
	if got := w.relations(&w.ann, top); len(got) != maxRelations {
		t.Errorf("%d relations are listed", len(got))
	}
	w.verify()
}

func TestBlocked_CountsAndEvents(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	ids := w.titled("A", "B", "C")
	a, b, c := ids[0], ids[1], ids[2]
	n := len(w.events())
	step := func(what string, do func(), open uint64, events ...string) {
		t.Helper()
		do()
		var got []string
		got, n = w.told(n, "issue.")
		got = slices.DeleteFunc(got, func(e string) bool {
			return strings.HasPrefix(e, "issue.updated") || strings.HasPrefix(e, "issue.deleted")
		})
		if have := w.openBlockers(c); have != open || !slices.Equal(got, events) {
			t.Errorf("%s: %d open blockers, want %d; events %q, want %q", what, have, open, got, events)
		}
		w.verify()
	}
	step("a blocker", func() { w.relate(a, RelationBlocks, c) }, 1, "issue.blocked C")
	step("another", func() { w.relate(c, RelationBlockedBy, b) }, 2, "issue.blocked C")
	step("one closes", func() { w.patch(a, setStatus(StatusDone)) }, 1)
	step("both are closed", func() { w.patch(b, setStatus(StatusCanceled)) }, 0, "issue.ready C")
	step("one is opened again", func() { w.patch(b, setStatus(StatusTodo)) }, 1, "issue.blocked C")
	step("in a batch", func() {
		w.run(&w.ann, BatchIssues, &BatchIssuesIn{IDs: []string{string(a), string(b)}, Patch: setStatus(StatusDone)})
	}, 0, "issue.ready C")
	step("both are opened again", func() {
		w.run(&w.ann, BatchIssues, &BatchIssuesIn{IDs: []string{string(a), string(b)}, Patch: setStatus(StatusTodo)})
	}, 2, "issue.blocked C")
	step("a relation is removed", func() { w.unrelate(c, RelationBlockedBy, a) }, 1)
	step("the last one is, too", func() { w.unrelate(b, RelationBlocks, c) }, 0, "issue.ready C")
	step("a closed blocker", func() { w.patch(a, setStatus(StatusDone)); w.relate(a, RelationBlocks, c) }, 0)
	step("it is removed", func() { w.unrelate(a, RelationBlocks, c) }, 0)
	step("a blocker that is deleted", func() { w.relate(b, RelationBlocks, c); w.remove(b) }, 0, "issue.blocked C", "issue.ready C")
	step("an issue in triage is not ready", func() {
		w.patch(a, setStatus(StatusTodo))
		w.patch(c, setStatus(StatusTriage))
		w.relate(a, RelationBlocks, c)
		w.patch(a, setStatus(StatusDone))
	}, 0, "issue.blocked C")
	step("an issue with a session is not ready", func() {
		w.patch(a, setStatus(StatusTodo))
		w.patch(c, setStatus(StatusTodo))
		w.run(&w.ann, DispatchIssue, &DispatchIssueIn{ID: string(c)})
		w.patch(a, setStatus(StatusDone))
	}, 0, "issue.blocked C")
	step("the blocked issue is deleted", func() { w.patch(a, setStatus(StatusTodo)); w.remove(c) }, 0, "issue.blocked C")
	if got := w.relations(&w.ann, a); len(got) > 0 {
		t.Errorf("A still has %q", got)
	}
}

// The rules of teams close issues, too, and those release others.
func TestBlocked_ReleasedByRules(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.automate(w.core, true, false)
	parent := w.titled("Parent")[0]
	child := w.under(parent, w.core, StatusTodo)
	waits := w.titled("Waits")[0]
	w.relate(parent, RelationBlocks, waits)
	n := len(w.events())
	w.patch(child, setStatus(StatusDone))
	if got, _ := w.told(n, "issue.ready"); w.openBlockers(waits) != 0 || !slices.Equal(got, []string{"issue.ready Waits"}) {
		t.Errorf("events %q", got)
	}
	w.verify()
}

// releasedBy names the issues that the reader may see.
func TestEvents_ReleasedBy(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	ids := w.titled("A", "B", "Waits")
	hidden := w.create(CreateIssueIn{Title: "Hidden", IssueFields: IssueFields{TeamID: Some(w.secret)}}).ID
	all := []IssueID{hidden, ids[0], ids[1]}
	var texts []string
	for _, id := range all {
		w.relate(id, RelationBlocks, ids[2])
		texts = append(texts, string(id))
	}
	w.run(&w.ann, BatchIssues, &BatchIssuesIn{IDs: texts, Patch: setStatus(StatusDone)})
	after := len(w.events())
	for _, row := range []struct {
		who  *Caller
		want []IssueID
	}{{&w.ann, all}, {&w.gus, ids[:2]}} {
		for _, via := range []string{"list", "feed"} {
			got := w.released(row.who, via, 0)
			if !slices.Equal(got, row.want) {
				t.Errorf("%s in the %s: %q, want %q", row.who.ID, via, got, row.want)
			}
		}
	}
	w.relate(hidden, RelationRelates, ids[0])
	w.relate(ids[1], RelationBlocks, ids[2])
	w.patch(ids[1], setStatus(StatusTodo))
	w.remove(ids[1])
	for _, who := range []*Caller{&w.ann, &w.gus} {
		if got := w.released(who, "feed", after); !slices.Equal(got, []IssueID{ids[1]}) {
			t.Errorf("%s reads %q of a deleted blocker", who.ID, got)
		}
	}
	related := func(who *Caller) (n int) {
		reply, err := w.ask(who, ListEvents, &ListEventsIn{Types: "relation.*", Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		return len(decode[EventPage](w, reply.Body).Events)
	}
	// Five are made, and one goes with the deleted issue; two are with the hidden one.
	if all, some := related(&w.ann), related(&w.gus); all != 5 || some != 3 {
		t.Errorf("ann reads %d events of relations, gus %d", all, some)
	}
}

// released returns what a caller reads in the last issue.ready behind a position.
func (w *issueFixture) released(who *Caller, via string, after int) (by []IssueID) {
	w.Helper()
	var text string
	if via == "list" {
		reply, err := w.ask(who, ListEvents, &ListEventsIn{After: Some(int64(after)), Types: "issue.ready", Limit: 100})
		if err != nil {
			w.Fatal(err)
		}
		text = string(reply.Body)
	} else {
		snap := w.db.NewSnapshot()
		defer func() { _ = snap.Close() }()
		v := NewView(storage.NewView(snap, 1, w.workspace), who, w.now, nil)
		batch, err := ReadEvents(v, uint64(after), 1000, 10<<20)
		if err != nil {
			w.Fatal(err)
		}
		line, err := textFor(batch, who, eventIssueReady.bit, uint64(after))
		if err != nil {
			w.Fatal(err)
		}
		text = string(line)
	}
	at := strings.LastIndex(text, `"releasedBy":`)
	if at < 0 {
		w.Fatalf("no releasedBy in %s", text)
	}
	text = text[at+len(`"releasedBy":`):]
	if err := json.Unmarshal([]byte(text[:strings.IndexByte(text, ']')+1]), &by); err != nil {
		w.Fatal(err)
	}
	return by
}

func TestVerify_Relations(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		want  string
		spoil func(tx *Tx, a, b storage.ID) error
	}{
		{"says 7, there are 1", func(tx *Tx, _, b storage.ID) error {
			return tx.Writer().SetNumber(blockedTable, issueKey(b), 7)
		}},
		{"there is no row, though there are 1", func(tx *Tx, _, b storage.ID) error {
			return tx.Writer().DeleteValue(blockedTable, issueKey(b))
		}},
		{"says 1, there are 0", func(tx *Tx, a, _ storage.ID) error {
			return tx.Writer().SetNumber(blockedTable, issueKey(a), 1)
		}},
		{"is not set", func(tx *Tx, a, _ storage.ID) error {
			return tx.Writer().SetValue(releaseTable, issueKey(a), []byte(`{}`))
		}},
		{"is in a ring of blocks", func(tx *Tx, a, b storage.ID) error {
			_, err := tx.addRelation(edge{edgeBlocks, b, a})
			return err
		}},
		{"is of an issue with itself", func(tx *Tx, a, _ storage.ID) error {
			_, err := tx.addRelation(edge{edgeRelates, a, a})
			return err
		}},
		{"is not there", func(tx *Tx, a, _ storage.ID) error {
			row, err := relations.Get(tx, edge{edgeBlocks, a, a}.key(nil))
			if err != nil || row != nil {
				return errors.New("there is a relation")
			}
			_, err = relations.Insert(tx, &relationRecord{Type: RelationRelates, FromID: IssueID(a.String()), ToID: IssueID(storage.ID{0: 0xff}.String())})
			return err
		}},
	} {
		w := newIssueFixture(t)
		ids := w.titled("A", "B")
		w.relate(ids[0], RelationBlocks, ids[1])
		a, _ := storage.ParseID(ids[0])
		b, _ := storage.ParseID(ids[1])
		w.run(&w.ann, NewCommand[None, None]("spoil", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) { return Reply{}, row.spoil(tx, a, b) }), &None{})
		w.verifyFinds(row.want)
	}
}

// A command sees what it has changed so far, before that is written.
func TestBlocked_WithinACommand(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	ids := w.titled("A", "B")
	a, _ := storage.ParseID(ids[0])
	b, _ := storage.ParseID(ids[1])
	w.run(&w.ann, NewCommand[None, None]("relate", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		if _, err := tx.addRelation(edge{edgeBlocks, a, b}); err != nil {
			return Reply{}, err
		}
		for id, want := range map[storage.ID]bool{a: false, b: true} {
			if got, err := tx.blocked(id); err != nil || got != want {
				t.Errorf("blocked is %t, %v", got, err)
			}
		}
		return Reply{}, nil
	}), &None{})
}

// A duplicate that is closed may close its parent: the answer shows that, too.
func TestPutRelation_ShowsWhatTheRulesOfTeamsClosed(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.automate(w.core, true, false)
	parent := w.under("", w.core, StatusBacklog)
	child := w.under(parent, w.core, StatusBacklog)
	if r := w.relate(child, RelationDuplicates, parent); r.Status != StatusDone {
		t.Errorf("the parent is shown as %s", r.Status)
	}
	w.verify()
}
