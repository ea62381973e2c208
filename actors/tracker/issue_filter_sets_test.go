package tracker

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchyard/storage"
)

// buildSets makes the sets of the issues that are committed.
func (w *issueFixture) buildSets() {
	w.Helper()
	w.sets = storage.NewFilterSets(&IssueSets, 1)
	snap := w.db.NewSnapshot()
	defer func() { _ = snap.Close() }()
	v := storage.NewView(snap, 1, w.workspace)
	if err := w.sets.Build(&v, func(int64) error { return nil }); err != nil {
		w.Fatal(err)
	}
}

// both asks a list with the sets and without.
func (w *issueFixture) both(who *Caller, in ListIssuesIn) (with, without []string) {
	w.Helper()
	for _, sets := range []*storage.FilterSets{w.sets, nil} {
		var ids []string
		page := in
		for pages := 0; ; pages++ {
			v := NewView(storage.NewView(w.db, 1, w.workspace), who, w.now, nil)
			v.Filter(sets)
			reply, err := ListIssues.RunQuery(v, &page)
			if err != nil {
				w.Fatal(err)
			}
			if sets != nil && v.Filtered() == nil && in.Identifier.Value+in.ExternalRef.Value == "" && len(reply.Body) > len(`{"issues":[]}`) {
				w.Fatalf("the list %+v did without sets", in)
			}
			got := decode[IssuePage](w, reply.Body)
			for _, t := range got.Issues {
				ids = append(ids, string(t.ID)+" "+string(parentOf(t)))
			}
			if got.NextCursor == "" {
				break
			}
			page.Cursor = Some(got.NextCursor)
		}
		if sets != nil {
			with = ids
		} else {
			without = ids
		}
	}
	return with, without
}

func TestIssueSets_FollowEveryChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newIssueFixture(t)
		m := setsModel{t: t, w: w}
		for range rapid.IntRange(0, 20).Draw(t, "before") {
			m.change()
		}
		w.buildSets()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "step") == 0 {
				m.ask()
			} else {
				m.change()
			}
		}
		m.ask()
		if w.sets.Broken() {
			t.Fatal("the sets broke")
		}
	})
}

// Queries may see the clock run back by a little. Issues that were woken meanwhile are
// left out of a page then, which still leads to the next.
func TestIssueSets_WhereTheClockRunsBack(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.create(CreateIssueIn{Title: "awake"})
	for range 5 {
		w.create(CreateIssueIn{Title: "asleep", IssueFields: IssueFields{SnoozedUntil: Some(string(At(w.now.Add(time.Second))))}})
	}
	w.buildSets()
	w.now = w.now.Add(time.Minute)
	if with, _ := w.both(&w.ann, ListIssuesIn{Limit: 1}); len(with) != 6 {
		t.Errorf("%d issues later", len(with))
	}
	w.now = w.now.Add(-time.Minute)
	if with, without := w.both(&w.ann, ListIssuesIn{Limit: 1}); len(with) != 1 || len(without) != 1 {
		t.Errorf("issues %v with sets, %v without", with, without)
	}
}

// A parent that an import brings after its child is a parent in lists, whether the sets exist when the
// child comes or are built between the two.
func TestIssueSets_ParentThatComesLater(t *testing.T) {
	t.Parallel()
	for _, between := range []bool{false, true} {
		const team = "01935000-0001-7000-8000-0000000000bb"
		w := newLineImport(t)
		org := w.home.Workspace.ID.raw()
		if err := w.line("team", fmt.Sprintf(importedTeam, team, "ENG")); err != nil {
			t.Fatal(err)
		}
		sets := storage.NewFilterSets(&IssueSets, 1)
		w.note = func(workspace storage.ID, l *WriteBuffer, repr []byte) {
			if workspace == org {
				from, to := l.Versions()
				v := w.view(org)
				sets.Note(&v, repr, from, to)
			}
		}
		build := func() error {
			snap := w.db.NewSnapshot()
			v := storage.NewView(snap, storage.ShardOf(org, testShards), org)
			return errors.Join(sets.Build(&v, func(int64) error { return nil }), snap.Close())
		}
		issue := func(n int, parent string) {
			line := strings.Replace(fmt.Sprintf(importedIssue, n, team, n, fmt.Sprint("ENG-", n)), `"title"`, parent+`"title"`, 1)
			if err := w.line("issue", line); err != nil {
				t.Fatal(err)
			}
		}
		if !between {
			if err := build(); err != nil {
				t.Fatal(err)
			}
		}
		issue(1, `"parentId":"01935001-0002-7000-8000-000000000000",`)
		if between {
			if err := build(); !errors.Is(err, storage.ErrFilterSets) {
				t.Errorf("built without a parent: %v", err)
			}
		}
		issue(2, "")
		req := &Request{Workspace: org, Credential: w.home.Token.Secret}
		if err := w.admit(req, ListIssues); err != nil {
			t.Fatal(err)
		}
		v := NewView(w.view(org), &req.Caller, w.now, nil)
		v.Filter(sets)
		reply, err := ListIssues.RunQuery(v, &ListIssuesIn{Limit: 10, IssueFilter: IssueFilter{IsParent: Some(true)}})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(decode[IssuePage](t, reply.Body).Issues); n != 1 {
			t.Errorf("built between %t: %d parents, want 1", between, n)
		}
	}
}

