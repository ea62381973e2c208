package tracker

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchyard/storage"
)

// A parent that may not be seen is none, wherever its child is shown.
func TestRestrictedParent_DoesNotShowInItsChildren(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	parent := w.create(CreateIssueIn{})
	tricky := `"parentId":"` + string(parent.ID) + `"`
	child := w.create(CreateIssueIn{Title: tricky, IssueFields: IssueFields{ParentID: Some(parent.ID), Description: Some(tricky), ExternalRef: Some("ref")}})
	mel, gus := w.somebody(ActorUser, "mel"), w.somebody(ActorUser, "gus")
	w.grant(parent.ID, "gus", GranteeUser)
	shown := func(t Issue, etag string, whole bool) bool {
		is := t.ParentID != nil && *t.ParentID == parent.ID
		return is == whole && is != (t.ParentID == nil) && t.Title == tricky && *t.Description == tricky && strings.Contains(etag, "p") != whole
	}
	for who, whole := range map[*Caller]bool{mel: false, gus: true, &w.ann: true} {
		reply, err := w.ask(who, IssueByID, &IssueByIDIn{ID: string(child.ID)})
		if err != nil || !shown(decode[Issue](t, reply.Body), reply.ETag, whole) {
			t.Errorf("%s gets %s %s, %v", who.ID, reply.ETag, reply.Body, err)
		}
		again, err := w.ask(who, IssueByID, &IssueByIDIn{ID: string(child.ID), IfNoneMatch: reply.ETag})
		if err != nil || again.Outcome != NotModified {
			t.Errorf("%s gets it again: %+v, %v", who.ID, again, err)
		}
		for _, f := range []struct {
			filter IssueFilter
			whole  bool
		}{
			{IssueFilter{HasParent: Some(true)}, true}, {IssueFilter{HasParent: Some(false), Identifier: Some(*child.Identifier)}, false},
			{IssueFilter{ParentID: Some(string(parent.ID))}, true}, {IssueFilter{ExternalRef: Some("ref")}, whole},
		} {
			list := w.list(who, ListIssuesIn{IssueFilter: f.filter}).Issues
			if want := f.whole == whole; (len(list) == 1) != want || want && !shown(list[0], map[bool]string{false: "p"}[whole], whole) {
				t.Errorf("%s with %+v lists %+v", who.ID, f.filter, list)
			}
		}
		same := w.run(who, CreateIssue, &CreateIssueIn{Title: "t", IssueFields: IssueFields{ExternalRef: Some("ref")}})
		patched := w.run(who, PatchIssue, patchIn(child.ID, reply.ETag, IssuePatch{IssueFields: IssueFields{Estimate: Some(int64(len(who.ID)))}}))
		for _, r := range []Reply{same, patched} {
			if !shown(decode[Issue](t, r.Body), r.ETag, whole) {
				t.Errorf("%s is answered %s %s", who.ID, r.ETag, r.Body)
			}
		}
		batch := decode[IssueList](t, w.run(who, BatchIssues, &BatchIssuesIn{IDs: []string{string(child.ID)}, Patch: IssuePatch{IssueFields: IssueFields{ParentID: Opt[IssueID]{Set: who == mel, Null: true}}}}).Body)
		if !shown(batch.Issues[0], map[bool]string{false: "p"}[whole], whole) {
			t.Errorf("%s's batch is answered %+v", who.ID, batch)
		}
	}
	if got := w.get(child.ID); got.ParentID == nil {
		t.Error("who does not see the parent took it away with null")
	}
	_, _, err := w.try(mel, PatchIssue, patchIn(child.ID, "", IssuePatch{IssueFields: IssueFields{ParentID: Some(parent.ID)}}))
	wantCode(t, err, CodeBadRequest, "parentId")
	other := w.create(CreateIssueIn{})
	w.run(mel, PatchIssue, patchIn(child.ID, "", IssuePatch{IssueFields: IssueFields{ParentID: Some(other.ID)}}))
	if got := w.get(child.ID); got.ParentID == nil || *got.ParentID != other.ID {
		t.Errorf("the parent is %v", got.ParentID)
	}
	w.verify()
}

