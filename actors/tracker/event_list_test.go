package tracker

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/storage"
)

// page returns a page of the event log as a caller gets it.
func (w *issueFixture) page(who *Caller, in ListEventsIn) EventPage {
	w.Helper()
	reply, err := w.ask(who, ListEvents, &in)
	if err != nil {
		w.Fatal(err)
	}
	return decode[EventPage](w, reply.Body)
}

// logFor returns the sequence numbers of the events that a caller sees: in pages and,
// with the same result, in the parts that listeners get.
func (w *issueFixture) logFor(who *Caller) (seen []uint64) {
	w.Helper()
	for in := (ListEventsIn{Limit: 3}); ; {
		page := w.page(who, in)
		for _, e := range page.Events {
			seen = append(seen, e.Sequence)
		}
		if page.NextCursor == "" {
			break
		}
		in.Cursor = page.NextCursor
	}
	if listened := fmt.Sprint(w.listened(who, allEvents, 3)); listened != fmt.Sprint(seen) {
		w.Errorf("pages have %v, a stream has %v", seen, listened)
	}
	return seen
}

// listened reads the whole log as a stream does, in parts of at most so many events.
func (w *issueFixture) listened(who *Caller, types EventSet, most int) (seen []uint64) {
	w.Helper()
	snap := w.db.NewSnapshot()
	defer func() { _ = snap.Close() }()
	for after := uint64(0); ; {
		b, err := ReadEvents(NewView(storage.NewView(snap, 1, w.workspace), nil, w.now, nil), after, most, 1<<20)
		if err != nil {
			w.Fatal(err)
		}
		text, err := textFor(b, who, types, after)
		if err != nil {
			w.Fatal(err)
		}
		for _, block := range strings.Split(strings.TrimSuffix(string(text), "\n\n"), "\n\n") {
			if block == "" {
				continue
			}
			lines := strings.Split(block, "\n")
			if len(lines) != 3 {
				w.Fatalf("block %q", block)
			}
			e := decode[Event](w, []byte(strings.TrimPrefix(lines[2], "data: ")))
			if lines[0] != fmt.Sprintf("id: %d", e.Sequence) || lines[1] != "event: "+e.Type {
				w.Errorf("block %q", block)
			}
			seen = append(seen, e.Sequence)
		}
		after = b.Last
		if !b.More {
			return seen
		}
	}
}

func (w *issueFixture) wantLog(what string, who *Caller, want ...uint64) {
	w.Helper()
	if got := w.logFor(who); fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("%s: %s sees %v, want %v", what, who.ID, got, want)
	}
}

func TestListEvents_FollowsTheIssueOfToday(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	mel := w.somebody(ActorUser, "mel", w.core)
	sam := w.somebody(ActorUser, "sam", w.core, w.secret)
	open := w.create(CreateIssueIn{})                                                       // 1
	hidden := w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(w.secret)}})     // 2
	w.run(&w.ann, CreateComment, &CreateCommentIn{IssueID: string(open.ID), Body: "one"})   // 3
	w.run(&w.ann, CreateComment, &CreateCommentIn{IssueID: string(hidden.ID), Body: "two"}) // 4
	w.wantLog("teams decide", &w.ann, 1, 2, 3, 4)
	w.wantLog("teams decide", sam, 1, 2, 3, 4)
	w.wantLog("teams decide", mel, 1, 3)
	w.wantLog("teams decide", &w.gus, 1, 3)

	w.grant(open.ID, "mel", GranteeUser)
	w.wantLog("a restricted issue's past is its listed actors'", mel, 1, 3)
	w.wantLog("a restricted issue's past is its listed actors'", sam, 2, 4)
	w.wantLog("admins see all", &w.ann, 1, 2, 3, 4)
	w.ungrant(open.ID, "mel")
	w.wantLog("open again", sam, 1, 2, 3, 4)

	w.patch(hidden.ID, IssuePatch{IssueFields: IssueFields{TeamID: Some(w.web)}}) // 5
	w.wantLog("moved out of a private team, its past is seen too", mel, 1, 2, 3, 4, 5)
	w.patch(open.ID, IssuePatch{IssueFields: IssueFields{TeamID: Some(w.secret)}}) // 6
	w.wantLog("moved into a private team, its past is not", mel, 2, 4, 5)
	w.verify()
}

