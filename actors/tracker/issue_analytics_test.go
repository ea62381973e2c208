package tracker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchyard/storage"
)

// analyticsModel is a simple model of the present and past state of issues.
type analyticsModel struct {
	*issueFixture
	all []*analyzed
}

// analyzed is an issue; empty texts stand for null.
type analyzed struct {
	id                       IssueID
	team                     TeamID
	status                   IssueStatus
	priority                 IssuePriority
	assignee, project, cycle string
	estimate                 int64
	draft, restricted        bool
	past                     map[string]map[int64]burndownState // cycle -> day -> state at its end
}

func (t *analyzed) group(by string) string {
	return map[string]string{
		"status": string(t.status), "priority": string(t.priority), "teamId": string(t.team),
		"assigneeId": t.assignee, "projectId": t.project, "cycleId": t.cycle,
	}[by]
}

// at returns the state in a cycle at the end of a day.
func (t *analyzed) at(cycle string, day int64) (state burndownState) {
	latest := int64(-1)
	for d, s := range t.past[cycle] {
		if d <= day && d > latest {
			latest, state = d, s
		}
	}
	return state
}

// note records the present state of an issue.
func (m *analyticsModel) note(t *analyzed) {
	for _, cycle := range []string{"c1", "c2", "c3"} {
		state := burndownOut
		if t.cycle == cycle && !t.draft {
			state = burndownOpen
			if t.status.Closed() {
				state = burndownClosed
			}
		}
		if t.past[cycle] == nil {
			t.past[cycle] = map[int64]burndownState{}
		}
		t.past[cycle][burndownDay(m.now)] = state
	}
}

func (m *analyticsModel) apply(t *analyzed, f *IssueFields) {
	t.team = f.TeamID.Or(t.team)
	t.status = f.Status.Or(t.status)
	t.priority = f.Priority.Or(t.priority)
	t.draft = f.IsDraft.Or(t.draft)
	if f.Estimate.Set {
		t.estimate = f.Estimate.Or(0)
	}
	for _, field := range []struct {
		to   *string
		from Opt[string]
	}{{&t.assignee, f.AssigneeID}, {&t.project, f.ProjectID}, {&t.cycle, f.CycleID}} {
		if field.from.Set {
			*field.to = field.from.Or("")
		}
	}
	m.note(t)
}

func (m *analyticsModel) draw(t *rapid.T) IssueFields {
	return IssueFields{
		TeamID:     drawOpt(t, "team", rapid.SampledFrom([]TeamID{m.core, m.web, m.secret}), false),
		Status:     drawOpt(t, "status", rapid.SampledFrom(issueStatuses[:]), false),
		Priority:   drawOpt(t, "priority", rapid.SampledFrom(issuePriorities[:]), false),
		IsDraft:    drawOpt(t, "draft", rapid.Bool(), false),
		AssigneeID: drawOpt(t, "assignee", rapid.SampledFrom([]string{"ann", "a\x00b", "a\x00", "a\x01", "gus"}), true),
		ProjectID:  drawOpt(t, "project", rapid.SampledFrom([]string{"p1", "p2"}), true),
		CycleID:    drawOpt(t, "cycle", rapid.SampledFrom([]string{"c1", "c2", "c3"}), true),
		Estimate:   drawOpt(t, "estimate", rapid.SampledFrom([]int64{0, 1, 5, maxEstimateTotal}), true),
	}
}

func (m *analyticsModel) some(t *rapid.T) *analyzed {
	if len(m.all) == 0 {
		return nil
	}
	return rapid.SampledFrom(m.all).Draw(t, "issue")
}

// do runs a command in the open batch.
func (m *analyticsModel) do(t *rapid.T, op *Op, in any) Reply {
	reply, err := m.buffer.Run(op, m.request(&m.ann), in, m.now)
	if err != nil {
		t.Fatalf("%s: %v", op.Name, err)
	}
	return reply
}

func (m *analyticsModel) create(t *rapid.T) {
	f := m.draw(t)
	created := decode[Issue](t, m.do(t, CreateIssue, &CreateIssueIn{Title: "t", IssueFields: f}).Body)
	next := &analyzed{id: created.ID, team: m.core, status: StatusBacklog, priority: PriorityMedium, past: map[string]map[int64]burndownState{}}
	m.apply(next, &f)
	m.all = append(m.all, next)
}

