package tracker

import (
	"strings"

	"github.com/cespare/xxhash/v2"

	"switchyard/storage"
)

// IssueFilter has the conditions of a list of issues. All that are given must hold
// (Decision 17).
type IssueFilter struct {
	TeamID         Opt[string]        `query:"teamId"`
	Status         Opt[IssueStatus]   `query:"status"`
	Priority       Opt[IssuePriority] `query:"priority"`
	ParentID       Opt[string]        `query:"parentId"`
	HasParent      Opt[bool]          `query:"hasParent"`
	IsParent       Opt[bool]          `query:"isParent"`
	IsDraft        Opt[bool]          `query:"isDraft"`
	Archived       Opt[bool]          `query:"archived"`
	Ready          Opt[bool]          `query:"ready"`
	Blocked        Opt[bool]          `query:"blocked"`
	IncludeSnoozed Opt[bool]          `query:"includeSnoozed"`
	AssigneeID     Opt[string]        `query:"assigneeId"`
	ProjectID      Opt[string]        `query:"projectId"`
	CycleID        Opt[string]        `query:"cycleId"`
	LabelID        Opt[string]        `query:"labelId"`
	Search         Opt[string]        `query:"search" rules:"max=1000"`
	Identifier     Opt[string]        `query:"identifier"`
	ExternalRef    Opt[string]        `query:"externalRef"`
	View           Opt[string]        `query:"view" enum:"all,active,backlog,triage,completed,mine,unassigned"`
}

// A statusSet has the bit 1<<rank of each status in it.
type statusSet uint8

const everyStatus statusSet = 1<<len(issueStatuses) - 1

var closedStatuses = statusesOf(StatusDone, StatusCanceled)

func statusesOf(all ...IssueStatus) (set statusSet) {
	for _, s := range all {
		set |= 1 << s.rank()
	}
	return set
}

// statuses returns the statuses that the filter and its view allow.
func (f *IssueFilter) statuses() statusSet {
	set := everyStatus
	if f.Status.Set {
		set = statusesOf(f.Status.Value)
	}
	switch f.View.Value {
	case "active":
		set &= statusesOf(StatusTodo, StatusInProgress)
	case "backlog":
		set &= statusesOf(StatusBacklog)
	case "triage":
		set &= statusesOf(StatusTriage)
	case "completed":
		set &= statusesOf(StatusDone, StatusCanceled)
	}
	if f.Ready.Or(false) {
		set &= readyStatuses
	}
	return set
}

// hidesArchived reports whether the list is without archived issues. They are in lists
// with archived=true, which have no others, and are found by identifier and externalRef. A
// list of open issues can't have any.
func (f *IssueFilter) hidesArchived() bool {
	if f.Archived.Set {
		return !f.Archived.Value
	}
	return !f.Identifier.Set && !f.ExternalRef.Set && f.statuses()&closedStatuses != 0
}

// matcher gathers the streams that a list has to be in. Once a condition can't be
// satisfied the list is empty with any other conditions.
type matcher struct {
	all   []storage.Match
	empty bool
}

func (m *matcher) add(match storage.Match) { m.all = append(m.all, match) }

// text adds an index by an opaque text. No actor, project or label has the empty
// one.
func (m *matcher) text(index storage.TableID, s string) {
	if s == "" {
		m.empty = true
		return
	}
	m.add(storage.Equal(index, storage.Key(make([]byte, 0, len(s)+1)).Str(s)))
}

// matches turns the filter, within some statuses, into streams of issues; empty if no
// issue can be in all of them. The residual filter checks what no stream can express.
func (v *View) matches(f *IssueFilter, within statusSet) ([]storage.Match, bool, error) {
	m := matcher{all: make([]storage.Match, 0, 8)}
	m.status(f.statuses() & within)
	if f.Priority.Set {
		m.add(storage.Equal(issueByPriority, storage.Key{f.Priority.Value.rank()}))
	}
	if f.TeamID.Set {
		if team, ok := storage.ParseID(f.TeamID.Value); ok && v.Caller.CanViewTeam(team) {
			m.add(storage.Equal(issueByTeam, storage.Key(nil).ID(team)))
		} else {
			m.empty = true
		}
	}
	if f.ParentID.Set {
		parent, ok := storage.ParseID(f.ParentID.Value)
		if ok {
			var err error
			if ok, err = (&visibility{v: v}).links(parent); err != nil {
				return nil, false, err
			}
		}
		if ok {
			m.add(storage.Equal(issueByParent, issueKey(parent)))
		} else {
			m.empty = true
		}
	}
	if f.AssigneeID.Set {
		m.text(issueByAssignee, f.AssigneeID.Value)
	}
	switch f.View.Value {
	case "mine":
		m.text(issueByAssignee, v.Caller.ID)
	case "unassigned":
		m.empty = m.empty || f.AssigneeID.Set
		m.add(storage.Equal(issueByAssignee, storage.Key(nil).Str("")))
	}
	if f.ProjectID.Set {
		m.text(issueByProject, f.ProjectID.Value)
	}
	if f.CycleID.Set {
		m.text(issueByCycle, f.CycleID.Value)
	}
	if f.LabelID.Set {
		m.text(issueByLabel, f.LabelID.Value)
	}
	if f.HasParent.Or(false) {
		m.add(storage.Equal(issueByHasParent, nil))
	}
	if f.IsParent.Or(false) {
		m.add(storage.Referenced(issueByParent))
	}
	if f.IsDraft.Or(false) {
		m.add(storage.Equal(issueByDraft, nil))
	}
	if f.Archived.Or(false) {
		m.add(storage.Equal(issueByArchived, nil))
	}
	if f.Blocked.Or(false) {
		m.add(storage.Equal(blockedTable, nil))
	}
	if m.empty {
		return nil, true, nil
	}
	if err := v.matchUnique(&m, f); err != nil {
		return nil, false, err
	}
	return m.all, m.empty, nil
}

