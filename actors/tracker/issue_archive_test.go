package tracker

import (
	"errors"
	"slices"
	"testing"

	json "github.com/goccy/go-json"
)

// archiveOp archives a closed issue, as a sweep does.
var archiveOp = NewCommand[UnarchiveIssueIn, None]("archive", "", Needs{}, func(tx *Tx, in *UnarchiveIssueIn) (Reply, error) {
	row, err := tx.issue(in.ID)
	if err != nil || row == nil || !row.Value.Status.Closed() {
		return Reply{}, err
	}
	return Reply{}, tx.archiveIssue(row)
})

// archived creates a closed issue and archives it.
func (w *issueFixture) archived(in CreateIssueIn) Issue {
	w.Helper()
	in.Status = Some(StatusDone)
	id := w.create(in).ID
	w.run(&System, archiveOp, &UnarchiveIssueIn{ID: string(id)})
	return w.get(id)
}

func TestArchivedIssue_RefusesEveryWrite(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	made := w.create(CreateIssueIn{Title: "closed soon", IssueFields: IssueFields{ExternalRef: Some("ref")}})
	other, blocker := w.create(CreateIssueIn{Title: "other"}).ID, w.create(CreateIssueIn{Title: "blocker"}).ID
	id := string(made.ID)
	comment := decode[Comment](t, w.run(&w.ann, CreateComment, &CreateCommentIn{IssueID: id, Body: "Done."}).Body)
	draft := decode[Draft](t, w.run(&w.ann, CreateDraft, &CreateDraftIn{Kind: DraftComment, IssueID: Some(made.ID), Payload: DraftPayload{Body: Some("More.")}}).Body)
	share := decode[IssueShare](t, w.run(&w.ann, CreateShare, &CreateShareIn{ID: id}).Body)
	w.run(&w.ann, PutAccessGrant, &PutAccessGrantIn{ID: id, ActorID: "gus"})
	w.run(&w.ann, PutRelation, &RelationIn{ID: id, Type: RelationBlockedBy, OtherID: string(blocker)})
	failed := decode[DispatchedSession](t, w.run(&w.ann, DispatchIssue, &DispatchIssueIn{ID: id}).Body)
	w.run(&w.ann, CancelSession, &CancelSessionIn{ID: failed.ID})
	open := decode[DispatchedSession](t, w.run(&w.ann, DispatchIssue, &DispatchIssueIn{ID: id}).Body)
	w.patch(made.ID, IssuePatch{IssueFields: IssueFields{Status: Some(StatusDone)}})
	w.run(&System, archiveOp, &UnarchiveIssueIn{ID: id})
	was := w.get(made.ID)
	if was.ArchivedAt == nil {
		t.Fatal("the issue is not archived")
	}

	for name, c := range map[string]struct {
		op *Op
		in any
	}{
		"patch":             {PatchIssue, &PatchIssueIn{ID: id, IssuePatch: IssuePatch{Title: Some("x")}}},
		"patch of nothing":  {PatchIssue, &PatchIssueIn{ID: id}},
		"assign":            {AssignIssue, &AssignIssueIn{ID: id, AssigneeID: Some("x")}},
		"batch":             {BatchIssues, &BatchIssuesIn{IDs: []string{string(other), id}, Patch: IssuePatch{Title: Some("x")}}},
		"comment":           {CreateComment, &CreateCommentIn{IssueID: id, Body: "x"}},
		"comment's change":  {PatchComment, &PatchCommentIn{ID: string(comment.ID), Body: Some("x")}},
		"comment's end":     {DeleteComment, &RecordIn{ID: string(comment.ID)}},
		"draft's comment":   {PublishDraft, &DecideDraftIn{ID: string(draft.ID)}},
		"share":             {CreateShare, &CreateShareIn{ID: id}},
		"share's end":       {RevokeShare, &ShareIn{ID: id, Token: share.Token}},
		"grant":             {PutAccessGrant, &PutAccessGrantIn{ID: id, ActorID: "bob"}},
		"the same grant":    {PutAccessGrant, &PutAccessGrantIn{ID: id, ActorID: "gus"}},
		"grant's end":       {RemoveAccessGrant, &AccessGrantIn{ID: id, ActorID: "gus"}},
		"relation":          {PutRelation, &RelationIn{ID: id, Type: RelationRelates, OtherID: string(other)}},
		"relation to it":    {PutRelation, &RelationIn{ID: string(other), Type: RelationRelates, OtherID: id}},
		"the same relation": {PutRelation, &RelationIn{ID: id, Type: RelationBlockedBy, OtherID: string(blocker)}},
		"relation's end":    {DeleteRelation, &RelationIn{ID: string(blocker), Type: RelationBlocks, OtherID: id}},
		"child":             {CreateIssue, &CreateIssueIn{Title: "x", IssueFields: IssueFields{ParentID: Some(made.ID)}}},
		"child by a patch":  {PatchIssue, &PatchIssueIn{ID: string(other), IssuePatch: IssuePatch{IssueFields: IssueFields{ParentID: Some(made.ID)}}}},
		"dispatch":          {DispatchIssue, &DispatchIssueIn{ID: id}},
		"register":          {RegisterSession, &RegisterSessionIn{IssueID: id, Provider: "p"}},
		"spawn":             {SpawnSession, &SpawnSessionIn{ID: open.ID, Title: "x"}},
		"retry":             {RetrySession, &RetrySessionIn{ID: failed.ID}},
	} {
		_, _, err := w.try(&w.ann, c.op, c.in)
		var refused *Error
		if !errors.As(err, &refused) || refused.Code != CodeConflict {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d, ok := refused.Details.(ArchivedDetails); !ok || d.IssueID != made.ID {
			t.Errorf("%s: details %v", name, refused.Details)
		}
	}
	_, _, err := w.try(&w.ann, PatchIssue, &PatchIssueIn{ID: string(other), IssuePatch: IssuePatch{IssueFields: IssueFields{ParentID: Some(made.ID), TeamID: Some(TeamID("none"))}}})
	wantCode(t, err, CodeBadRequest, "teamId") // faults of the body come first
	items := decode[DispatchedBatch](t, w.run(&w.ann, DispatchBatch, &DispatchBatchIn{Items: []DispatchItem{{IssueID: id}}}).Body)
	if items.Results[0].Error == nil {
		t.Error("a batch dispatched the archived issue")
	}
	if again := decode[CreatedIssue](t, w.run(&w.ann, CreateIssue, &CreateIssueIn{Title: "x", IssueFields: IssueFields{ExternalRef: Some("ref")}}).Body); again.ID != made.ID {
		t.Errorf("its externalRef makes %s", again.ID)
	}
	if now := w.get(made.ID); !equalJSON(t, now, was) {
		t.Errorf("the issue is now %+v, it was %+v", now, was)
	}

	back := decode[Issue](t, w.run(&w.ann, UnarchiveIssue, &UnarchiveIssueIn{ID: id}).Body)
	if back.ArchivedAt != nil || back.Status != StatusDone {
		t.Errorf("brought back it is %+v", back)
	}
	w.patch(made.ID, IssuePatch{Title: Some("Changed")})
	w.run(&System, archiveOp, &UnarchiveIssueIn{ID: id})
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: id})
	w.verify()
	var told []string
	for _, e := range w.events() {
		if e.Type == "issue.archived" || e.Type == "issue.deleted" {
			told = append(told, e.Type)
		}
	}
	if want := []string{"issue.archived", "issue.archived", "issue.deleted"}; !slices.Equal(told, want) {
		t.Errorf("told of %v", told)
	}
}

