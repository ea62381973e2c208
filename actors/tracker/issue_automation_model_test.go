package tracker

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// ruleModel is a simple model of Decision 21: a forest in memory, and rules that are
// applied until nothing changes.
type ruleModel struct {
	*issueFixture
	all   map[IssueID]*ruled
	order []IssueID
	up    map[TeamID]bool
	down  map[TeamID]bool
}

type ruled struct {
	parent IssueID
	team   TeamID
	status IssueStatus
}

func (m *ruleModel) children(id IssueID) (all []*ruled) {
	for _, c := range m.all {
		if c.parent == id {
			all = append(all, c)
		}
	}
	return all
}

// follow applies the rules after a change: to the issues that it closed, and to those
// that may have lost their last open child.
func (m *ruleModel) follow(closed, bereft map[IssueID]bool) {
	for again := true; again; {
		for again {
			again = false
			for id, c := range m.all {
				p := m.all[c.parent]
				if p != nil && closed[c.parent] && m.down[p.team] && !c.status.Closed() {
					c.status, closed[id], again = p.status, true, true
				}
			}
		}
		for id, p := range m.all {
			children := m.children(id)
			open := slices.ContainsFunc(children, func(c *ruled) bool { return !c.status.Closed() })
			if bereft[id] && !p.status.Closed() && m.up[p.team] && len(children) > 0 && !open {
				p.status, closed[id], bereft[p.parent], again = StatusDone, true, true, true
			}
		}
	}
}

func (m *ruleModel) draw(t *rapid.T, label string) IssueID {
	return rapid.SampledFrom(m.order).Draw(t, label)
}

func (m *ruleModel) below(id, at IssueID) bool {
	for ; at != ""; at = m.all[at].parent {
		if at == id {
			return true
		}
	}
	return false
}

func (m *ruleModel) create(t *rapid.T) {
	c := &ruled{
		team:   rapid.SampledFrom([]TeamID{m.core, m.web, m.secret}).Draw(t, "team"),
		status: rapid.SampledFrom(issueStatuses[:]).Draw(t, "status"),
	}
	if len(m.order) > 0 && rapid.IntRange(0, 4).Draw(t, "has a parent") > 0 {
		c.parent = m.draw(t, "parent")
	}
	id := m.under(c.parent, c.team, c.status)
	m.all[id], m.order = c, append(m.order, id)
	m.follow(map[IssueID]bool{}, map[IssueID]bool{c.parent: c.status.Closed()})
}

// change patches some issues at once.
func (m *ruleModel) change(t *rapid.T) {
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom(m.order), 1, min(4, len(m.order)), rapid.ID).Draw(t, "ids")
	var p IssuePatch
	p.Status = drawOpt(t, "status", rapid.SampledFrom(issueStatuses[:]), false)
	p.TeamID = drawOpt(t, "team", rapid.SampledFrom([]TeamID{m.core, m.web, m.secret}), false)
	if rapid.IntRange(0, 2).Draw(t, "moves") == 0 {
		p.ParentID = Opt[IssueID]{Set: true, Null: true}
		if to := m.draw(t, "to"); rapid.Bool().Draw(t, "below") && !slices.ContainsFunc(ids, func(id IssueID) bool { return m.below(id, to) }) {
			p.ParentID = Some(to)
		}
	}
	before := len(m.events())
	m.run(&m.ann, BatchIssues, &BatchIssuesIn{IDs: texts(ids), Patch: p})
	closed, bereft := map[IssueID]bool{}, map[IssueID]bool{}
	for _, id := range ids {
		c, was := m.all[id], *m.all[id]
		c.status, c.team = p.Status.Or(c.status), p.TeamID.Or(c.team)
		if p.ParentID.Set {
			c.parent = p.ParentID.Or("")
		}
		isClosed := c.status.Closed()
		closed[id] = isClosed && !was.status.Closed()
		if closed[id] || isClosed && c.parent != was.parent {
			bereft[c.parent] = true
		}
		if c.parent != was.parent && !was.status.Closed() {
			bereft[was.parent] = true
		}
	}
	m.follow(closed, bereft)
	if p.ParentID.Set {
		return
	}
	// Each issue changes once, except that a moved one may be closed afterwards.
	m.runDue()
	once := map[IssueID]bool{}
	for _, e := range m.events()[before:] {
		if once[e.Data.ID] {
			t.Errorf("issue %s changed twice", e.Data.ID)
		}
		once[e.Data.ID] = true
	}
}

func (m *ruleModel) remove(t *rapid.T) {
	id := m.draw(t, "id")
	m.issueFixture.remove(id)
	c := m.all[id]
	delete(m.all, id)
	m.order = slices.DeleteFunc(m.order, func(other IssueID) bool { return other == id })
	for _, child := range m.children(id) {
		child.parent = ""
	}
	m.follow(map[IssueID]bool{}, map[IssueID]bool{c.parent: !c.status.Closed()})
}

func TestAutomation_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &ruleModel{issueFixture: newIssueFixture(t), all: map[IssueID]*ruled{}, up: map[TeamID]bool{}, down: map[TeamID]bool{}}
		// The result is the same in one batch and in many.
		m.buffer.closeLimit = rapid.SampledFrom([]int{1, 2, 5, maxAutoClosed}).Draw(t, "share")
		for _, team := range []TeamID{m.core, m.web, m.secret} {
			m.up[team], m.down[team] = rapid.Bool().Draw(t, "up"), rapid.Bool().Draw(t, "down")
			m.automate(team, m.up[team], m.down[team])
		}
		for range 8 {
			m.create(t)
			m.runDue()
		}
		t.Repeat(map[string]func(*rapid.T){
			"create": m.create,
			"change": m.change,
			"remove": func(t *rapid.T) {
				if len(m.order) > 4 {
					m.remove(t)
				}
			},
			"": func(t *rapid.T) {
				m.runDue()
				for _, id := range m.order {
					got, want := m.get(id), m.all[id]
					if got.Status != want.status {
						t.Fatalf("issue %s is %s, want %s", *got.Identifier, got.Status, want.status)
					}
				}
			},
		})
		m.verify()
	})
}