func TestListEvents_OfDeletedIssues(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	mel := w.somebody(ActorUser, "mel", w.core)
	plain := w.create(CreateIssueIn{})  // 1
	closed := w.create(CreateIssueIn{}) // 2, restricted right after
	w.grant(closed.ID, "mel", GranteeUser)
	w.run(&w.ann, CreateComment, &CreateCommentIn{IssueID: string(closed.ID), Body: "secret"}) // 3
	moved := w.create(CreateIssueIn{})                                                         // 4
	w.patch(moved.ID, IssuePatch{IssueFields: IssueFields{TeamID: Some(w.secret)}})            // 5
	w.wantLog("before", mel, 1, 2, 3)
	w.wantLog("before", &w.gus, 1)
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(plain.ID)})  // 6
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(closed.ID)}) // 7: the comment, 8
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(moved.ID)})  // 9
	w.wantLog("after", &w.ann, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	w.wantLog("what was restricted when it went is the admins', its beginnings too", mel, 1, 6)
	w.wantLog("after", &w.gus, 1, 6)
	w.verify()

	// After 30 days the rows of deleted issues are removed with their last events.
	w.now = w.now.Add(eventLife + time.Hour)
	w.run(&System, sweepEventsOp, &TimerIn{})
	w.wantLog("swept", &w.ann)
	v := storage.NewView(w.db, 1, w.workspace)
	if left, err := v.Has(tombstoneTable, nil); err != nil || left {
		t.Errorf("notes of deleted issues are left: %v", err)
	}
	w.verify()
}

// A deleted team may have been private: only admins see its events, even if other
// callers saw the team.
func TestListEvents_OfATeamThatIsGone(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	mel := w.somebody(ActorUser, "mel", w.core)
	sam := w.somebody(ActorUser, "sam", w.core, w.secret)
	issue := w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(w.secret)}})                           // 1
	w.propose(&w.ann, CreateDraftIn{Kind: DraftIssueCreate}, fmt.Sprintf(`{"title":"x","teamId":%q}`, w.secret)) // 2
	w.wantLog("private", sam, 1, 2)
	w.wantLog("private", mel)
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)}) // 3
	w.wantLog("private", sam, 1, 2, 3)
	w.wantLog("private", mel)
	w.run(&w.ann, DeleteTeam, &TeamByIDIn{ID: w.secret})
	mel.Hidden, sam.Hidden = nil, nil // the team was hidden from neither of them
	w.wantLog("gone", sam)
	w.wantLog("gone", mel)
	w.wantLog("gone", &w.ann, 1, 2, 3)
	w.verify()
}

// The events of a draft become as hidden as the issue that it became.
func TestListEvents_OfDraftsThatBecameIssues(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	mel := w.somebody(ActorUser, "mel", w.core)
	d := w.propose(&w.ann, CreateDraftIn{Kind: DraftIssueCreate}, `{"title":"x","changes":{"issueId":"y"}}`) // 1
	other := w.propose(&w.ann, CreateDraftIn{Kind: DraftIssueCreate}, `{"title":"z"}`)                       // 2
	w.wantLog("proposed", mel, 1, 2)
	issue := *w.publish(&w.ann, d.ID).IssueID // 3: issue.created, 4: draft.published
	w.wantLog("published", mel, 1, 2, 3, 4)
	w.grant(issue, "ann", GranteeUser)
	w.wantLog("restricted", mel, 2)
	w.wantLog("restricted", &w.ann, 1, 2, 3, 4)
	w.ungrant(issue, "ann")
	w.wantLog("open again", mel, 1, 2, 3, 4)
	w.run(&w.ann, DiscardDraft, &DecideDraftIn{ID: string(other.ID)}) // 5
	w.wantLog("discarded", mel, 1, 2, 3, 4, 5)
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(issue)}) // 6
	w.wantLog("deleted, and the draft with it", mel, 2, 3, 4, 5, 6)
	w.wantLog("deleted", &w.ann, 1, 2, 3, 4, 5, 6)
	w.verify()
}

// Every type of an emitted event is listed in EventTypes.
func TestEventTypes_AreAllThereAre(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok || name == "event_type.go" || strings.HasSuffix(name, "_test.go") {
				return true
			}
			if kind, ok := literal.Type.(*ast.Ident); ok && kind.Name == "eventKind" {
				t.Errorf("%s makes an eventKind without newEventKind", name)
			}
			return true
		})
	}
	for _, name := range EventTypes() {
		if kind := eventsByName[name]; eventsOf(name) != kind.bit || kind.bit == 0 {
			t.Errorf("%s has the bit %b, a filter by its name %b", name, kind.bit, eventsOf(name))
		}
	}
}