func (m *analyticsModel) restrict(t *rapid.T, issue *analyzed, on bool) {
	if issue.restricted == on {
		return
	}
	if on {
		m.do(t, PutAccessGrant, &PutAccessGrantIn{ID: string(issue.id), ActorID: "nobody"})
	} else {
		m.do(t, RemoveAccessGrant, &AccessGrantIn{ID: string(issue.id), ActorID: "nobody"})
	}
	issue.restricted = on
}

// fails runs a command that changes much and then fails.
func (m *analyticsModel) fails(t *rapid.T) {
	f, g, victim := m.draw(t), m.draw(t), m.some(t)
	late := errors.New("late")
	op := NewCommand[None, None]("fails", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		if _, err := createIssue(tx, &CreateIssueIn{Title: "t", IssueFields: f}); err != nil {
			return Reply{}, err
		}
		if victim != nil {
			if _, err := patchIssue(tx, patchIn(victim.id, "", IssuePatch{IssueFields: g})); err != nil {
				return Reply{}, err
			}
			if _, err := deleteIssue(tx, &DeleteIssueIn{ID: string(victim.id)}); err != nil {
				return Reply{}, err
			}
		}
		return Reply{}, late
	})
	if _, err := m.buffer.Run(op, m.request(&m.ann), &None{}, m.now); !errors.Is(err, late) {
		t.Fatalf("got %v", err)
	}
}

// seen returns the issues that a caller sees, found by reading them one by one.
func (m *analyticsModel) seen(t *rapid.T, who *Caller) (seen []*analyzed) {
	for _, issue := range m.all {
		_, err := m.ask(who, IssueByID, &IssueByIDIn{ID: string(issue.id)})
		var failure *Error
		switch {
		case err == nil:
			seen = append(seen, issue)
		case !errors.As(err, &failure) || failure.Code != CodeNotFound:
			t.Fatal(err)
		}
	}
	return seen
}

func (m *analyticsModel) groups(t *rapid.T, who *Caller) {
	seen := m.seen(t, who)
	for _, by := range []string{"", "status", "priority", "assigneeId", "teamId", "projectId", "cycleId"} {
		reply, err := m.ask(who, IssueAnalytics, &IssueAnalyticsIn{GroupBy: by})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]*IssueGroup{}
		for _, issue := range seen {
			if issue.draft {
				continue
			}
			group := issue.group(by)
			if by == "" {
				group = string(issue.status)
			}
			if want[group] == nil {
				want[group] = &IssueGroup{}
			}
			want[group].Count++
			want[group].EstimateTotal = min(want[group].EstimateTotal+issue.estimate, maxEstimateTotal)
		}
		var lines []string
		for group, g := range want {
			// The lines sort by count, largest first, then by group, null last.
			lines = append(lines, fmt.Sprintf("%09d %t %q %d %d", 1e6-g.Count, group == "", group, g.Count, g.EstimateTotal))
		}
		slices.Sort(lines)
		var got []string
		for _, g := range decode[IssueGroups](t, reply.Body).Groups {
			group := ""
			if g.Group != nil {
				group = *g.Group
			}
			got = append(got, fmt.Sprintf("%09d %t %q %d %d", 1e6-g.Count, g.Group == nil, group, g.Count, g.EstimateTotal))
		}
		if !slices.Equal(got, lines) {
			t.Fatalf("%s sees by %q\n%s\nwant\n%s", who.ID, by, strings.Join(got, "\n"), strings.Join(lines, "\n"))
		}
	}
}

