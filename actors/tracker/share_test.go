package tracker

import (
	"testing"
	"time"

	"switchyard/storage"
)

func (w *issueFixture) share(who *Caller, id IssueID, ends string) IssueShare {
	w.Helper()
	in := &CreateShareIn{ID: string(id)}
	if ends != "" {
		in.ExpiresAt = Some(ends)
	}
	return decode[IssueShare](w, w.run(who, CreateShare, in).Body)
}

// shared reads a share's issue without a credential.
func (w *issueFixture) shared(token string) (SharedIssueView, bool) {
	w.Helper()
	reply, err := w.ask(&Caller{}, SharedIssue, &SharedIssueIn{token})
	if err != nil {
		wantCode(w, err, CodeNotFound)
		return SharedIssueView{}, false
	}
	return decode[SharedIssueView](w, reply.Body), true
}

func (w *issueFixture) activeShare(id IssueID) *IssueShare {
	w.Helper()
	reply, err := w.ask(&w.ann, ShareByIssue, &IssueIn{string(id)})
	if err != nil {
		w.Fatal(err)
	}
	return decode[*IssueShare](w, reply.Body)
}

func TestShare_OneAtATime(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue, other := w.create(CreateIssueIn{IssueFields: IssueFields{Description: Some("d")}}), w.create(CreateIssueIn{})
	if got := w.activeShare(issue.ID); got != nil {
		t.Errorf("a share before there is one: %+v", got)
	}
	first := w.share(&w.ann, issue.ID, "")
	if len(first.Token) != shareTokenLen || first.IssueID != issue.ID || first.OrganizationID != issue.OrganizationID || first.CreatedByID != "ann" || first.ExpiresAt != nil || first.CreatedAt != At(w.now) {
		t.Errorf("share %+v", first)
	}
	view, ok := w.shared(first.Token)
	if want := (SharedIssueFields{"An issue", issue.Identifier, StatusBacklog, PriorityMedium, issue.Description, issue.CreatedAt}); !ok || *view.Issue.Identifier != *want.Identifier || *view.Issue.Description != "d" || view.Issue.Title != want.Title || view.Issue.Status != want.Status || view.Issue.CreatedAt != want.CreatedAt {
		t.Errorf("shared %+v", view)
	}
	second := w.share(&w.ann, issue.ID, "")
	if got := w.activeShare(issue.ID); got == nil || *got != second || second.Token == first.Token {
		t.Errorf("active is %+v, want %+v", got, second)
	}
	if _, ok := w.shared(first.Token); ok {
		t.Error("a revoked share is readable")
	}
	elsewhere := w.share(&w.ann, other.ID, "")
	for _, token := range []string{first.Token, elsewhere.Token, "", "x", second.Token + "A"} {
		_, _, err := w.try(&w.ann, RevokeShare, &ShareIn{string(issue.ID), token})
		wantCode(t, err, CodeNotFound)
		if _, ok := w.shared(token); ok && token != elsewhere.Token {
			t.Errorf("token %q is readable", token)
		}
	}
	w.run(&w.ann, RevokeShare, &ShareIn{string(issue.ID), second.Token})
	if _, ok := w.shared(second.Token); ok || w.activeShare(issue.ID) != nil {
		t.Error("a revoked share is there")
	}
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(other.ID)})
	if _, ok := w.shared(elsewhere.Token); ok {
		t.Error("a deleted issue is shared")
	}
	w.verify()
	v := storage.NewView(w.db, 1, w.workspace)
	for _, table := range []storage.TableID{shareTable, shareByToken} {
		if left, err := v.Has(table, nil); err != nil || left {
			t.Errorf("rows of table %d are left: %v", table, err)
		}
	}
}

func TestShare_Expires(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{})
	for _, past := range []string{"2026-11-20T21:30:00Z", "1999-01-01T00:00:00+05:00", string(At(w.now.Add(time.Millisecond)))} { // the clock moves on by one with each command
		_, _, err := w.try(&w.ann, CreateShare, &CreateShareIn{ID: string(issue.ID), ExpiresAt: Some(past)})
		wantCode(t, err, CodeBadRequest, "expiresAt")
	}
	share := w.share(&w.ann, issue.ID, "2026-11-20T22:30:01+01:00")
	if *share.ExpiresAt != "2026-11-20T21:30:01.000Z" {
		t.Errorf("expires at %s", *share.ExpiresAt)
	}
	w.now = share.ExpiresAt.Time().Add(-time.Millisecond)
	if _, ok := w.shared(share.Token); !ok || w.activeShare(issue.ID) == nil {
		t.Error("ended before its time")
	}
	w.now = share.ExpiresAt.Time()
	if _, ok := w.shared(share.Token); ok || w.activeShare(issue.ID) != nil {
		t.Error("outlives its time")
	}
	_, _, err := w.try(&w.ann, RevokeShare, &ShareIn{string(issue.ID), share.Token})
	wantCode(t, err, CodeNotFound)
	next := w.share(&w.ann, issue.ID, "")
	if _, ok := w.shared(next.Token); !ok {
		t.Error("the next one is not readable")
	}
	w.verify()
}

// The token alone gives the right to read.
func TestShare_OfWhatIsNotSeenOtherwise(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	draft := w.create(CreateIssueIn{IssueFields: IssueFields{IsDraft: Some(true), TeamID: Some(w.secret)}})
	w.grant(draft.ID, "mel", GranteeUser)
	share := w.share(&w.ann, draft.ID, "")
	if _, ok := w.shared(share.Token); !ok {
		t.Error("a restricted draft in a private team can't be shared")
	}
	_, err := w.ask(&w.gus, ShareByIssue, &IssueIn{string(draft.ID)})
	wantCode(t, err, CodeNotFound)
}

func TestSharedIssue_WorkspaceUnderDeletion(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	share := w.share(&w.ann, w.create(CreateIssueIn{}).ID, "")
	w.run(&w.ann, NewCommand[None, None]("go", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		ws, err := workspaces.Get(tx, nil)
		if err != nil {
			return Reply{}, err
		}
		return Reply{}, workspaces.Delete(tx, ws)
	}, RunsWithoutWorkspace), &None{})
	if _, ok := w.shared(share.Token); ok {
		t.Error("a share outlives its workspace")
	}
}