func TestListEvents_HidesParents(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	mel := w.somebody(ActorUser, "mel", w.core)
	mum := w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(w.secret)}})
	dad := w.create(CreateIssueIn{})
	child := w.create(CreateIssueIn{Title: `child "parentId":{"from":`, IssueFields: IssueFields{ParentID: Some(mum.ID)}})
	w.patch(child.ID, IssuePatch{IssueFields: IssueFields{ParentID: Some(dad.ID)}})
	w.patch(child.ID, IssuePatch{Title: Some("again"), IssueFields: IssueFields{ParentID: Some(mum.ID)}})
	for _, row := range []struct {
		who  *Caller
		want string
	}{
		{&w.ann, fmt.Sprintf("%[1]s - -, %[2]s %[1]s %[2]s, %[1]s %[2]s %[1]s", mum.ID, dad.ID)},
		{mel, fmt.Sprintf("null - -, %[1]s null %[1]s, null %[1]s null", dad.ID)},
	} {
		var got []string
		for _, e := range w.page(row.who, ListEventsIn{Types: "issue.*"}).Events {
			if data := decode[Issue](t, e.Data); data.ID == child.ID {
				at := "null"
				if data.ParentID != nil {
					at = string(*data.ParentID)
				}
				from, to := "-", "-"
				if c, ok := e.Changes["parentId"]; ok {
					from, to = strings.Trim(string(c.From), `"`), strings.Trim(string(c.To), `"`)
				}
				got = append(got, at+" "+from+" "+to)
			}
		}
		if strings.Join(got, ", ") != row.want {
			t.Errorf("%s sees parents %v, want %s", row.who.ID, got, row.want)
		}
	}
	w.wantLog("the child is no secret", mel, 2, 3, 4, 5)
}

func TestListEvents_TypesAndRights(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})                                                     // 1
	w.run(&w.ann, CreateComment, &CreateCommentIn{IssueID: string(issue.ID), Body: "one"}) // 2
	w.run(&w.ann, DispatchIssue, &DispatchIssueIn{ID: string(issue.ID)})                   // 3
	w.run(&System, NewCommand[None, None]("emit", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		for _, kind := range []*eventKind{eventTicketCreated, eventVCS, {name: "later.event"}} { // 4, 5, 6
			if err := tx.Emit(kind, storage.Header{Version: 1}, []byte("{\n\"id\":\"x\",\r\"changes\":{},\"issueId\":\""+string(issue.ID)+"\"}"), nil); err != nil {
				return Reply{}, err
			}
		}
		return Reply{}, nil
	}), &None{})
	limited := func(permissions string) *Caller {
		c := *w.somebody(ActorUser, "mel", w.core)
		c.Permissions, _, _ = ParsePermissions(permissions)
		c.Level = c.Permissions.level()
		return &c
	}
	mel := limited("read")
	for _, row := range []struct {
		who   *Caller
		types string
		want  string
	}{
		{mel, "", "1 2 3 4 5 6"},
		{mel, "*", "1 2 3 4 5 6"},
		{mel, "issue.*,ticket.created", "1 4"},
		{mel, "comment.created, session.*", "2 3"},
		{mel, "issue.deleted", ""},
		{limited("issues:read"), "", "1 2"},
		{limited("issues:read"), "issue.*,ticket.*", "1"},
		{limited("sessions:read"), "", "3"},
		{limited("issues:write,sessions:read"), "*", "1 2 3"},
		{&w.gus, "", "1 2 3 4 5 6"},
	} {
		var got []string
		for _, e := range w.page(row.who, ListEventsIn{Types: row.types}).Events {
			got = append(got, fmt.Sprint(e.Sequence))
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("types %q: %v, want %s", row.types, got, row.want)
		}
		set, _ := parseEventTypes(row.types)
		if listened := strings.Trim(fmt.Sprint(w.listened(row.who, set, 2)), "[]"); listened != row.want {
			t.Errorf("types %q: a stream has %v, want %s", row.types, listened, row.want)
		}
	}
	_, err := w.ask(limited("issues:read"), ListEvents, &ListEventsIn{Types: "ticket.*"})
	wantCode(t, err, CodeForbidden)
	_, err = w.ask(limited("issues:read"), StartEvents, &ListEventsIn{Types: "ticket.*"})
	wantCode(t, err, CodeForbidden)
	for _, types := range []string{"issue", "issue.create", "issue.created.*", "issue*", "no.*", ",", "issue.created,", "later.event", "iss*"} {
		var faults Faults
		(&ListEventsIn{Types: types}).Validate(&faults)
		wantCode(t, faults.Err(), CodeBadRequest, "query.types")
	}
}