func (m *analyticsModel) burndowns(t *rapid.T, who *Caller) {
	seen := m.seen(t, who)
	today := burndownDay(m.now)
	for _, cycle := range []string{"c1", "c2", "c3", "none"} {
		reply, err := m.ask(who, Burndown, &BurndownIn{CycleID: cycle})
		if err != nil {
			t.Fatal(err)
		}
		want := BurndownSeries{Series: []BurndownDate{}}
		first := today + 1
		for _, issue := range seen {
			if issue.cycle == cycle && !issue.draft {
				want.Total++
				want.TotalEstimate = min(want.TotalEstimate+issue.estimate, maxEstimateTotal)
			}
			for day := range issue.past[cycle] {
				if issue.at(cycle, day) != burndownOut {
					first = min(first, day)
				}
			}
		}
		for day := first; day <= today; day++ {
			on := BurndownDate{Date: time.Unix(day*86400, 0).UTC().Format(time.DateOnly)}
			for _, issue := range seen {
				switch issue.at(cycle, day) {
				case burndownOpen:
					on.Remaining++
					on.Scope++
				case burndownClosed:
					on.Scope++
				}
			}
			want.Series = append(want.Series, on)
		}
		if got := decode[BurndownSeries](t, reply.Body); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%s sees of %s\n%v\nwant\n%v", who.ID, cycle, got, want)
		}
	}
}

// verifyAll is like verify, with the rows that other files declare.
func (w *issueFixture) verifyAll() {
	w.Helper()
	schema := Schema()
	schema.CheckStore = nil
	schemas := []*storage.Schema{schema}
	extra := &storage.Schema{Rows: []storage.RowSpec{{ID: restrictedTable, Name: "restricted issue"}}}
	if _, err := storage.Describe(schema, extra); err == nil {
		schemas = append(schemas, extra)
	}
	report, err := storage.Verify(context.Background(), w.db, schemas...)
	if err != nil {
		w.Fatal(err)
	}
	for _, p := range report.Problems {
		w.Errorf("verify: %v", p)
	}
}

func TestIssueAnalytics_Model(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &analyticsModel{issueFixture: newIssueFixture(t)}
		for range 5 {
			m.create(t)
		}
		t.Repeat(map[string]func(*rapid.T){
			"":       func(*rapid.T) { m.now = m.now.Add(time.Millisecond) },
			"create": m.create,
			"patch": func(t *rapid.T) {
				if issue := m.some(t); issue != nil {
					f := m.draw(t)
					m.do(t, PatchIssue, patchIn(issue.id, "", IssuePatch{IssueFields: f}))
					m.apply(issue, &f)
				}
			},
			"batch": func(t *rapid.T) {
				f, ids := m.draw(t), []string{}
				for _, issue := range m.all {
					if rapid.Bool().Draw(t, "in") {
						ids = append(ids, string(issue.id))
					}
				}
				if len(ids) == 0 {
					return
				}
				m.do(t, BatchIssues, &BatchIssuesIn{IDs: ids, Patch: IssuePatch{IssueFields: f}})
				for _, issue := range m.all {
					if slices.Contains(ids, string(issue.id)) {
						m.apply(issue, &f)
					}
				}
			},
			"delete": func(t *rapid.T) {
				if issue := m.some(t); issue != nil {
					m.restrict(t, issue, false)
					m.do(t, DeleteIssue, &DeleteIssueIn{ID: string(issue.id)})
					m.all = slices.DeleteFunc(m.all, func(other *analyzed) bool { return other == issue })
				}
			},
			"restrict": func(t *rapid.T) {
				if issue := m.some(t); issue != nil {
					m.restrict(t, issue, rapid.Bool().Draw(t, "on"))
				}
			},
			"fail":   m.fails,
			"commit": func(*rapid.T) { m.commit() },
			"days": func(t *rapid.T) {
				m.now = m.now.AddDate(0, 0, rapid.IntRange(1, 3).Draw(t, "days"))
			},
			"groups": func(t *rapid.T) {
				m.commit()
				m.groups(t, m.drawCaller(t))
			},
			"burndown": func(t *rapid.T) {
				m.commit()
				m.burndowns(t, m.drawCaller(t))
			},
		})
		m.commit()
		m.groups(t, &m.gus)
		m.burndowns(t, &m.ann)
		m.verifyAll()
	})
}

func (m *analyticsModel) drawCaller(t *rapid.T) *Caller {
	return rapid.SampledFrom([]*Caller{&m.ann, &m.gus}).Draw(t, "caller")
}
