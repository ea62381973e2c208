package systemtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A verdict is what a request should come to: a status, the paths that a 400
// complains about, and what the answer holds.
type verdict struct {
	status int
	faults []string
	issues []*modelIssue
	// duplicates are those of a creation, or of its refusal.
	duplicates []duplicate
	missing    []string
}

// team finds the team that a request names; "" with faults when there is none.
func (m *model) team(c *modelCaller, body object) (id string, faults []string) {
	id, _ = body["teamId"].(string)
	if id != "" && !m.seesTeam(c, id) {
		faults = append(faults, "teamId")
	}
	key, named := body["teamKey"].(string)
	if !named {
		return id, faults
	}
	for keyed, team := range m.teams {
		if strings.EqualFold(team.key, key) && m.seesTeam(c, keyed) {
			if id != "" && faults == nil && id != keyed {
				faults = append(faults, "teamKey")
			}
			return keyed, faults
		}
	}
	return "", append(faults, "teamKey")
}

// parentFault reports whether an issue, nil for a new one, can't have a parent.
func (m *model) parentFault(c *modelCaller, t *modelIssue, parent string) bool {
	if m.seen(c, parent) == nil {
		return true
	}
	for at := m.find(parent); at != nil; at = m.find(at.text("parentId")) {
		if at == t {
			return true
		}
	}
	return false
}

func (m *model) number(t *modelIssue) {
	team := m.teams[t.text("teamId")]
	team.counted++
	t.object["number"], t.object["identifier"] = float64(team.counted), fmt.Sprintf("%s-%d", team.key, team.counted)
}

// create is POST /issues. The id is the service's to make, so it comes later.
func (m *model) create(c *modelCaller, body object, block bool) verdict {
	if t := m.withRef(body["externalRef"]); t != nil { // Decision 18
		if !m.sees(c, t) {
			return verdict{status: 409}
		}
		return verdict{status: 200, issues: []*modelIssue{t}}
	}
	var faults []string
	filled := object{}
	template := m.templates[fmt.Sprint(body["templateId"])]
	for name, value := range template { // Decision 21: what is left out
		if value != nil {
			filled[name] = value
		}
	}
	if parent, ok := filled["parentId"].(string); ok && m.parentFault(c, nil, parent) {
		delete(filled, "parentId")
	}
	_, teamID := body["teamId"]
	_, teamKey := body["teamKey"]
	if teamID || teamKey || !m.seesTeam(c, fmt.Sprint(filled["teamId"])) {
		delete(filled, "teamId")
	}
	for name, value := range body {
		filled[name] = value
	}
	team := m.defaultTeam
	if filled["teamId"] != nil || filled["teamKey"] != nil {
		team, faults = m.team(c, filled)
	}
	if parent, ok := body["parentId"].(string); ok && m.parentFault(c, nil, parent) {
		faults = append(faults, "parentId")
	}
	if faults != nil {
		return verdict{status: 400, faults: faults}
	}
	v := verdict{status: 201, duplicates: m.duplicates(c, body["title"].(string))}
	if block && len(v.duplicates) > 0 {
		v.status = 409
		return v
	}
	t := &modelIssue{grants: map[string]string{}, object: object{
		"organizationId": m.workspace, "externalRef": nil, "teamId": team, "title": nil, "description": nil, "status": "backlog", "priority": "medium",
		"resolution": nil, "parentId": nil, "subIssueSortOrder": nil, "estimate": nil, "isDraft": false, "snoozedUntil": nil, "assigneeId": nil,
		"projectId": nil, "cycleId": nil, "labelIds": nil, "repo": nil, "branch": nil, "prUrl": nil, "prState": nil, "prCheckState": nil,
	}}
	delete(filled, "prUrl") // a creation does not take these
	delete(filled, "prState")
	t.apply(filled)
	m.number(t)
	m.issues = append(m.issues, t)
	v.issues = []*modelIssue{t}
	return v
}

