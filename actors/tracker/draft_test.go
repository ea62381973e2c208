package tracker

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// payload returns a draft's payload as the binder decodes it.
func payload(t tester, kind DraftKind, text string) DraftPayload {
	t.Helper()
	p, err := readPayload(kind, json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return *p
}

func (w *issueFixture) propose(who *Caller, in CreateDraftIn, text string) Draft {
	w.Helper()
	in.Payload = payload(w, in.Kind, text)
	return decode[Draft](w, w.run(who, CreateDraft, &in).Body)
}

func (w *issueFixture) publish(who *Caller, id DraftID) Draft {
	w.Helper()
	return decode[Draft](w, w.run(who, PublishDraft, &DecideDraftIn{ID: string(id)}).Body)
}

// drafts returns the ids of the drafts that a caller sees.
func (w *issueFixture) drafts(who *Caller, in ListDraftsIn) (ids []DraftID) {
	w.Helper()
	for {
		reply, err := w.ask(who, ListDrafts, &in)
		if err != nil {
			w.Fatal(err)
		}
		page := decode[DraftPage](w, reply.Body)
		for _, d := range page.Drafts {
			ids = append(ids, d.ID)
		}
		if page.NextCursor == "" {
			return ids
		}
		in.Cursor = Some(page.NextCursor)
	}
}

// draftEvents returns the events of drafts, with the team that sees them.
func (w *issueFixture) draftEvents() (events []string) {
	w.Helper()
	v := storage.NewView(w.db, 1, w.workspace)
	err := v.Rows(eventTable, nil, nil, func(fields, value []byte) (bool, error) {
		rec, err := EventRow(&v, fields, value)
		if err != nil {
			return false, err
		}
		var e struct {
			Type    string
			Data    map[string]any
			Changes map[string]struct{ From, To *string }
		}
		if err := json.Unmarshal(rec.JSON(), &e); err != nil || !strings.HasPrefix(e.Type, "draft.") {
			return true, err
		}
		if len(e.Data) != 16 {
			w.Errorf("%s tells of %d fields: %v", e.Type, len(e.Data), e.Data)
		}
		team := rec.Team()
		text := fmt.Sprintf("%s %s %v", e.Type, map[TeamID]string{w.core: "CORE", w.web: "WEB", w.secret: "SEC"}[TeamID(team.String())], e.Data["status"])
		if c, ok := e.Changes["status"]; ok {
			text += fmt.Sprintf(" %s->%s", *c.From, *c.To)
		}
		if rec.Flags() != 0 {
			w.Errorf("%s has the flags %b", e.Type, rec.Flags())
		}
		events = append(events, text)
		return true, nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return events
}

// member returns a user of the workspace who sees its public teams.
func (w *issueFixture) member() *Caller {
	eve := w.gus
	eve.ID, eve.Role = "eve", RoleMember
	return &eve
}

func TestDrafts_AreToldOfToThoseWhoSeeThem(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	open := w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(w.web)}})
	w.publish(&w.gus, w.propose(&w.gus, CreateDraftIn{Kind: DraftComment, IssueID: Some(open.ID)}, `{"body":"hello"}`).ID)
	hidden := w.propose(&w.ann, CreateDraftIn{Kind: DraftIssueCreate}, fmt.Sprintf(`{"title":"x","teamId":%q}`, w.secret))
	w.run(&w.ann, DiscardDraft, &DecideDraftIn{ID: string(hidden.ID), Note: Some("no")})
	moved := w.propose(&w.gus, CreateDraftIn{Kind: DraftIssueUpdate, IssueID: Some(open.ID)}, `{"teamKey":"core"}`)
	w.publish(&w.ann, moved.ID)
	want := []string{
		"draft.created WEB pending", "draft.published WEB published pending->published",
		"draft.created SEC pending", "draft.discarded SEC discarded pending->discarded",
		"draft.created WEB pending", "draft.published CORE published pending->published",
	}
	if got := w.draftEvents(); !slices.Equal(got, want) {
		t.Errorf("events\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	w.verify()
}

// A caller who may not see the issue, or the team of a proposed issue, does not see the
// draft and can't decide on it.
func TestDrafts_AreHiddenWithTheirIssue(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	secret := w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(w.secret)}})
	onSecret := w.propose(&w.ann, CreateDraftIn{Kind: DraftComment, IssueID: Some(secret.ID)}, `{"body":"x"}`)
	forSecret := w.propose(&w.ann, CreateDraftIn{Kind: DraftIssueCreate}, fmt.Sprintf(`{"title":"x","teamId":%q}`, w.secret))
	open := w.create(CreateIssueIn{})
	onOpen := w.propose(&w.gus, CreateDraftIn{Kind: DraftComment, IssueID: Some(open.ID)}, `{"body":"x"}`)
	public := w.propose(&w.gus, CreateDraftIn{Kind: DraftIssueCreate}, `{"title":"x","issueId":"`+string(secret.ID)+`"}`)

	for _, id := range []DraftID{onSecret.ID, forSecret.ID} {
		_, err := w.ask(&w.gus, DraftByID, &RecordIn{ID: string(id)})
		wantCode(t, err, CodeNotFound)
		for _, op := range []*Op{PublishDraft, DiscardDraft} {
			_, _, err = w.try(&w.gus, op, &DecideDraftIn{ID: string(id)})
			wantCode(t, err, CodeNotFound)
		}
	}
	if got := w.drafts(&w.gus, ListDraftsIn{Limit: 1}); !slices.Equal(got, []DraftID{public.ID, onOpen.ID}) {
		t.Errorf("seen are %v", got)
	}
	if got := w.drafts(&w.gus, ListDraftsIn{IssueID: Some(string(secret.ID))}); got != nil {
		t.Errorf("seen are %v", got)
	}
	if got := w.drafts(&w.ann, ListDraftsIn{}); len(got) != 4 {
		t.Errorf("the owner sees %v", got)
	}
	for _, in := range []CreateDraftIn{
		{Kind: DraftComment, IssueID: Some(secret.ID), Payload: payload(t, DraftComment, `{"body":"x"}`)},
		{Kind: DraftIssueCreate, IssueID: Some(secret.ID), Payload: payload(t, DraftIssueCreate, `{"title":"x"}`)},
		{Kind: DraftIssueUpdate, EntityID: Some(string(secret.ID)), Payload: payload(t, DraftIssueUpdate, `{}`)},
	} {
		_, _, err := w.try(&w.gus, CreateDraft, &in)
		wantCode(t, err, CodeNotFound)
	}
	_, _, err := w.try(&w.gus, CreateDraft, &CreateDraftIn{Kind: DraftIssueCreate, Payload: payload(t, DraftIssueCreate, `{"title":"x","teamKey":"SEC","parentId":"`+string(secret.ID)+`"}`)})
	wantCode(t, err, CodeBadRequest, "payload.teamKey", "payload.parentId")

	// Drafts are hidden with an issue that moves to a hidden team.
	w.patch(open.ID, IssuePatch{IssueFields: IssueFields{TeamID: Some(w.secret)}})
	if got := w.drafts(&w.gus, ListDraftsIn{}); !slices.Equal(got, []DraftID{public.ID}) {
		t.Errorf("seen are %v", got)
	}
	w.verify()
}

