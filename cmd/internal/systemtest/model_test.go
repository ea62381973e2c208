package systemtest

import (
	"fmt"
	"maps"
	"slices"
)

// A model is what a workspace should be, kept as plainly as can be: it says once
// more what the API does, without indexes, aggregates or caches. The service is held
// against it by TestModel.
type model struct {
	workspace   string
	issues      []*modelIssue // oldest first
	teams       map[string]*modelTeam
	defaultTeam string
	templates   map[string]object
	cycles      map[string]modelCycle
}

// An object is a JSON object: as sent in a request, or shown in an answer.
type object = map[string]any

// modelIssue is an issue as it is shown to who sees everything, and what is not
// shown of it. updatedAt is left out: a model has no clock.
type modelIssue struct {
	object
	labels []string
	former []string          // identifiers it had
	grants map[string]string // actor id to type
	past   []modelChange     // of fields, oldest first
}

// modelChange is what a write did to a field, and whose write it was.
type modelChange struct {
	field    string
	from, to any
	actor    string
	write    int // changes of one write have one number
}

// issueFields are the fields of an issue in their order.
var issueFields = []string{
	"externalRef", "teamId", "title", "description", "status", "priority", "resolution", "parentId", "subIssueSortOrder", "estimate", "isDraft", "snoozedUntil",
	"assigneeId", "projectId", "cycleId", "labelIds", "number", "identifier", "repo", "branch", "prUrl", "prState", "prCheckState",
}

// version counts an issue's writes, its creation the first.
func (t *modelIssue) version() int {
	if len(t.past) == 0 {
		return 1
	}
	return 1 + t.past[len(t.past)-1].write
}

// etag is that of the issue as a caller is shown it: another one where its parent is
// left out (Decision 26).
func (m *model) etag(c *modelCaller, t *modelIssue) string {
	if t.object["parentId"] != nil && m.parent(c, t) == "" {
		return fmt.Sprintf(`"%d.p"`, t.version())
	}
	return fmt.Sprintf(`"%d"`, t.version())
}

// remember notes how an issue differs from what it was (Decision 42).
func (t *modelIssue) remember(c *modelCaller, before object) {
	write := t.version()
	for _, field := range issueFields {
		if from, to := before[field], t.object[field]; from != to {
			t.past = append(t.past, modelChange{field, from, to, c.id, write})
		}
	}
}

// history is what a caller gets to read of an issue's past: the last write first,
// the fields of each in their order, and no parent that the caller does not see.
func (m *model) history(c *modelCaller, t *modelIssue) []modelChange {
	all := slices.Clone(t.past)
	slices.SortStableFunc(all, func(a, b modelChange) int { return b.write - a.write })
	for i, change := range all {
		for _, value := range []*any{&all[i].from, &all[i].to} {
			if parent, ok := (*value).(string); ok && change.field == "parentId" && m.seen(c, parent) == nil {
				*value = nil
			}
		}
	}
	return all
}

type modelTeam struct {
	key     string
	public  bool
	members map[string]bool
	counted int
}

// modelCaller is somebody with a token.
type modelCaller struct {
	*Client
	name, id, kind string
	admin, guest   bool
}

func (t *modelIssue) id() string { return t.object["id"].(string) }

// text is a field's text, empty for null.
func (t *modelIssue) text(field string) string {
	s, _ := t.object[field].(string)
	return s
}

func closedStatus(status string) bool { return status == "done" || status == "canceled" }

func (t *modelIssue) closed() bool { return closedStatus(t.text("status")) }

func (t *modelIssue) draft() bool { return t.object["isDraft"].(bool) }

// snoozed: the moments of the test are long past or far ahead.
func (t *modelIssue) snoozed() bool { return t.text("snoozedUntil") > "2090" }

func (m *model) find(id string) *modelIssue {
	for _, t := range m.issues {
		if t.id() == id {
			return t
		}
	}
	return nil
}

// seesTeam: admins see every team; a private one is seen by its members, but never
// by guests (Decision 11).
func (m *model) seesTeam(c *modelCaller, id string) bool {
	team := m.teams[id]
	return team != nil && (c.admin || team.public || !c.guest && team.members[c.id])
}

// sees: an issue with grants is seen by whom they name, among those who see its
// team, and by admins (Decision 26).
func (m *model) sees(c *modelCaller, t *modelIssue) bool {
	if t == nil || !m.seesTeam(c, t.text("teamId")) {
		return false
	}
	if c.admin || len(t.grants) == 0 {
		return true
	}
	for actor, kind := range t.grants {
		if actor == c.id && kind == c.kind || kind == "team" && m.teams[actor] != nil && m.teams[actor].members[c.id] {
			return true
		}
	}
	return false
}

func (m *model) seen(c *modelCaller, id string) *modelIssue {
	if t := m.find(id); m.sees(c, t) {
		return t
	}
	return nil
}

// parent is the id of the parent that a caller knows of; a hidden one is none.
func (m *model) parent(c *modelCaller, t *modelIssue) string {
	if m.seen(c, t.text("parentId")) == nil {
		return ""
	}
	return t.text("parentId")
}

// shown is an issue as a caller gets it.
func (m *model) shown(c *modelCaller, t *modelIssue) object {
	out := maps.Clone(t.object)
	if m.parent(c, t) == "" {
		out["parentId"] = nil
	}
	return out
}

func (m *model) children(c *modelCaller, t *modelIssue) (all []*modelIssue) {
	for _, child := range slices.Backward(m.issues) {
		if child.text("parentId") == t.id() && m.sees(c, child) {
			all = append(all, child)
		}
	}
	return all
}

func (m *model) withRef(ref any) *modelIssue {
	for _, t := range m.issues {
		if ref != nil && t.object["externalRef"] == ref {
			return t
		}
	}
	return nil
}