func TestRestrictedChild_DoesNotShowInItsParent(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	parent := w.create(CreateIssueIn{})
	child := w.create(CreateIssueIn{IssueFields: IssueFields{ParentID: Some(parent.ID)}})
	mel, gus := w.somebody(ActorUser, "mel"), w.somebody(ActorUser, "gus")
	mel.Hidden, gus.Hidden = nil, nil // no team is hidden from them
	w.grant(child.ID, "gus", GranteeUser)
	for who, n := range map[*Caller]int{mel: 0, gus: 1, &w.ann: 1} {
		reply, err := w.ask(who, ListIssueChildren, &ListIssueChildrenIn{ID: string(parent.ID)})
		if err != nil || len(decode[IssuePage](t, reply.Body).Issues) != n {
			t.Errorf("%s: children %s, %v", who.ID, reply.Body, err)
		}
		for _, is := range []bool{true, false} {
			list := w.list(who, ListIssuesIn{IssueFilter: IssueFilter{IsParent: Some(is), Identifier: Some(*parent.Identifier)}})
			if got := len(list.Issues) == 1; got != (is == (n == 1)) {
				t.Errorf("%s: isParent=%t lists it: %t", who.ID, is, got)
			}
		}
	}
}

// Events and histories name a deleted parent to those who could see it at its deletion.
func TestDeletedParent_IsNamedToThoseWhoSawIt(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	outsider, sam := w.somebody(ActorUser, "mel"), w.somebody(ActorUser, "sam", w.secret)
	type family struct {
		parent, child IssueID
		seenBy        []*Caller
	}
	var families []family
	for _, f := range []struct {
		team   TeamID
		seenBy []*Caller
	}{{w.core, []*Caller{&w.ann, outsider, sam}}, {w.core, []*Caller{&w.ann}}, {w.secret, []*Caller{&w.ann, sam}}} {
		parent := w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(f.team)}}).ID
		families = append(families, family{parent, w.under(parent, w.core, StatusTodo), f.seenBy})
	}
	w.grant(families[1].parent, "mel", GranteeUser)
	for _, f := range families {
		w.remove(f.parent)
	}
	for i, f := range families {
		for _, who := range []*Caller{&w.ann, outsider, sam} {
			want := "null"
			if slices.Contains(f.seenBy, who) {
				want = `"` + string(f.parent) + `"`
			}
			reply, err := w.ask(who, IssueHistory, &IssueHistoryIn{ID: string(f.child)})
			if err != nil {
				t.Fatal(err)
			}
			var page HistoryPage // goccy's RawMessage would alias its input
			if err := json.Unmarshal(reply.Body, &page); err != nil {
				t.Fatal(err)
			}
			if got := described(page.History); len(got) != 1 || got[0] != "parentId "+want+" null" {
				t.Errorf("family %d: %s reads the history %q, want %s", i, who.ID, got, want)
			}
			var at []string
			for _, e := range w.page(who, ListEventsIn{Types: "issue.*"}).Events {
				if data := decode[Issue](t, e.Data); data.ID == f.child {
					at = append(at, fmt.Sprintf("%t %s", data.ParentID != nil, e.Changes["parentId"].From))
				}
			}
			if fmt.Sprint(at) != fmt.Sprintf("[%t  false %s]", want != "null", want) {
				t.Errorf("family %d: %s reads the events %q, want %s", i, who.ID, at, want)
			}
		}
	}
	w.verify()
}

// Restricted issues cost more to look at, so a page looks at fewer of them.
func TestIssuePage_BoundsLooksAtGrants(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	for i := range 5 {
		w.grant(w.create(CreateIssueIn{Title: fmt.Sprint(i)}).ID, "mel", GranteeUser)
	}
	mel := w.somebody(ActorUser, "mel")
	var cursor Opt[string]
	var got [][]string
	for more := true; more; {
		v := NewView(storage.NewView(w.db, 1, w.workspace), mel, w.now, nil)
		first, err := newPage(nil, pageSpec{name: "issues", limit: 5, cursor: cursor, keyLen: storage.ListedKeyLen})
		if err != nil {
			t.Fatal(err)
		}
		first.examine = 2 * (1 + grantsCost)
		page := issuePage{page: first, visibility: visibility{v: v}, keeps: func(_ []byte, rec storage.Record) (bool, error) { return v.canViewIssue(rec) }}
		reply, err := page.build(v, issueList{})
		if err != nil {
			t.Fatal(err)
		}
		answer := decode[IssuePage](t, reply.Body)
		got = append(got, titles(answer.Issues))
		cursor, more = Some(answer.NextCursor), answer.NextCursor != ""
	}
	if fmt.Sprint(got) != "[[4 3] [2 1] [0]]" {
		t.Errorf("pages %v", got)
	}
}