// Only an admin sees proposals for a deleted team, which may have been private.
func TestDrafts_OfATeamThatIsGone(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	d := w.propose(&w.ann, CreateDraftIn{Kind: DraftIssueCreate}, fmt.Sprintf(`{"title":"x","teamId":%q}`, w.secret))
	w.run(&w.ann, DeleteTeam, &TeamByIDIn{ID: w.secret})
	eve := w.member()
	eve.Hidden = nil
	_, err := w.ask(eve, DraftByID, &RecordIn{ID: string(d.ID)})
	wantCode(t, err, CodeNotFound)
	if got := w.drafts(eve, ListDraftsIn{}); got != nil {
		t.Errorf("seen are %v", got)
	}
	_, _, err = w.try(&w.ann, PublishDraft, &DecideDraftIn{ID: string(d.ID)})
	wantCode(t, err, CodeConflict, "payload.teamId")
	w.run(&w.ann, DiscardDraft, &DecideDraftIn{ID: string(d.ID)})
	w.verify()
}

// A publication that fails leaves neither the write nor the decision.
func TestPublishDraft_IsWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{Title: "As it was"})
	first := w.comment(&w.ann, issue.ID, "first", "")
	reply := w.propose(&w.gus, CreateDraftIn{Kind: DraftComment, IssueID: Some(issue.ID)}, fmt.Sprintf(`{"body":"second","parentId":%q}`, first.ID))
	change := w.propose(&w.gus, CreateDraftIn{Kind: DraftIssueUpdate, IssueID: Some(issue.ID)}, `{"title":"Other","externalRef":"taken"}`)
	w.run(&w.ann, DeleteComment, &RecordIn{ID: string(first.ID)})
	w.create(CreateIssueIn{IssueFields: IssueFields{ExternalRef: Some("taken")}})
	before := len(w.events())
	for id, paths := range map[DraftID][]string{reply.ID: {"payload.parentId"}, change.ID: nil} {
		_, _, err := w.try(&w.ann, PublishDraft, &DecideDraftIn{ID: string(id)})
		wantCode(t, err, CodeConflict, paths...)
		got, err := w.ask(&w.ann, DraftByID, &RecordIn{ID: string(id)})
		if err != nil || decode[Draft](t, got.Body).Status != DraftPending {
			t.Errorf("the draft is %s, %v", got.Body, err)
		}
	}
	if got := w.get(issue.ID); got.Title != "As it was" || len(w.events()) != before {
		t.Errorf("the issue is %+v", got)
	}
	w.verify()
}

