package tracker

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// issueModel is the expected state of a fixture's issues, without indexes.
type issueModel struct {
	*issueFixture
	all     []*modelIssue // oldest first
	counted map[TeamID]uint64
}

// modelIssue is an issue; empty texts stand for null.
type modelIssue struct {
	id                            IssueID
	team                          TeamID
	status                        IssueStatus
	priority                      IssuePriority
	parent                        IssueID
	draft                         bool
	snoozed                       time.Time
	assignee, project, cycle, ref string
	resolution, identifier        string
	labels                        []string
	former                        []string
}

func (m *issueModel) find(id IssueID) *modelIssue {
	for _, t := range m.all {
		if t.id == id {
			return t
		}
	}
	return nil
}

func (m *issueModel) canView(who *Caller, t *modelIssue) bool {
	return who == &m.ann || t.team != m.secret
}

// parent returns an issue's parent as a caller sees it: a hidden one is "".
func (m *issueModel) parent(who *Caller, t *modelIssue) IssueID {
	if p := m.find(t.parent); p == nil || !m.canView(who, p) {
		return ""
	}
	return t.parent
}

func (m *issueModel) withRef(ref string) *modelIssue {
	for _, t := range m.all {
		if t.ref == ref {
			return t
		}
	}
	return nil
}

// below reports whether t is among the ancestors of its future parent.
func (m *issueModel) below(t *modelIssue, parent IssueID) bool {
	for at := m.find(parent); at != nil; at = m.find(at.parent) {
		if at == t {
			return true
		}
	}
	return false
}

func (m *issueModel) number(t *modelIssue) {
	m.counted[t.team]++
	key := map[TeamID]string{m.core: "CORE", m.web: "WEB", m.secret: "SEC"}[t.team]
	t.identifier = fmt.Sprintf("%s-%d", key, m.counted[t.team])
}

// apply has the expected effect of a valid write on an issue.
func (t *modelIssue) apply(f *IssueFields) {
	closed := func(s IssueStatus) bool { return s == "done" || s == "canceled" }
	text := func(field *string, o Opt[string]) {
		if o.Set {
			*field = o.Or("")
		}
	}
	if f.Status.Set {
		if closed(t.status) && !closed(f.Status.Value) {
			t.resolution = ""
		}
		t.status = f.Status.Value
	}
	if f.Priority.Set {
		t.priority = f.Priority.Value
	}
	if f.IsDraft.Set {
		t.draft = f.IsDraft.Value
	}
	if f.ParentID.Set {
		t.parent = f.ParentID.Or("")
	}
	if f.SnoozedUntil.Set {
		t.snoozed, _ = time.Parse(time.RFC3339, f.SnoozedUntil.Or("0001-01-01T00:00:00Z"))
	}
	if f.LabelIDs.Set {
		t.labels = f.LabelIDs.Or(nil)
	}
	text(&t.resolution, f.Resolution)
	text(&t.assignee, f.AssigneeID)
	text(&t.project, f.ProjectID)
	text(&t.cycle, f.CycleID)
	text(&t.ref, f.ExternalRef)
}

// matches is a simple model of Decision 17.
func (m *issueModel) matches(who *Caller, f *IssueFilter, t *modelIssue) bool {
	is := func(o Opt[string], s string) bool { return !o.Set || s != "" && o.Value == s }
	has := func(o Opt[bool], b bool) bool { return !o.Set || o.Value == b }
	isParent := slices.ContainsFunc(m.all, func(c *modelIssue) bool { return c.parent == t.id && m.canView(who, c) })
	named := slices.ContainsFunc(append(t.former, t.identifier), func(s string) bool { return strings.EqualFold(s, f.Identifier.Value) })
	view := map[string]bool{
		"": true, "all": true, "active": t.status == "todo" || t.status == "in_progress", "backlog": t.status == "backlog", "triage": t.status == "triage",
		"completed": t.status == "done" || t.status == "canceled", "mine": t.assignee == who.ID, "unassigned": t.assignee == "",
	}
	return m.canView(who, t) && view[f.View.Value] &&
		is(f.TeamID, string(t.team)) && is(f.ParentID, string(m.parent(who, t))) && is(f.AssigneeID, t.assignee) && is(f.ProjectID, t.project) && is(f.CycleID, t.cycle) && is(f.ExternalRef, t.ref) &&
		(!f.Status.Set || f.Status.Value == t.status) && (!f.Priority.Set || f.Priority.Value == t.priority) &&
		has(f.HasParent, m.parent(who, t) != "") && has(f.IsParent, isParent) && has(f.IsDraft, t.draft) &&
		(!f.LabelID.Set || slices.Contains(t.labels, f.LabelID.Value)) && (!f.Identifier.Set || named) &&
		(f.IncludeSnoozed.Value || !t.snoozed.After(m.now))
}

