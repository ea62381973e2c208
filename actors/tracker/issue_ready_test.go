package tracker

import (
	"slices"
	"testing"
	"time"
)

// An issue is ready by its own fields, its blockers and its sessions together.
func TestListIssues_ReadyAndBlocked(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	soon := Some(string(At(w.now.Add(time.Hour))))
	with := func(title string, f IssueFields) IssueID {
		return w.create(CreateIssueIn{Title: title, IssueFields: f}).ID
	}
	var blocked, busy IssueID
	for _, status := range issueStatuses {
		with(string(status), IssueFields{Status: Some(status)})
	}
	with("draft", IssueFields{IsDraft: Some(true)})
	with("snoozed", IssueFields{SnoozedUntil: soon})
	blocked, busy = with("blocked", IssueFields{}), with("busy", IssueFields{Status: Some(StatusTodo)})
	closed := with("blocked and closed", IssueFields{Status: Some(StatusDone)})
	hidden := with("hidden", IssueFields{TeamID: Some(w.secret)})
	w.relate(hidden, RelationBlocks, blocked)
	w.relate(blocked, RelationBlocks, closed)
	first := decode[DispatchedSession](t, w.run(&w.ann, DispatchIssue, &DispatchIssueIn{ID: string(busy)}).Body)
	second := decode[DispatchedSession](t, w.run(&w.ann, DispatchIssue, &DispatchIssueIn{ID: string(busy), AgentID: Some("other")}).Body)
	lists := func(what string, who *Caller, f IssueFilter, want ...string) {
		t.Helper()
		if got := titles(w.list(who, ListIssuesIn{Limit: 100, IssueFilter: f}).Issues); !slices.Equal(got, want) {
			t.Errorf("%s, %s: %q, want %q", who.ID, what, got, want)
		}
	}
	for _, sets := range []bool{false, true} {
		if sets {
			w.buildSets()
		}
		lists("ready", &w.ann, IssueFilter{Ready: Some(true)}, "hidden", "in_progress", "todo", "backlog")
		lists("ready", &w.gus, IssueFilter{Ready: Some(true)}, "in_progress", "todo", "backlog")
		lists("ready with snoozed", &w.ann, IssueFilter{Ready: Some(true), IncludeSnoozed: Some(true)}, "hidden", "in_progress", "todo", "backlog")
		lists("ready in backlog", &w.gus, IssueFilter{Ready: Some(true), Status: Some(StatusBacklog)}, "backlog")
		lists("ready and done", &w.gus, IssueFilter{Ready: Some(true), Status: Some(StatusDone)})
		lists("not ready", &w.gus, IssueFilter{Ready: Some(false)}, "blocked and closed", "busy", "blocked", "draft", "canceled", "done", "triage")
		lists("not ready, with snoozed", &w.ann, IssueFilter{Ready: Some(false), IncludeSnoozed: Some(true)}, "blocked and closed", "busy", "blocked", "snoozed", "draft", "canceled", "done", "triage")
		lists("blocked", &w.gus, IssueFilter{Blocked: Some(true)}, "blocked and closed", "blocked")
		lists("not blocked", &w.gus, IssueFilter{Blocked: Some(false), View: Some("active")}, "busy", "in_progress", "todo")
		lists("blocked and ready", &w.ann, IssueFilter{Blocked: Some(true), Ready: Some(true)})
	}
	w.run(&w.ann, CancelSession, &CancelSessionIn{ID: first.ID})
	lists("with one session left", &w.gus, IssueFilter{Ready: Some(true)}, "in_progress", "todo", "backlog")
	w.run(&w.ann, CancelSession, &CancelSessionIn{ID: second.ID})
	w.patch(hidden, setStatus(StatusDone))
	w.now = w.now.Add(2 * time.Hour)
	lists("later", &w.ann, IssueFilter{Ready: Some(true)}, "busy", "blocked", "snoozed", "in_progress", "todo", "backlog")
}