type setsModel struct {
	t   *rapid.T
	w   *issueFixture
	all []string
	// sessions are those that were dispatched.
	sessions []SessionID
}

var setsLabels = []string{"bug", "ux", "ops"}

func (m *setsModel) pick(name string) string {
	if len(m.all) == 0 {
		return "01890000-0000-7000-8000-000000000000"
	}
	return rapid.SampledFrom(m.all).Draw(m.t, name)
}

func (m *setsModel) fields() (f IssueFields) {
	t := m.t
	maybe := func(name string) bool { return rapid.Bool().Draw(t, name) }
	if maybe("hasStatus") {
		f.Status = Some(rapid.SampledFrom(issueStatuses[:]).Draw(t, "status"))
	}
	if maybe("hasPriority") {
		f.Priority = Some(rapid.SampledFrom(issuePriorities[:]).Draw(t, "priority"))
	}
	if maybe("hasAssignee") {
		f.AssigneeID = Some(rapid.SampledFrom([]string{"ann", "gus"}).Draw(t, "assignee"))
	}
	if maybe("hasLabels") {
		f.LabelIDs = Some(rapid.SliceOfN(rapid.SampledFrom(setsLabels), 0, 2).Draw(t, "labels"))
	}
	if maybe("hasProject") {
		f.ProjectID = Some(rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "project"))
	}
	if maybe("hasTeam") {
		f.TeamID = Some(rapid.SampledFrom([]TeamID{m.w.core, m.w.web, m.w.secret}).Draw(t, "team"))
	}
	if maybe("hasParentField") {
		f.ParentID = Some(IssueID(m.pick("parent")))
	}
	if maybe("draft") {
		f.IsDraft = Some(true)
	}
	if maybe("snooze") {
		f.SnoozedUntil = Some(string(At(m.w.now.Add(time.Duration(rapid.IntRange(-5, 20).Draw(t, "until")) * time.Millisecond))))
	}
	return f
}