func (m *issueModel) expect(who *Caller, f *IssueFilter) (ids []IssueID) {
	for _, t := range slices.Backward(m.all) {
		if m.matches(who, f, t) {
			ids = append(ids, t.id)
		}
	}
	return ids
}

func drawOpt[T any](t *rapid.T, label string, value *rapid.Generator[T], nullable bool) (o Opt[T]) {
	switch n := rapid.IntRange(0, 5).Draw(t, label+"?"); {
	case n < 3:
		return o
	case n == 3 && nullable:
		return Opt[T]{Set: true, Null: true}
	}
	return Some(value.Draw(t, label))
}

func (m *issueModel) drawID(t *rapid.T, label string) string {
	if len(m.all) == 0 || rapid.IntRange(0, 15).Draw(t, label+" known") == 0 {
		return "01890000-0000-7000-8000-000000000000"
	}
	return string(m.all[rapid.IntRange(0, len(m.all)-1).Draw(t, label)].id)
}

func (m *issueModel) drawFields(t *rapid.T) IssueFields {
	f := IssueFields{
		ExternalRef: drawOpt(t, "ref", rapid.SampledFrom([]string{"r1", "r2", "r3"}), true),
		TeamID:      drawOpt(t, "team", rapid.SampledFrom([]TeamID{m.core, m.web, m.secret}), false),
		Status:      drawOpt(t, "status", rapid.SampledFrom(issueStatuses[:]), false),
		Priority:    drawOpt(t, "priority", rapid.SampledFrom([]IssuePriority{PriorityLow, PriorityMedium, PriorityHigh, PriorityUrgent}), false),
		Resolution:  drawOpt(t, "resolution", rapid.SampledFrom([]string{"obsolete", "resolved"}), true),
		IsDraft:     drawOpt(t, "draft", rapid.Bool(), false),
		AssigneeID:  drawOpt(t, "assignee", rapid.SampledFrom([]string{"ann", "gus", "bot"}), true),
		ProjectID:   drawOpt(t, "project", rapid.SampledFrom([]string{"p1", "p2"}), true),
		CycleID:     drawOpt(t, "cycle", rapid.SampledFrom([]string{"c1", "c2"}), true),
		LabelIDs:    drawOpt(t, "labels", rapid.SliceOfN(rapid.SampledFrom([]string{"l1", "l2"}), 0, 3), true),
		SnoozedUntil: drawOpt(t, "snooze", rapid.Custom(func(t *rapid.T) string {
			return string(At(m.now.Add(time.Duration(rapid.IntRange(-50, 50).Draw(t, "for")) * time.Millisecond)))
		}), true),
	}
	if rapid.IntRange(0, 2).Draw(t, "parent?") == 0 {
		f.ParentID = Some(IssueID(m.drawID(t, "parent")))
	} else {
		f.ParentID = drawOpt(t, "no parent", rapid.Just(IssueID("none")), true)
	}
	return f
}