// apply writes fields as they are sent, but for those that lead to other things.
func (t *modelIssue) apply(body object) {
	if status, ok := body["status"].(string); ok && t.closed() && !closedStatus(status) {
		t.object["resolution"] = nil // Decision 21
	}
	for name, value := range body {
		switch name {
		case "teamId", "teamKey", "templateId":
		case "labelIds":
			t.labels = nil
			t.object[name] = nil
			if value != nil {
				for _, label := range value.([]string) {
					if !slices.Contains(t.labels, label) {
						t.labels = append(t.labels, label)
					}
				}
				t.object[name] = jsonText(t.labels)
			}
		default:
			t.object[name] = value
		}
	}
}

// jsonText is the JSON text of an array.
func jsonText(all []string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(append([]string{}, all...))
	return strings.TrimSpace(b.String())
}

// patch is PATCH /issues/{id}, and each step of a batch.
func (m *model) patch(c *modelCaller, id string, body object) verdict {
	t := m.seen(c, id)
	if t == nil {
		return verdict{status: 404}
	}
	if other := m.withRef(body["externalRef"]); other != nil && other != t {
		return verdict{status: 409}
	}
	patch := maps.Clone(body)
	var faults []string
	known := m.parent(c, t)
	if parent, ok := body["parentId"].(string); ok && parent != known && m.parentFault(c, t, parent) {
		faults = append(faults, "parentId")
	}
	if parent, given := body["parentId"]; given && parent == nil && known == "" {
		delete(patch, "parentId") // Decision 26: what is shown as null is left by null
	}
	team, teamFaults := m.team(c, body)
	if faults = append(faults, teamFaults...); faults != nil {
		return verdict{status: 400, faults: faults}
	}
	before := maps.Clone(t.object)
	t.apply(patch)
	if team != "" && team != t.text("teamId") { // Decision 14
		t.former = append(t.former, t.text("identifier"))
		t.object["teamId"] = team
		m.number(t)
	}
	t.remember(c, before)
	return verdict{status: 200, issues: []*modelIssue{t}}
}

// batch is POST /issues/batch: all or nothing (Decision 22).
func (m *model) batch(c *modelCaller, ids []string, body object) verdict {
	v := verdict{status: 200}
	var once []string
	for _, id := range ids {
		switch {
		case slices.Contains(once, id) || slices.Contains(v.missing, id):
		case m.seen(c, id) == nil:
			v.missing = append(v.missing, id)
		default:
			once = append(once, id)
		}
	}
	if v.missing != nil {
		v.status = 404
		return v
	}
	before := m.clone()
	for _, id := range once {
		one := m.patch(c, id, body)
		if one.status != 200 {
			m.issues, m.teams = before.issues, before.teams
			for i := range one.faults {
				one.faults[i] = "patch." + one.faults[i]
			}
			return one
		}
		v.issues = append(v.issues, one.issues...)
	}
	return v
}

func (m *model) clone() *model {
	copied := *m
	copied.issues, copied.teams = nil, map[string]*modelTeam{}
	for _, t := range m.issues {
		c := *t
		c.object, c.labels, c.former, c.past = maps.Clone(t.object), slices.Clone(t.labels), slices.Clone(t.former), slices.Clone(t.past)
		copied.issues = append(copied.issues, &c)
	}
	for id, team := range m.teams {
		c := *team
		copied.teams[id] = &c
	}
	return &copied
}

// remove is DELETE /issues/{id}: the children lose their parent (Decision 23).
func (m *model) remove(c *modelCaller, id string) verdict {
	t := m.seen(c, id)
	if t == nil {
		return verdict{status: 404}
	}
	for _, child := range m.issues {
		if child.text("parentId") == id {
			before := maps.Clone(child.object)
			child.object["parentId"] = nil
			child.remember(c, before)
		}
	}
	m.issues = slices.DeleteFunc(m.issues, func(other *modelIssue) bool { return other == t })
	return verdict{status: 204}
}

func (m *model) grant(c *modelCaller, id, actor, kind string) verdict {
	t := m.seen(c, id)
	if t == nil {
		return verdict{status: 404}
	}
	t.grants[actor] = kind
	return verdict{status: 200}
}

func (m *model) revoke(c *modelCaller, id, actor string) verdict {
	t := m.seen(c, id)
	if t == nil || t.grants[actor] == "" {
		return verdict{status: 404}
	}
	delete(t.grants, actor)
	return verdict{status: 204}
}