// change carries out a command, which may be refused, alone or with others in a batch.
func (m *setsModel) change() {
	t, w := m.t, m.w
	var op *Op
	var in any
	switch rapid.IntRange(0, 14).Draw(t, "command") {
	case 0, 1, 2:
		op, in = CreateIssue, &CreateIssueIn{Title: rapid.SampledFrom([]string{"Coach door sticks", "Coach wheel", "Door bell"}).Draw(t, "title"), IssueFields: m.fields()}
	case 3, 4:
		op, in = PatchIssue, &PatchIssueIn{ID: m.pick("patched"), IssuePatch: IssuePatch{IssueFields: m.fields()}}
	case 5:
		op, in = DeleteIssue, &DeleteIssueIn{ID: m.pick("deleted")}
	case 6:
		kind := rapid.SampledFrom([]GranteeType{GranteeUser, GranteeAgent, GranteeTeam}).Draw(t, "kind")
		who := "gus"
		if kind == GranteeTeam {
			who = string(w.web)
		}
		op, in = PutAccessGrant, &PutAccessGrantIn{ID: m.pick("granted"), ActorID: who, ActorType: kind}
	case 7:
		op, in = RemoveAccessGrant, &AccessGrantIn{ID: m.pick("revoked"), ActorID: "gus"}
	case 8, 9:
		op, in = PutRelation, &RelationIn{ID: m.pick("blocker"), Type: RelationBlocks, OtherID: m.pick("blocked")}
	case 10:
		op, in = DispatchIssue, &DispatchIssueIn{ID: m.pick("dispatched")}
	case 11:
		op, in = DeleteRelation, &RelationIn{ID: m.pick("blocker"), Type: RelationBlocks, OtherID: m.pick("blocked")}
		if n := len(m.sessions); n > 0 && rapid.Bool().Draw(t, "cancel") {
			op, in = CancelSession, &CancelSessionIn{ID: m.sessions[n-1]}
			m.sessions = m.sessions[:n-1]
		}
	case 12:
		op, in = archiveOp, &UnarchiveIssueIn{ID: m.pick("archived")}
	case 13:
		op, in = UnarchiveIssue, &UnarchiveIssueIn{ID: m.pick("brought back")}
	case 14: // also children before their parents
		items := []BulkItem{{Title: "Door a", Ref: Some("a")}, {Title: "Wheel b", Ref: Some("b")}, {Title: "Coach c", Ref: Some("c")}}
		for n, of := range []int{1, 2, 0} {
			if rapid.Bool().Draw(t, "child") && n != 2 {
				items[n].ParentRef = items[of].Ref
			}
		}
		bulk := BulkIssuesIn{Items: items}
		bulk.Validate(&Faults{})
		op, in = CreateIssues, &bulk
	}
	w.now = w.now.Add(time.Millisecond)
	for {
		reply, err := w.buffer.Run(op, w.request(&w.ann), in, w.now)
		if err == nil && op == CreateIssue && reply.Outcome == Created {
			m.all = append(m.all, string(decode[CreatedIssue](w, reply.Body).ID))
		}
		if err == nil && op == DispatchIssue {
			m.sessions = append(m.sessions, decode[DispatchedSession](w, reply.Body).ID)
		}
		if reply.More || rapid.IntRange(0, 2).Draw(t, "commit") > 0 {
			w.commit()
		}
		if err != nil || !reply.More {
			break
		}
	}
}

// ask compares a list with the sets to the one without.
func (m *setsModel) ask() {
	t, w := m.t, m.w
	w.commit()
	fields := m.fields()
	in := ListIssuesIn{Limit: rapid.IntRange(1, 7).Draw(t, "limit"), IssueFilter: IssueFilter{
		Status: fields.Status, Priority: fields.Priority, AssigneeID: fields.AssigneeID, ProjectID: fields.ProjectID, IsDraft: fields.IsDraft,
	}}
	if fields.TeamID.Set {
		in.TeamID = Some(string(fields.TeamID.Value))
	}
	if fields.LabelIDs.Set && len(fields.LabelIDs.Value) > 0 {
		in.LabelID = Some(fields.LabelIDs.Value[0])
	}
	switch rapid.IntRange(0, 9).Draw(t, "more") {
	case 0:
		in.HasParent = Some(rapid.Bool().Draw(t, "has"))
	case 1:
		in.IsParent = Some(rapid.Bool().Draw(t, "is"))
	case 2:
		in.ParentID = Some(m.pick("under"))
	case 3:
		in.View = Some(rapid.SampledFrom([]string{"active", "backlog", "completed", "mine", "unassigned"}).Draw(t, "view"))
	case 4:
		in.IncludeSnoozed = Some(true)
	case 5:
		in.Search = Some(rapid.SampledFrom([]string{"coach", "door", "co do", "bell", "!"}).Draw(t, "words"))
	case 6:
		in.IsDraft = Some(false)
	}
	if rapid.Bool().Draw(t, "byReady") {
		in.Ready = Some(rapid.Bool().Draw(t, "ready"))
	}
	if rapid.IntRange(0, 2).Draw(t, "byBlocked") == 0 {
		in.Blocked = Some(rapid.Bool().Draw(t, "blocked"))
	}
	if rapid.IntRange(0, 2).Draw(t, "byArchived") == 0 {
		in.Archived = Some(rapid.Bool().Draw(t, "archived"))
	}
	gus := w.gus
	if rapid.Bool().Draw(t, "joined") {
		id, _ := storage.ParseID(w.web)
		gus.Teams = map[storage.ID]struct{}{id: {}}
	}
	open := gus
	open.Hidden = nil
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "later")) * time.Millisecond)
	for _, who := range []*Caller{&w.ann, &gus, &open} {
		with, without := w.both(who, in)
		if fmt.Sprint(with) != fmt.Sprint(without) {
			t.Fatalf("%s lists %+v\nwith sets    %v\nwithout sets %v", who.ID, in, with, without)
		}
	}
}

func parentOf(t Issue) IssueID {
	if t.ParentID == nil {
		return ""
	}
	return *t.ParentID
}