// Publishing a draft of a new issue has the same result as a creation with the same
// body.
func TestPublishDraft_CreatesWhatACreationWould(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	parent := w.create(CreateIssueIn{})
	body := fmt.Sprintf(`{"title":"Ä <b>&","description":"d","status":"todo","priority":"low","resolution":"obsolete","parentId":%q,"subIssueSortOrder":-1.5e2,"estimate":8e0,
		"isDraft":true,"snoozedUntil":"2027-01-01T00:00:00+01:00","assigneeId":"a","projectId":"p","cycleId":"c","labelIds":["x","y","x"],"repo":"o/r","branch":null,"teamKey":"web"}`, parent.ID)
	p := payload(t, DraftIssueCreate, body)
	direct := w.create(CreateIssueIn{Title: p.Title.Value, IssueFields: p.IssueFields}).Issue
	d := w.publish(&w.gus, w.propose(w.member(), CreateDraftIn{Kind: DraftIssueCreate}, body).ID)
	if d.IssueID == nil || d.EntityID == nil || *d.EntityID != string(*d.IssueID) || d.CreatedByID != "eve" || *d.ReviewedByID != "gus" {
		t.Fatalf("draft %+v", d)
	}
	got := w.get(*d.IssueID)
	if *got.Estimate != 8 || *got.SubIssueSortOrder != -150 || *got.LabelIDs != `["x","y"]` || *got.SnoozedUntil != "2026-12-31T23:00:00.000Z" || got.Branch != nil || got.TeamID != w.web {
		t.Errorf("issue %+v", got)
	}
	direct.ID, direct.Number, direct.Identifier, direct.CreatedAt, direct.UpdatedAt = got.ID, got.Number, got.Identifier, got.CreatedAt, got.UpdatedAt
	if changes := issueChanges(&direct, &got); len(changes) != 0 {
		t.Errorf("the two differ: %+v", changes)
	}
	w.verify()
}