func (m *issueModel) drawFilter(t *rapid.T) IssueFilter {
	filter := IssueFilter{}
	text := func(o *Opt[string], label string, values ...string) {
		*o = Some(rapid.SampledFrom(values).Draw(t, label))
	}
	flag := func(o *Opt[bool], label string) { *o = Some(rapid.Bool().Draw(t, label)) }
	for range rapid.IntRange(0, 3).Draw(t, "filters") {
		switch rapid.IntRange(0, 14).Draw(t, "filter") {
		case 0:
			text(&filter.TeamID, "team", string(m.core), string(m.web), string(m.secret), "x", "")
		case 1:
			filter.Status = Some(rapid.SampledFrom(issueStatuses[:]).Draw(t, "status"))
		case 2:
			filter.Priority = Some(rapid.SampledFrom([]IssuePriority{PriorityLow, PriorityMedium}).Draw(t, "priority"))
		case 3:
			filter.ParentID = Some(m.drawID(t, "parent"))
		case 4:
			flag(&filter.HasParent, "hasParent")
		case 5:
			flag(&filter.IsParent, "isParent")
		case 6:
			flag(&filter.IsDraft, "isDraft")
		case 7:
			flag(&filter.IncludeSnoozed, "includeSnoozed")
		case 8:
			text(&filter.AssigneeID, "assignee", "ann", "gus", "bot", "", "nobody", "\x00")
		case 9:
			text(&filter.ProjectID, "project", "p1", "p2", "p")
		case 10:
			text(&filter.CycleID, "cycle", "c1", "c2", "")
		case 11:
			text(&filter.LabelID, "label", "l1", "l2", "l")
		case 12:
			text(&filter.Identifier, "identifier", "core-1", "WEB-2", "Sec-1", "x")
		case 13:
			text(&filter.ExternalRef, "ref", "r1", "r2", "r")
		case 14:
			text(&filter.View, "view", "all", "active", "backlog", "triage", "completed", "mine", "unassigned")
		}
	}
	return filter
}

func (m *issueModel) drawCaller(t *rapid.T) *Caller {
	return rapid.SampledFrom([]*Caller{&m.ann, &m.gus}).Draw(t, "caller")
}

// create creates an issue in the fixture and the model, or checks that both refuse.
func (m *issueModel) create(t *rapid.T) {
	who, f := m.drawCaller(t), m.drawFields(t)
	reply, _, err := m.try(who, CreateIssue, &CreateIssueIn{Title: "t", IssueFields: f})
	next := &modelIssue{team: f.TeamID.Or(m.core), status: "backlog", priority: "medium"}
	if ref := f.ExternalRef.Or(""); ref != "" {
		if old := m.withRef(ref); old != nil && m.canView(who, old) {
			if err != nil || reply.Outcome != Done || decode[Issue](t, reply.Body).ID != old.id {
				t.Fatalf("externalRef %s: %+v, %v", ref, reply, err)
			}
			return
		} else if old != nil {
			m.refused(t, err, CodeConflict)
			return
		}
	}
	if !m.canView(who, next) || f.ParentID.Or("") != "" && (m.find(f.ParentID.Value) == nil || !m.canView(who, m.find(f.ParentID.Value))) {
		m.refused(t, err, CodeBadRequest)
		return
	}
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	next.id = decode[Issue](t, reply.Body).ID
	next.apply(&f)
	m.number(next)
	m.all = append(m.all, next)
}

func (m *issueModel) refused(t *rapid.T, err error, code Code) {
	var e *Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
}

// patch changes an issue of the fixture and the model, or checks that both refuse.
func (m *issueModel) patch(t *rapid.T) {
	who, id, f := m.drawCaller(t), IssueID(m.drawID(t, "issue")), m.drawFields(t)
	_, _, err := m.try(who, PatchIssue, patchIn(id, "", IssuePatch{IssueFields: f}))
	old := m.find(id)
	if old == nil || !m.canView(who, old) {
		m.refused(t, err, CodeNotFound)
		return
	}
	if taken := m.withRef(f.ExternalRef.Or("")); f.ExternalRef.Or("") != "" && taken != nil && taken != old {
		m.refused(t, err, CodeConflict)
		return
	}
	parent := f.ParentID.Or("")
	if parent == "" && m.parent(who, old) == "" {
		f.ParentID = Opt[IssueID]{} // null does not clear a hidden parent
	}
	if parent != "" && parent != m.parent(who, old) {
		if p := m.find(parent); p == nil || !m.canView(who, p) || m.below(old, parent) {
			m.refused(t, err, CodeBadRequest)
			return
		}
	}
	if team := f.TeamID.Or(m.core); team == m.secret && who != &m.ann {
		m.refused(t, err, CodeBadRequest)
		return
	}
	if err != nil {
		t.Fatalf("patch: %v", err)
	}
	old.apply(&f)
	if f.TeamID.Set && f.TeamID.Value != old.team {
		old.former = append(old.former, old.identifier)
		old.team = f.TeamID.Value
		m.number(old)
	}
}

