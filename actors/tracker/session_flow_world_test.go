package tracker

import (
	"slices"
	"time"

	"pgregory.net/rapid"
)

// These are the operations of flowModel on all that decides where a session is: its issue, the limits of the
// workspace, and the rights of those who claim.

func (m *flowModel) anyIssue(t *rapid.T) IssueID {
	if len(m.issues) == 0 {
		t.Skip("no issue: rapid draws another step")
	}
	return pick(t, "issue", m.issues)
}

func (m *flowModel) createOne(t *rapid.T) {
	in := CreateIssueIn{Title: "Work", IssueFields: IssueFields{Priority: Some(pick(t, "priority", []IssuePriority{PriorityLow, PriorityHigh}))}}
	if onceIn(t, 3, "in a project") {
		in.ProjectID = Some(pick(t, "project", m.projects))
	}
	if len(m.issues) > 0 && onceIn(t, 4, "below another") {
		in.ParentID = Some(m.anyIssue(t))
	}
	if reply, err := m.exec(t, m.admin, CreateIssue, &in); err == nil {
		m.issues = append(m.issues, decode[Issue](m, reply.Body).ID)
	}
}

func (m *flowModel) createSome(t *rapid.T) {
	relation := pick(t, "type", []RelationType{RelationBlocks, RelationBlockedBy, RelationDuplicates, RelationDuplicatedBy})
	var in BulkIssuesIn
	readBody(t, &in, `{"items": [{"title": "A", "ref": "a", "dispatch": {"agentId": "x", "whenReady": true}},`+
		`{"title": "B", "ref": "b", "relations": [{"type": "blocks", "ref": "a"}, {"type": "`+string(relation)+`", "issueId": "`+string(m.anyIssue(t))+`"}],`+
		` "dispatch": {"agentId": "alpha", "concurrencyKeys": ["k"]}}]}`)
	var faults Faults
	if in.Validate(&faults); !faults.Empty() {
		t.Fatal(faults.Err())
	}
	reply, err := m.exec(t, m.admin, CreateIssues, &in)
	if err != nil {
		return
	}
	for _, i := range decode[BulkIssues](m, reply.Body).Issues {
		m.issues = append(m.issues, *i.ID)
	}
}

func (m *flowModel) patchSome(t *rapid.T) {
	var p IssuePatch
	switch rapid.IntRange(0, 6).Draw(t, "field") {
	case 0, 1:
		p.Status = Some(pick(t, "status", []IssueStatus{StatusTriage, StatusTodo, StatusInProgress, StatusDone, StatusCanceled}))
	case 2:
		p.Priority = Some(pick(t, "priority", []IssuePriority{PriorityLow, PriorityHigh, PriorityUrgent}))
	case 3:
		p.ProjectID = optionally(t, m.projects)
	case 4:
		p.AssigneeID = optionally(t, m.agents)
	case 5:
		p.TeamID = Some(pick(t, "team", []TeamID{m.core, m.secret}))
	default:
		p.PRState = Some(pick(t, "pr", []string{"open", "merged", "closed"}))
	}
	if id := m.anyIssue(t); onceIn(t, 4, "two") {
		_, _ = m.exec(t, m.admin, BatchIssues, &BatchIssuesIn{IDs: []string{string(id), string(m.anyIssue(t))}, Patch: p})
	} else {
		_, _ = m.exec(t, m.admin, PatchIssue, &PatchIssueIn{ID: string(id), IssuePatch: p})
	}
}

// optionally draws one of several values, or null.
func optionally(t *rapid.T, from []string) Opt[string] {
	if onceIn(t, 3, "none") {
		return Opt[string]{Set: true, Null: true}
	}
	return Some(pick(t, "value", from))
}

func (m *flowModel) relateOne(t *rapid.T) {
	in := RelationIn{ID: string(m.anyIssue(t)), Type: pick(t, "type", []RelationType{RelationBlocks, RelationBlocks, RelationBlocks, RelationDuplicates}), OtherID: string(m.anyIssue(t))}
	if in.ID == in.OtherID {
		t.Skip("no relation to itself: rapid draws another step")
	}
	op := PutRelation
	if onceIn(t, 3, "remove") {
		op = DeleteRelation
	}
	_, _ = m.exec(t, m.admin, op, &in)
}

// deleteOne deletes an issue and makes another one.
func (m *flowModel) deleteOne(t *rapid.T) {
	id := m.anyIssue(t)
	if _, err := m.exec(t, m.admin, DeleteIssue, &DeleteIssueIn{ID: string(id)}); err == nil {
		m.forgetIssue(id)
	}
	m.createOne(t)
}

func (m *flowModel) forgetIssue(id IssueID) {
	m.issues = slices.DeleteFunc(m.issues, func(o IssueID) bool { return o == id })
}

// retainSome has retention archive or delete closed issues, and delete sessions that have ended.
func (m *flowModel) retainSome(t *rapid.T) {
	in := PutRetentionIn{ClosedIssues: Some(pick(t, "closed issues", []ClosedIssues{ArchiveClosed, DeleteClosed}))}
	if onceIn(t, 2, "sessions") {
		in.EndedSessionsDays = Some(int64(0))
	}
	if onceIn(t, 2, "issues") {
		in.ClosedIssuesDays = Some(int64(0))
	}
	_, _ = m.exec(t, m.admin, PutRetention, &in)
	m.passing(t, 2*time.Hour)
	_, _ = m.exec(t, m.admin, PutRetention, &PutRetentionIn{ClosedIssues: Some(ArchiveClosed)})
	s := m.state(t)
	for _, id := range slices.Clone(m.issues) {
		if s.issue(id) == nil {
			m.forgetIssue(id)
		}
	}
	m.createOne(t)
}