func TestDeleteIssue_TakesManyDrafts(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue, other := w.create(CreateIssueIn{}), w.create(CreateIssueIn{})
	kept := w.propose(&w.gus, CreateDraftIn{Kind: DraftComment, IssueID: Some(other.ID)}, `{"body":"x"}`)
	for range maxBudgetRecords + 20 {
		w.propose(&w.gus, CreateDraftIn{Kind: DraftComment, IssueID: Some(issue.ID)}, `{"body":"x"}`)
	}
	_, times, err := w.try(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	if err != nil || times != 2 {
		t.Fatalf("%d runs, %v", times, err)
	}
	if got := w.drafts(&w.ann, ListDraftsIn{}); !slices.Equal(got, []DraftID{kept.ID}) {
		t.Errorf("left are %v", got)
	}
	w.verify()
}

// The verifier finds drafts that contradict themselves or their references.
func TestCheckDrafts_FindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	when, who, comment := Timestamp("2026-11-20T21:30:00.123Z"), "ann", CommentID("01935000-0000-7000-8000-0000000000ed")
	nowhere, session := IssueID("01935000-0000-7000-8000-0000000000ee"), SessionID("01935000-0000-7000-8000-0000000000ef")
	for name, harm := range map[string]func(d *draftRecord){
		"no issue":         func(d *draftRecord) { d.IssueID = nil },
		"a missing issue":  func(d *draftRecord) { d.IssueID = &nowhere },
		"a lost session":   func(d *draftRecord) { d.SessionID = &session },
		"unknown status":   func(d *draftRecord) { d.Status = "lost" },
		"half a decision":  func(d *draftRecord) { d.ReviewedAt = &when },
		"no reviewer":      func(d *draftRecord) { d.Status = DraftDiscarded },
		"no comment":       func(d *draftRecord) { d.Status, d.ReviewedAt, d.ReviewedByID = DraftPublished, &when, &who },
		"a comment":        func(d *draftRecord) { d.PublishedCommentID = &comment },
		"a broken payload": func(d *draftRecord) { d.Payload = json.RawMessage(`{"body":7}`) },
		"another's":        func(d *draftRecord) { d.OrganizationID = "x" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newIssueFixture(t)
			issue := w.create(CreateIssueIn{})
			id := w.propose(&w.ann, CreateDraftIn{Kind: DraftComment, IssueID: Some(issue.ID)}, `{"body":"x"}`).ID
			w.verify()
			w.run(&w.ann, NewCommand[None, None]("harm", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
				row, err := tx.draft(string(id))
				if err != nil {
					return Reply{}, err
				}
				d := row.Value
				harm(&d)
				_, err = drafts.Update(tx, row, &d)
				return Reply{}, err
			}), &None{})
			schema := Schema()
			schema.CheckStore = nil
			report, err := storage.Verify(t.Context(), w.db, schema)
			if err != nil {
				t.Fatal(err)
			}
			if report.Clean() {
				t.Error("nothing was found")
			}
		})
	}
}

// A payload is stored and sent on one line, whatever its layout, and its content can't
// be mistaken for the draft's own fields.
func TestCreateDraft_KeepsThePayloadOnOneLine(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	body := w.run(&w.gus, CreateDraft, &CreateDraftIn{Kind: DraftComment, IssueID: Some(issue.ID), Payload: payload(t, DraftComment, "{\n \"body\": \"a <b>\",\r\n\t\"x\" : {\"inner\":{\"sessionId\":\"y\"},\"inner\\u0022\":[ ]} }")}).Body
	const want = `"payload":{"body":"a <b>","x":{"inner":{"sessionId":"y"},"inner\u0022":[]}}}`
	if strings.ContainsAny(string(body), "\n\r\t") || !strings.HasSuffix(string(body), want) {
		t.Errorf("the answer is %s", body)
	}
	id := decode[Draft](t, body).ID
	if got := w.drafts(&w.gus, ListDraftsIn{}); !slices.Equal(got, []DraftID{id}) {
		t.Errorf("listed are %v", got)
	}
	w.verify()
}