// status adds the statuses that are left. All of them is no condition.
func (m *matcher) status(set statusSet) {
	switch set {
	case everyStatus:
	case 0:
		m.empty = true
	default:
		m.add(matchStatuses(set))
	}
}

// matchStatuses matches the issues with one of some statuses.
func matchStatuses(set statusSet) storage.Match {
	var any []storage.Match
	for i := range issueStatuses {
		if set&(1<<i) != 0 {
			any = append(any, storage.Equal(issueByStatus, storage.Key{byte(i)}))
		}
	}
	if len(any) == 1 {
		return any[0]
	}
	return storage.AnyOf(any...)
}

// matchUnique adds the filters that at most one issue satisfies.
func (v *View) matchUnique(m *matcher, f *IssueFilter) error {
	if f.ExternalRef.Set {
		pk, err := v.issueWithRef(f.ExternalRef.Value)
		if err != nil {
			return err
		}
		m.only(pk)
	}
	if f.Identifier.Set {
		id, err := v.issueByIdentifier(f.Identifier.Value)
		if err != nil {
			return err
		}
		if id == (storage.ID{}) {
			m.only(nil)
		} else {
			m.only(issueKey(id))
		}
	}
	return nil
}

func (m *matcher) only(pk []byte) {
	if pk == nil {
		m.empty = true
		return
	}
	m.add(storage.Only(pk))
}

// residualFilter decides on an issue that is in every stream. It has the conditions that
// depend on the caller or the clock, or are the lack of something.
type residualFilter struct {
	v          *View
	f          *IssueFilter
	now        Timestamp
	visibility *visibility
	search     *textSearch
	// readied is set if the filters ready and blocked are decided already, by the sets that
	// the issues were selected with.
	readied bool
}

func (r *residualFilter) keeps(pk []byte, rec storage.Record) (bool, error) {
	if seen, err := r.v.canViewIssue(rec); err != nil || !seen {
		return false, err
	}
	flags := rec.Flags()
	switch {
	case r.f.IsDraft.Set && r.f.IsDraft.Value != (flags&issueDraft != 0):
		return false, nil
	case flags&issueArchived != 0 && r.f.hidesArchived():
		return false, nil
	case !r.f.IncludeSnoozed.Value && snoozedAt(rec, r.now):
		return false, nil
	}
	if !r.readied {
		if keep, err := r.keepsReadiness(pk, rec); err != nil || !keep {
			return false, err
		}
	}
	if r.f.HasParent.Set {
		// A parent that the caller may not see does not count.
		has, err := flags&issueHasParent != 0, error(nil)
		if has {
			has, err = r.visibility.links(parentIn(rec))
		}
		if err != nil || has != r.f.HasParent.Value {
			return false, err
		}
	}
	if r.search != nil {
		keep, err := r.search.matches(rec)
		if !r.search.mayLook() {
			r.visibility.spent = maxExamined // the page ends with this issue
		}
		if err != nil || !keep {
			return false, err
		}
	}
	if !r.f.IsParent.Set {
		return true, nil
	}
	partial, err := r.visibility.partial()
	if err != nil || r.f.IsParent.Value && !partial {
		return err == nil, err
	}
	// isParent=true came from a stream that knows no caller.
	has, err := r.visibility.hasChild(pk)
	return has == r.f.IsParent.Value, err
}

// fingerprint returns a hash of the conditions, the same for every caller, that a
// cursor is bound to. kind distinguishes lists of different operations.
func (f *IssueFilter) query(workspace storage.ID, kind string) uint64 {
	b := append(make([]byte, 0, 512), workspace[:]...)
	b = append(append(b, kind...), 0)
	for _, p := range [...]struct {
		name  string
		set   bool
		value string
	}{
		{"teamId", f.TeamID.Set, f.TeamID.Value},
		{"status", f.Status.Set, string(f.Status.Value)},
		{"priority", f.Priority.Set, string(f.Priority.Value)},
		{"parentId", f.ParentID.Set, f.ParentID.Value},
		{"hasParent", f.HasParent.Set, truth(f.HasParent.Value)},
		{"isParent", f.IsParent.Set, truth(f.IsParent.Value)},
		{"isDraft", f.IsDraft.Set, truth(f.IsDraft.Value)},
		{"archived", f.Archived.Set, truth(f.Archived.Value)},
		{"ready", f.Ready.Set, truth(f.Ready.Value)},
		{"blocked", f.Blocked.Set, truth(f.Blocked.Value)},
		{"includeSnoozed", f.IncludeSnoozed.Value, truth(f.IncludeSnoozed.Value)},
		{"assigneeId", f.AssigneeID.Set, f.AssigneeID.Value},
		{"projectId", f.ProjectID.Set, f.ProjectID.Value},
		{"cycleId", f.CycleID.Set, f.CycleID.Value},
		{"labelId", f.LabelID.Set, f.LabelID.Value},
		{"identifier", f.Identifier.Set, strings.ToUpper(f.Identifier.Value)},
		{"search", f.Search.Set, f.Search.Value},
		{"externalRef", f.ExternalRef.Set, f.ExternalRef.Value},
		{"view", f.View.Set && f.View.Value != "all", f.View.Value},
	} {
		if p.set {
			b = append(append(append(append(b, p.name...), '='), p.value...), 0)
		}
	}
	return xxhash.Sum64(b)
}

func truth(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