func (m *flowModel) unarchiveOne(t *rapid.T) {
	_, _ = m.exec(t, m.admin, UnarchiveIssue, &UnarchiveIssueIn{ID: string(m.anyIssue(t))})
}

func (m *flowModel) holdOne(t *rapid.T) {
	scope := HoldIn{Scope: pick(t, "scope", []string{"workspace", "agent:alpha", "agent:" + m.limited, "agent:x", "provider:p", "provider:external"})}
	if onceIn(t, 2, "end") {
		_, _ = m.exec(t, m.admin, DeleteHold, &scope)
		return
	}
	in := PutHoldIn{HoldIn: scope, Reason: "because"}
	if onceIn(t, 2, "until") {
		in.Until = Some(string(At(m.now.Add(5 * time.Second))))
	}
	_, _ = m.exec(t, m.admin, PutHold, &in)
}

func (m *flowModel) limitOne(t *rapid.T) {
	key := ConcurrencyLimitIn{Key: pick(t, "key", []string{"k", "l", "project:" + m.projects[0]})}
	if onceIn(t, 3, "default") {
		_, _ = m.exec(t, m.admin, DeleteConcurrencyLimit, &key)
		return
	}
	_, _ = m.exec(t, m.admin, PutConcurrencyLimit, &PutConcurrencyLimitIn{ConcurrencyLimitIn: key, Limit: int64(rapid.IntRange(1, 3).Draw(t, "limit"))})
}

func (m *flowModel) budgetOne(t *rapid.T) {
	scope := BudgetIn{pick(t, "scope", []string{"workspace", "agent:alpha", "agent:" + m.limited, "agent:x", "project:" + m.projects[0], "project:" + m.projects[1], "issue:" + string(m.anyIssue(t))})}
	if onceIn(t, 2, "none") {
		_, _ = m.exec(t, m.admin, DeleteBudget, &scope)
		return
	}
	in := PutBudgetIn{BudgetIn: scope, CostMicros: Some(int64(rapid.IntRange(0, 6).Draw(t, "cost"))), Period: pick(t, "period", []BudgetPeriod{BudgetMonth, BudgetTotal})}
	_, _ = m.exec(t, m.admin, PutBudget, &in)
}

func (m *flowModel) changeAccess(t *rapid.T) {
	switch rapid.IntRange(0, 3).Draw(t, "access") {
	case 0:
		_, _ = m.exec(t, m.admin, PutAccessGrant, &PutAccessGrantIn{
			ID: string(m.anyIssue(t)), ActorID: pick(t, "actor", []string{string(m.memberID), "alpha"}), ActorType: pick(t, "type", []GranteeType{GranteeUser, GranteeAgent}),
		})
	case 1:
		_, _ = m.exec(t, m.admin, RemoveAccessGrant, &AccessGrantIn{string(m.anyIssue(t)), pick(t, "actor", []string{string(m.memberID), "alpha"})})
	case 2:
		_, _ = m.exec(t, m.admin, PatchTeam, &PatchTeamIn{ID: m.secret, IsPublic: Some(onceIn(t, 2, "public"))})
	default:
		op := PutTeamMember
		if onceIn(t, 2, "remove") {
			op = RemoveTeamMember
		}
		_, _ = m.exec(t, m.admin, op, &TeamMemberIn{ID: m.secret, UserID: m.memberID})
	}
}

func (m *flowModel) changeTeam(t *rapid.T) {
	in := PatchTeamIn{ID: m.core, ParentAutoClose: Some(onceIn(t, 2, "parent")), SubIssueAutoClose: Some(onceIn(t, 2, "children"))}
	in.TriageAssigneeID = optionally(t, m.agents)
	_, _ = m.exec(t, m.admin, PatchTeam, &in)
}

// registerLimited registers an agent that works on one session at a time. Its sessions take a place of their
// issue's project.
func (m *flowModel) registerLimited() {
	m.limited = string(m.register(CreateAgentIn{Name: "L", MaxConcurrentSessions: Some(int64(1)), ConcurrencyBy: Some([]ConcurrencyField{ConcurrentProject})}).ID)
}

func (m *flowModel) changeAgent(t *rapid.T) {
	if onceIn(t, 4, "another") {
		if _, err := m.exec(t, m.admin, DeleteAgent, &AgentByIDIn{ID: m.limited}); err == nil {
			m.registerLimited()
			m.agents = append(m.agents, m.limited)
			m.drain(t)
		}
		return
	}
	in := PatchAgentIn{ID: pick(t, "agent", []string{"alpha", m.limited}), MaxConcurrentSessions: Opt[int64]{Set: true, Null: true}}
	if !onceIn(t, 3, "no limit") {
		in.MaxConcurrentSessions = Some(int64(rapid.IntRange(1, 2).Draw(t, "limit")))
	}
	_, _ = m.exec(t, m.admin, PatchAgent, &in)
}