func TestListEvents_Places(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	for range 5 {
		w.create(CreateIssueIn{})
	}
	for _, row := range []struct {
		in   ListEventsIn
		want string
	}{
		{ListEventsIn{After: Some[int64](2)}, "[3 4 5] "},
		{ListEventsIn{After: Some[int64](2), Limit: 2}, "[3 4] 4"},
		{ListEventsIn{After: Some[int64](3), Limit: 2}, "[4 5] "},
		{ListEventsIn{Cursor: "4"}, "[5] "},
		{ListEventsIn{After: Some[int64](0), Limit: 1}, "[1] 1"},
		{ListEventsIn{After: Some[int64](5)}, "[] "},
		{ListEventsIn{After: Some[int64](99)}, "[] "},
		{ListEventsIn{Types: "comment.*"}, "[] "},
	} {
		page := w.page(&w.ann, row.in)
		numbers := []uint64{}
		for _, e := range page.Events {
			numbers = append(numbers, e.Sequence)
		}
		if got := fmt.Sprint(numbers, " ", page.NextCursor); got != row.want {
			t.Errorf("%+v: %s, want %s", row.in, got, row.want)
		}
	}
	for _, in := range []ListEventsIn{{Cursor: "x"}, {Cursor: "-1"}, {Cursor: "+5"}, {Cursor: "9223372036854775808"}, {Cursor: "4", After: Some[int64](3)}} {
		var faults Faults
		in.Validate(&faults)
		wantCode(t, faults.Err(), CodeBadRequest, "query.cursor")
	}
	begins := func(in ListEventsIn) uint64 {
		t.Helper()
		if _, err := w.ask(&w.ann, StartEvents, &in); err != nil {
			t.Fatal(err)
		}
		after, _ := in.Started()
		return after
	}
	if got := fmt.Sprint(begins(ListEventsIn{}), begins(ListEventsIn{After: Some[int64](2)}), begins(ListEventsIn{After: Some[int64](2), LastEventID: "3"}), begins(ListEventsIn{LastEventID: "0"})); got != "5 2 3 0" {
		t.Errorf("streams begin behind %s", got)
	}
	_, err := w.ask(&w.ann, StartEvents, &ListEventsIn{LastEventID: "x"})
	wantCode(t, err, CodeBadRequest, "header.Last-Event-ID")

	// The first three events are swept: a reader at the third has missed nothing.
	w.now = w.now.Add(eventLife - 3*time.Millisecond)
	w.run(&System, sweepEventsOp, &TimerIn{})
	w.wantLog("swept", &w.ann, 4, 5)
	if _, err = w.ask(&w.ann, ListEvents, &ListEventsIn{After: Some[int64](3)}); err != nil {
		t.Error(err)
	}
	_, err = w.ask(&w.ann, ListEvents, &ListEventsIn{After: Some[int64](2)})
	wantCode(t, err, CodeBadRequest, "query.after")
	_, err = w.ask(&w.ann, StartEvents, &ListEventsIn{LastEventID: "2", After: Some[int64](0)})
	wantCode(t, err, CodeBadRequest, "header.Last-Event-ID")
	w.now = w.now.Add(time.Hour)
	w.run(&System, sweepEventsOp, &TimerIn{})
	_, err = w.ask(&w.ann, ListEvents, &ListEventsIn{After: Some[int64](4)})
	wantCode(t, err, CodeBadRequest, "query.after")
	if page := w.page(&w.ann, ListEventsIn{After: Some[int64](5)}); len(page.Events) != 0 {
		t.Errorf("page %+v", page)
	}
}

func TestListEvents_ASearchInVainEnds(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.run(&System, NewCommand[None, None]("emit", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		for range maxEventsExamined + 5 {
			if err := tx.Emit(dealEvents.updated, storage.Header{Version: 1}, []byte(`{"id":"x"}`), nil); err != nil {
				return Reply{}, err
			}
		}
		return Reply{}, nil
	}), &None{})
	issue := w.create(CreateIssueIn{})
	page := w.page(&w.ann, ListEventsIn{Types: "issue.*", Wait: 20})
	if len(page.Events) != 0 || page.NextCursor != fmt.Sprint(maxEventsExamined) {
		t.Fatalf("page of %d events and cursor %q", len(page.Events), page.NextCursor)
	}
	page = w.page(&w.ann, ListEventsIn{Types: "issue.*", Cursor: page.NextCursor})
	if len(page.Events) != 1 || decode[Issue](t, page.Events[0].Data).ID != issue.ID || page.NextCursor != "" {
		t.Errorf("page %+v", page)
	}
}

// An entity with events adds three types, so that sets of types must have room to grow.
func TestEventKinds_LeaveRoomForMore(t *testing.T) {
	t.Parallel()
	if left := maxEventKinds - len(eventKinds); left < 9 {
		t.Errorf("%d types of events, and room for %d more: make EventSet larger", len(eventKinds), left)
	}
}
