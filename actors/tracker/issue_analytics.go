package tracker

import (
	"cmp"
	"fmt"
	"slices"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// IssueAnalyticsIn is the field that issues are grouped by.
type IssueAnalyticsIn struct {
	GroupBy string `query:"groupBy" enum:"status,priority,assigneeId,teamId,projectId,cycleId" default:"status"`
}

// IssueGroups are groups of issues, largest first.
type IssueGroups struct {
	Groups []IssueGroup `json:"groups"`
}

// IssueGroup is the number of issues with one value, and the sum of their estimates.
// Group is null for issues without a value.
type IssueGroup struct {
	Group         *string `json:"group"`
	Count         int64   `json:"count"`
	EstimateTotal int64   `json:"estimateTotal"`
}

// IssueAnalytics counts the issues that the caller may see by one of their fields;
// drafts don't count (Decision 25).
var IssueAnalytics = NewQuery[IssueAnalyticsIn, IssueGroups]("IssueAnalytics", "Count issues by a field", Needs{Read, "issues"}, issueAnalytics, FromSnapshot, TakesATurn)

const (
	// maxIssueGroups limits the groups of an answer to the largest.
	maxIssueGroups = 10_000
	// maxEstimateTotal is the largest sum shown: the largest integer that is exact in a
	// floating-point number.
	maxEstimateTotal = 1<<53 - 1
)

func issueAnalytics(v *View, in *IssueAnalyticsIn) (Reply, error) {
	groups, err := v.issueGroups(cmp.Or(in.GroupBy, "status"))
	if err != nil {
		return Reply{}, fmt.Errorf("add up the aggregates: %w", err)
	}
	return jsonReply(Done, IssueGroups{groups})
}

func (v *View) issueGroups(by string) ([]IssueGroup, error) {
	restricted, err := v.restrictedAmounts(by)
	if err != nil {
		return nil, err
	}
	groups := issueGroups{}
	switch by {
	case "assigneeId":
		err = v.groupByText(aggregateAssignee, restricted, &groups)
	case "projectId":
		err = v.groupByText(aggregateProject, restricted, &groups)
	case "cycleId":
		err = v.groupByText(aggregateCycle, restricted, &groups)
	default:
		err = v.eachState(func(kind aggregateKind, team storage.ID, a amount) {
			group := team.String()
			switch by {
			case "status":
				group = string(issueStatuses[kind.statusRank()])
			case "priority":
				group = string(issuePriorities[kind.priorityRank()])
			}
			restricted.add(group, a)
		})
		groups.addAll(restricted)
	}
	return groups.largest(), err
}

// amounts maps the text of a group to its amount; the empty text stands for null.
type amounts map[string]amount

func (m amounts) add(group string, a amount) {
	sum := m[group]
	sum.add(a)
	m[group] = sum
}

// groupByText adds up the aggregates by a text. Issues that are in none of them, counted
// by the aggregates by state, form the group of null.
func (v *View) groupByText(kind aggregateKind, restricted amounts, groups *issueGroups) error {
	var rest amount
	err := v.eachState(func(_ aggregateKind, _ storage.ID, a amount) { rest.add(a) })
	if err != nil {
		return err
	}
	// The rows of a text are adjacent.
	var group string
	var sum amount
	finish := func() {
		rest.sub(sum)
		sum.add(restricted[group])
		groups.add(group, sum)
		delete(restricted, group)
		sum = amount{}
	}
	err = v.eachAggregate([]byte{byte(kind)}, func(_ aggregateKind, text string, _ storage.ID, a amount) bool {
		if text != group {
			if group != "" {
				finish()
			}
			group = text
		}
		sum.add(a)
		return true
	})
	if err != nil {
		return err
	}
	if group != "" {
		finish()
	}
	restricted.add("", rest)
	groups.addAll(restricted)
	return nil
}

// eachState calls fn for the aggregates by status and priority that the caller may see;
// together they count every issue once. Their keys come before those of the aggregates by
// a text.
func (v *View) eachState(fn func(kind aggregateKind, team storage.ID, a amount)) error {
	return v.eachAggregate(nil, func(kind aggregateKind, _ string, team storage.ID, a amount) bool {
		if kind >= aggregateTexts {
			return false
		}
		fn(kind, team, a)
		return true
	})
}

// eachAggregate calls fn for the aggregates whose keys begin with prefix, of the teams whose
// issues the caller may see, until fn returns false.
func (v *View) eachAggregate(prefix []byte, fn func(kind aggregateKind, text string, team storage.ID, a amount) bool) error {
	return v.HotRows(issueAggregateTable, prefix, func(fields, value []byte) (bool, error) {
		kind, text, team, err := parseAggregate(fields)
		if err != nil {
			return false, err
		}
		if seen, err := v.canViewUnrestricted(team); err != nil || !seen {
			return err == nil, err
		}
		a, err := parseAmount(value)
		if err != nil {
			return false, err
		}
		return fn(kind, text, team, a), nil
	})
}

// canViewUnrestricted reports whether the caller may see the unrestricted issues of a
// team: all of them or none.
func (v *View) canViewUnrestricted(team storage.ID) (bool, error) {
	var space [32]byte
	rec, err := storage.ParseRecord(storage.AppendHeader(space[:0], storage.Header{Team: team}))
	if err != nil {
		return false, err
	}
	return v.canViewIssue(rec)
}

// groupedIssue has the fields of a stored issue that groups are made of.
type groupedIssue struct {
	TeamID     string  `json:"teamId"`
	Status     string  `json:"status"`
	Priority   string  `json:"priority"`
	Estimate   *int64  `json:"estimate"`
	AssigneeID *string `json:"assigneeId"`
	ProjectID  *string `json:"projectId"`
	CycleID    *string `json:"cycleId"`
}

func (t *groupedIssue) group(by string) (group string) {
	optional := func(s *string) {
		if s != nil {
			group = *s
		}
	}
	switch by {
	case "status":
		group = t.Status
	case "priority":
		group = t.Priority
	case "teamId":
		group = t.TeamID
	case "assigneeId":
		optional(t.AssigneeID)
	case "projectId":
		optional(t.ProjectID)
	case "cycleId":
		optional(t.CycleID)
	}
	return group
}

// restrictedAmounts adds up the restricted issues that the caller may see, one by one:
// aggregates don't count them.
func (v *View) restrictedAmounts(by string) (amounts, error) {
	sums := amounts{}
	err := issues.List(v, []storage.Match{storage.Equal(restrictedTable, nil)}, nil, func(_ []byte, rec storage.Record) (bool, error) {
		if rec.Flags()&issueDraft != 0 {
			return true, nil
		}
		if seen, err := v.canViewIssue(rec); err != nil || !seen {
			return err == nil, err
		}
		var t groupedIssue
		if err := json.Unmarshal(rec.JSON(), &t); err != nil {
			return false, fmt.Errorf("decode an issue: %w", err)
		}
		sums.add(t.group(by), amount{n: 1, sum: estimateOf(t.Estimate)})
		return true, nil
	})
	return sums, err
}

// issueGroups collects groups, and keeps at most twice as many as an answer has.
type issueGroups []IssueGroup

func (g *issueGroups) add(group string, a amount) {
	if a.n == 0 {
		return
	}
	row := IssueGroup{Count: int64(a.n), EstimateTotal: a.shownSum()}
	if group != "" {
		row.Group = &group
	}
	if *g = append(*g, row); len(*g) == 2*maxIssueGroups {
		*g = g.largest()
	}
}

func (g *issueGroups) addAll(all amounts) {
	for group, a := range all {
		g.add(group, a)
	}
}

// largest returns the largest groups in order.
func (g *issueGroups) largest() []IssueGroup {
	all := []IssueGroup(*g)
	slices.SortFunc(all, func(a, b IssueGroup) int {
		switch {
		case a.Count != b.Count:
			return cmp.Compare(b.Count, a.Count)
		case a.Group == nil || b.Group == nil:
			return cmp.Compare(boolInt(a.Group == nil), boolInt(b.Group == nil))
		}
		return cmp.Compare(*a.Group, *b.Group)
	})
	return slices.Clip(all[:min(len(all), maxIssueGroups)])
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// shownSum returns the sum in the form that clients get.
func (a *amount) shownSum() int64 {
	if a.hi > 0 || a.sum > maxEstimateTotal {
		return maxEstimateTotal
	}
	return int64(a.sum)
}
