package actors

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/processors"
)

// ask starts a query for the visitor to the hall, who is admitted before ask returns.
func (v *visitedWorkspace) ask(op *tracker.Op, in any) (run func() (string, error)) {
	v.t.Helper()
	req := v.admitted(v.hall.id, v.visitor.credential, op)
	return func() (string, error) {
		reply, err := v.engine.Do(req, op, in)
		return string(reply.Body), err
	}
}

// A query shows nothing by rights that ended after its caller was admitted.
func TestQuery_GoesByPresentRights(t *testing.T) {
	t.Parallel()
	remove := func(v *visitedWorkspace, _ tracker.TeamID) {
		v.must(tracker.RemoveMember, &tracker.MemberIn{UserID: tracker.UserID(v.visitor.user)})
	}
	hide := func(v *visitedWorkspace, team tracker.TeamID) {
		v.must(tracker.PatchTeam, &tracker.PatchTeamIn{ID: team, IsPublic: tracker.Some(false)})
	}
	for _, row := range []struct {
		name   string
		op     *tracker.Op
		in     func(issue string) any
		lose   func(*visitedWorkspace, tracker.TeamID)
		remote bool // another node keeps the credential
		moved  bool // another node has had the shard meanwhile
		code   tracker.Code
	}{
		{name: "a list of a former member", op: tracker.ListIssues, lose: remove, code: tracker.CodeNotFound},
		{name: "a list without a team", op: tracker.ListIssues, lose: hide},
		{name: "a list of another node's member", op: tracker.ListIssues, lose: remove, remote: true, code: tracker.CodeNotFound},
		{name: "a list without a team for another node's member", op: tracker.ListIssues, lose: hide, remote: true},
		{name: "a snapshot", op: tracker.IssueHistory, lose: hide, code: tracker.CodeNotFound, in: func(issue string) any { return &tracker.IssueHistoryIn{ID: issue} }},
		{name: "a look-up", op: tracker.IssueByID, lose: hide, code: tracker.CodeNotFound, in: func(issue string) any { return &tracker.IssueByIDIn{ID: issue} }},
		{name: "a look-up in a later epoch", op: tracker.IssueByID, lose: hide, moved: true, code: tracker.CodeNotFound, in: func(issue string) any { return &tracker.IssueByIDIn{ID: issue} }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			home := &homeNode{}
			v := visit(t, home)
			if !row.remote {
				v.local.gain(t, v.engine) // the visitor's home, too
			}
			v.demote()
			team := v.team("SEC", true)
			issue := v.issue("Hidden", team)
			var in any = &tracker.ListIssuesIn{}
			if row.in != nil {
				in = row.in(issue)
			}
			run := v.ask(row.op, in)
			asked := home.calls.Load()
			generation := v.engine.generations.of(v.hall.id)
			before := generation.Load()
			row.lose(v, team)
			if row.moved {
				v.local.lose(v.engine, v.engine.shardOf(v.hall.id).number)
				v.local.gain(t, v.engine)
				generation.Store(before) // the other node has counted the change
			}
			text, err := run()
			var failure *tracker.Error
			if row.code != "" && (!errors.As(err, &failure) || failure.Code != row.code) || row.code == "" && err != nil {
				t.Errorf("error %v, want %q", err, row.code)
			}
			if strings.Contains(text, "Hidden") {
				t.Errorf("answered %s", text)
			}
			if n := home.calls.Load() - asked; n > 0 {
				t.Errorf("the home was asked %d times about rights in another workspace", n)
			}
		})
	}
}

// A heavy query that has waited for its turn goes by the rights at that time.
func TestQuery_RightsEndWhileItWaitsForATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, &homeNode{})
		v.demote()
		in := &heavyIn{Ran: make(chan int, processors.Count()), Leave: make(chan struct{})}
		for range processors.Count() {
			go func() {
				if _, err := v.engine.Do(request(v.hall.id), heavyQuery, in); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		run, answered := v.ask(tracker.ListIssues, &tracker.ListIssuesIn{}), make(chan error, 1)
		go func() {
			_, err := run()
			answered <- err
		}()
		pass(5 * time.Second)
		v.must(tracker.RemoveMember, &tracker.MemberIn{UserID: tracker.UserID(v.visitor.user)})
		close(in.Leave)
		wantCode(t, <-answered, tracker.CodeNotFound)
	})
}