func (m *issueModel) remove(t *rapid.T) {
	who, id := m.drawCaller(t), IssueID(m.drawID(t, "issue"))
	_, _, err := m.try(who, DeleteIssue, &DeleteIssueIn{ID: string(id)})
	if old := m.find(id); old == nil || !m.canView(who, old) {
		m.refused(t, err, CodeNotFound)
		return
	}
	if err != nil {
		t.Fatalf("delete: %v", err)
	}
	m.all = slices.DeleteFunc(m.all, func(c *modelIssue) bool { return c.id == id })
	for _, c := range m.all {
		if c.parent == id {
			c.parent = ""
		}
	}
}

// walk reads a list to its end, and calls between after each page.
func (m *issueModel) walk(t *rapid.T, who *Caller, f IssueFilter, between func()) (ids []IssueID) {
	in := ListIssuesIn{Limit: rapid.IntRange(1, 7).Draw(t, "limit"), IssueFilter: f}
	for {
		page := m.list(who, in)
		if len(page.Issues) > in.Limit || page.NextCursor != "" && len(page.Issues) < in.Limit {
			t.Fatalf("a page of %d with limit %d, cursor %q", len(page.Issues), in.Limit, page.NextCursor)
		}
		for _, issue := range page.Issues {
			ids = append(ids, issue.ID)
		}
		if page.NextCursor == "" {
			return ids
		}
		if len(ids) > 1000 {
			t.Fatalf("a walk without end: %v", ids)
		}
		in.Cursor = Some(page.NextCursor)
		between()
	}
}

func TestIssues_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &issueModel{issueFixture: newIssueFixture(t), counted: map[TeamID]uint64{}}
		change := func(t *rapid.T) {
			switch rapid.IntRange(0, 9).Draw(t, "change") {
			case 0:
				m.remove(t)
			case 1, 2, 3:
				m.patch(t)
			default:
				m.create(t)
			}
		}
		for range 10 {
			m.create(t)
		}
		t.Repeat(map[string]func(*rapid.T){
			"change": change,
			"tick": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "ms")) * time.Millisecond)
			},
			"list": func(t *rapid.T) {
				who, f := m.drawCaller(t), m.drawFilter(t)
				want := m.expect(who, &f)
				if got := m.walk(t, who, f, func() {}); !slices.Equal(got, want) {
					t.Fatalf("%s lists %v, want %v", who.ID, got, want)
				}
			},
			"list while it changes": func(t *rapid.T) {
				who, f := m.drawCaller(t), m.drawFilter(t)
				always := m.expect(who, &f) // issues that are on the list during the whole walk
				got := m.walk(t, who, f, func() {
					change(t)
					now := m.expect(who, &f)
					always = slices.DeleteFunc(always, func(id IssueID) bool { return !slices.Contains(now, id) })
				})
				if !slices.IsSortedFunc(got, func(a, b IssueID) int { return strings.Compare(string(b), string(a)) }) || len(slices.Compact(slices.Clone(got))) != len(got) {
					t.Fatalf("%v is out of order or repeats an issue", got)
				}
				for _, id := range always {
					if !slices.Contains(got, id) {
						t.Fatalf("the walk %v skipped %s", got, id)
					}
				}
			},
			"look": func(t *rapid.T) {
				for _, want := range m.all {
					got := m.get(want.id)
					if got.Status != want.status || got.TeamID != want.team || *got.Identifier != want.identifier || Some(got.Resolution).Value != nil && *got.Resolution != want.resolution || got.Resolution == nil && want.resolution != "" {
						t.Fatalf("issue %+v, want %+v", got, want)
					}
				}
			},
		})
		m.verify()
	})
}