func equalJSON(t tester, a, b any) bool {
	t.Helper()
	x, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(x) == string(y)
}

func TestDispatch_NamesFaultsBeforeTheArchive(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	id := w.archived(CreateIssueIn{Title: "over"}).ID
	in := &DispatchIssueIn{ID: string(id), SessionOptions: SessionOptions{NotBefore: Some(string(At(w.now.AddDate(2, 0, 0)))), QueuedAfter: []byte(`"none"`)}}
	_, _, err := w.try(&w.ann, DispatchIssue, in)
	wantCode(t, err, CodeBadRequest, "queuedAfter", "notBefore")
}

func TestArchivedIssue_IsInListsOfArchivedOnesOnly(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	parent := w.create(CreateIssueIn{Title: "parent coach"}).ID
	live := w.create(CreateIssueIn{Title: "live coach", IssueFields: IssueFields{ParentID: Some(parent), Status: Some(StatusDone)}})
	gone := w.archived(CreateIssueIn{Title: "gone coach", IssueFields: IssueFields{ParentID: Some(parent), ExternalRef: Some("ref")}})
	w.buildSets()
	for name, c := range map[string]struct {
		f    IssueFilter
		want []IssueID
	}{
		"all":                     {IssueFilter{}, []IssueID{live.ID, parent}},
		"archived":                {IssueFilter{Archived: Some(true)}, []IssueID{gone.ID}},
		"not archived":            {IssueFilter{Archived: Some(false)}, []IssueID{live.ID, parent}},
		"done":                    {IssueFilter{Status: Some(StatusDone)}, []IssueID{live.ID}},
		"done and archived":       {IssueFilter{Status: Some(StatusDone), Archived: Some(true)}, []IssueID{gone.ID}},
		"completed":               {IssueFilter{View: Some("completed")}, []IssueID{live.ID}},
		"open and archived":       {IssueFilter{View: Some("active"), Archived: Some(true)}, nil},
		"search":                  {IssueFilter{Search: Some("coach")}, []IssueID{live.ID, parent}},
		"search archived":         {IssueFilter{Search: Some("coach"), Archived: Some(true)}, []IssueID{gone.ID}},
		"children":                {IssueFilter{ParentID: Some(string(parent))}, []IssueID{live.ID}},
		"externalRef":             {IssueFilter{ExternalRef: Some("ref")}, []IssueID{gone.ID}},
		"identifier":              {IssueFilter{Identifier: gone.identifierOpt()}, []IssueID{gone.ID}},
		"identifier, if archived": {IssueFilter{Identifier: gone.identifierOpt(), Archived: Some(true)}, []IssueID{gone.ID}},
		"identifier, if not":      {IssueFilter{Identifier: gone.identifierOpt(), Archived: Some(false)}, nil},
		"not ready":               {IssueFilter{Ready: Some(false)}, []IssueID{live.ID}},
	} {
		with, without := w.both(&w.ann, ListIssuesIn{Limit: 1, IssueFilter: c.f})
		var want []string
		for _, id := range c.want {
			want = append(want, string(id)+" "+string(parentOf(w.get(id))))
		}
		if !slices.Equal(with, want) || !slices.Equal(without, want) {
			t.Errorf("%s: %v with sets, %v without, want %v", name, with, without, want)
		}
	}
	for archived, want := range map[Opt[bool]]IssueID{{}: live.ID, Some(true): gone.ID} {
		reply, err := w.ask(&w.ann, ListIssueChildren, &ListIssueChildrenIn{ID: string(parent), Archived: archived})
		if err != nil {
			t.Fatal(err)
		}
		if got := decode[IssuePage](t, reply.Body).Issues; len(got) != 1 || got[0].ID != want {
			t.Errorf("children, archived %+v: %v", archived, titles(got))
		}
	}
	reply, err := w.ask(&w.ann, SimilarIssues, &SimilarIssuesIn{ID: string(parent)})
	if err != nil {
		t.Fatal(err)
	}
	if got := decode[SimilarList](t, reply.Body).Similar; len(got) != 1 || got[0].Issue.ID != live.ID {
		t.Errorf("similar issues %+v", got)
	}
	// The deletion of a parent still changes an archived issue.
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(parent)})
	if left := w.get(gone.ID); left.ParentID != nil || left.ArchivedAt == nil {
		t.Errorf("without its parent it is %+v", left)
	}
	w.verify()
}

func (t *Issue) identifierOpt() Opt[string] { return Some(*t.Identifier) }
