package tracker

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"switchyard/storage"
)

// accessModel is a simple model of who sees which issue.
type accessModel struct {
	*issueFixture
	all     []*seenIssue // oldest first
	callers []*Caller
	actors  []string
}

type seenIssue struct {
	id     IssueID
	team   TeamID
	parent *seenIssue
	grants map[string]GranteeType
}

// visible is Decision 26: an admin sees everything; other callers see the issues of the
// teams that they see, if these are not restricted or are granted to them or a team of
// theirs.
func visible(who *Caller, t *seenIssue) bool {
	if who.Level == Admin {
		return true
	}
	if _, hidden := who.Hidden[rawTeam(t.team)]; hidden {
		return false
	}
	for actor, kind := range t.grants {
		if kind == GranteeTeam {
			for team := range who.Teams {
				if team.String() == actor {
					return true
				}
			}
		} else if string(kind) == string(who.Type) && actor == who.ID {
			return true
		}
	}
	return len(t.grants) == 0
}

func (m *accessModel) parentOf(who *Caller, t *seenIssue) *seenIssue {
	if t.parent == nil || !visible(who, t.parent) {
		return nil
	}
	return t.parent
}

func (m *accessModel) expect(who *Caller, keep func(*seenIssue) bool) (ids []IssueID) {
	for _, t := range slices.Backward(m.all) {
		if visible(who, t) && keep(t) {
			ids = append(ids, t.id)
		}
	}
	return ids
}

func (m *accessModel) issue(t *rapid.T) *seenIssue {
	return rapid.SampledFrom(m.all).Draw(t, "issue")
}

func (m *accessModel) create(t *rapid.T) {
	next := &seenIssue{team: rapid.SampledFrom([]TeamID{m.core, m.web, m.secret}).Draw(t, "team"), grants: map[string]GranteeType{}}
	in := CreateIssueIn{IssueFields: IssueFields{TeamID: Some(next.team)}}
	if len(m.all) > 0 && rapid.Bool().Draw(t, "parent?") {
		next.parent = m.issue(t)
		in.ParentID = Some(next.parent.id)
	}
	next.id = m.issueFixture.create(in).ID
	m.all = append(m.all, next)
}

func (m *accessModel) change(t *rapid.T) {
	if len(m.all) == 0 {
		m.create(t)
		return
	}
	switch issue := m.issue(t); rapid.IntRange(0, 6).Draw(t, "change") {
	case 0:
		m.create(t)
	case 1, 2, 3:
		actor, kind := rapid.SampledFrom(m.actors).Draw(t, "actor"), rapid.SampledFrom([]GranteeType{GranteeUser, GranteeAgent, GranteeTeam}).Draw(t, "kind")
		issue.grants[actor] = kind
		m.grant(issue.id, actor, kind)
	case 4:
		for actor := range issue.grants {
			m.ungrant(issue.id, actor)
		}
		clear(issue.grants)
	case 5:
		issue.team = rapid.SampledFrom([]TeamID{m.core, m.web, m.secret}).Draw(t, "team")
		m.patch(issue.id, IssuePatch{IssueFields: IssueFields{TeamID: Some(issue.team)}})
	case 6:
		m.run(&m.ann, DeleteIssue, &DeleteIssueIn{ID: string(issue.id)})
		m.all = slices.DeleteFunc(m.all, func(c *seenIssue) bool { return c == issue })
		for _, c := range m.all {
			if c.parent == issue {
				c.parent = nil
			}
		}
	}
}

// look compares everything that one caller sees.
func (m *accessModel) look(t *rapid.T) {
	who := rapid.SampledFrom(m.callers).Draw(t, "caller")
	same := func(what string, page IssuePage, want []IssueID) {
		var got []IssueID
		for _, issue := range page.Issues {
			got = append(got, issue.ID)
			m.shows(t, who, issue)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s %s is shown %s %v, want %v", who.Type, who.ID, what, got, want)
		}
	}
	list := func(f IssueFilter) IssuePage { return m.list(who, ListIssuesIn{Limit: 100, IssueFilter: f}) }
	parents := func(c *seenIssue) *seenIssue { return m.parentOf(who, c) }
	same("all", list(IssueFilter{}), m.expect(who, func(*seenIssue) bool { return true }))
	for _, yes := range []bool{true, false} {
		same("hasParent", list(IssueFilter{HasParent: Some(yes)}), m.expect(who, func(c *seenIssue) bool { return (parents(c) != nil) == yes }))
		same("isParent", list(IssueFilter{IsParent: Some(yes)}), m.expect(who, func(p *seenIssue) bool {
			return slices.ContainsFunc(m.all, func(c *seenIssue) bool { return c.parent == p && visible(who, c) }) == yes
		}))
	}
	for _, issue := range m.all {
		below := m.expect(who, func(c *seenIssue) bool { return parents(c) == issue })
		same("parentId", list(IssueFilter{ParentID: Some(string(issue.id))}), below)
		reply, err := m.ask(who, IssueByID, &IssueByIDIn{ID: string(issue.id)})
		children, failed := m.ask(who, ListIssueChildren, &ListIssueChildrenIn{ID: string(issue.id)})
		if !visible(who, issue) {
			wantCode(t, err, CodeNotFound)
			wantCode(t, failed, CodeNotFound)
			continue
		}
		if err != nil || failed != nil {
			t.Fatalf("%s %s does not see %s: %v, %v", who.Type, who.ID, issue.id, err, failed)
		}
		m.shows(t, who, decode[Issue](t, reply.Body))
		same("children", decode[IssuePage](t, children.Body), below)
	}
}

// shows checks the parent in an issue that a caller sees.
func (m *accessModel) shows(t *rapid.T, who *Caller, issue Issue) {
	for _, c := range m.all {
		if c.id != issue.ID {
			continue
		}
		parent := m.parentOf(who, c)
		if (parent == nil) != (issue.ParentID == nil) || parent != nil && *issue.ParentID != parent.id {
			t.Fatalf("%s %s is shown parent %v of %s", who.Type, who.ID, issue.ParentID, c.id)
		}
	}
}

func TestAccess_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newIssueFixture(t)
		m := &accessModel{issueFixture: w, actors: []string{"ann", "x", "y", string(w.core), string(w.web), string(w.secret)}}
		capped := w.ann
		capped.Level = Write
		open := w.somebody(ActorUser, "x", w.secret) // no team is hidden from this caller
		open.Hidden, open.Teams = nil, nil
		m.callers = []*Caller{
			&w.ann, &capped, &w.gus, open, w.somebody(ActorUser, "x"), w.somebody(ActorAgent, "x"), w.somebody(ActorUser, "y", w.web),
			w.somebody(ActorAgent, "y", w.core, w.secret), w.somebody(ActorUser, string(w.web)), {Principal: Principal{Type: ActorUser, ID: "y"}, Level: Identified, Teams: map[storage.ID]struct{}{rawTeam(w.web): {}}},
		}
		for range 6 {
			m.create(t)
		}
		t.Repeat(map[string]func(*rapid.T){"change": m.change, "look": m.look})
		w.verify()
	})
}
