package actors

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
)

// must runs an operation as the owner of the hall.
func (v *visitedWorkspace) must(op *tracker.Op, in any) []byte {
	v.t.Helper()
	reply, err := v.engine.Do(v.admitted(v.hall.id, v.hall.credential, op), op, in)
	if err != nil {
		v.t.Fatalf("%s: %v", op.Name, err)
	}
	return reply.Body
}

// team creates a team in the hall.
func (v *visitedWorkspace) team(key string, public bool) tracker.TeamID {
	v.t.Helper()
	return decodeBody[tracker.Team](v.t, v.must(tracker.CreateTeam, &tracker.CreateTeamIn{Name: key, Key: key, IsPublic: tracker.Some(public)})).ID
}

// issue creates an issue of a team, and returns its id.
func (v *visitedWorkspace) issue(title string, team tracker.TeamID) string {
	v.t.Helper()
	in := &tracker.CreateIssueIn{Title: title, IssueFields: tracker.IssueFields{TeamID: tracker.Some(team)}}
	return string(decodeBody[tracker.Issue](v.t, v.must(tracker.CreateIssue, in)).ID)
}

// demote makes the visitor a member, who sees no private team but its own.
func (v *visitedWorkspace) demote() {
	v.t.Helper()
	v.must(tracker.PatchMember, &tracker.PatchMemberIn{UserID: tracker.UserID(v.visitor.user), Role: tracker.RoleMember})
}

// stream prepares a stream of all events in the hall.
func (v *visitedWorkspace) stream(credential string) tracker.Stream {
	v.t.Helper()
	req := v.admitted(v.hall.id, credential, tracker.ListEvents)
	s, err := v.engine.Listen(req, tracker.ListEvents, &tracker.ListEventsIn{After: tracker.Some(int64(0))})
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(s.Leave)
	return s
}

// atBarrier runs f at the n-th read barrier from now on.
func (v *visitedWorkspace) atBarrier(n int, f func()) {
	hook := func() {
		if n--; n == 0 {
			v.local.onBarrier.Store(nil)
			f()
		}
	}
	v.local.onBarrier.Store(&hook)
}

// The rights in a workspace end at once for its streams, also for those whose credential another
// node keeps.
func TestFeed_VisitorsLoseRightsAtOnce(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		lose func(*visitedWorkspace, tracker.TeamID)
		ends bool
	}{
		{name: "a member that is removed", ends: true, lose: func(v *visitedWorkspace, _ tracker.TeamID) {
			v.must(tracker.RemoveMember, &tracker.MemberIn{UserID: tracker.UserID(v.visitor.user)})
		}},
		{name: "a team that turns private", lose: func(v *visitedWorkspace, team tracker.TeamID) {
			v.must(tracker.PatchTeam, &tracker.PatchTeamIn{ID: team, IsPublic: tracker.Some(false)})
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				home := &homeNode{}
				v := visit(t, home)
				v.demote()
				team := v.team("SEC", true)
				a := v.listen(0)
				pass(2 * time.Second)
				v.happen(1) // the home is asked about the visitor
				pass(100 * time.Millisecond)
				asked := home.calls.Load()
				row.lose(v, team)
				v.issue("Hidden", team)
				pass(remoteFresh / 2)
				synctest.Wait()
				if _, text := a.came(); strings.Contains(text, "Hidden") || a.heard() != "1 " {
					t.Errorf("after its rights had ended the visitor heard %q:\n%s", a.heard(), text)
				}
				if ended := a.ended > 0; ended != row.ends {
					t.Errorf("the stream was ended: %t", ended)
				}
				if n := home.calls.Load() - asked; n > 0 {
					t.Errorf("the home was asked %d times about rights in another workspace", n)
				}
			})
		})
	}
}

// An event that is written after its listener's rights have ended is not sent, even if a round had
// looked at the rights before.
func TestFeed_RightsAreAsRecentAsEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, &homeNode{})
		v.local.gain(t, v.engine) // the visitor's home, too
		v.demote()
		team := v.team("SEC", true)
		a := v.listen(0)
		v.stream(v.hall.credential).Start(&recordingListener{})
		pass(2 * time.Second)
		synctest.Wait()
		changed := false
		// A round looks at its own shard, at those of the visitor, and at that of the hall's owner.
		v.atBarrier(4, func() {
			v.must(tracker.PatchTeam, &tracker.PatchTeamIn{ID: team, IsPublic: tracker.Some(false)})
			v.issue("Hidden", team)
			changed = true
		})
		pass(2 * feedTick)
		synctest.Wait()
		if _, text := a.came(); !changed || strings.Contains(text, "Hidden") {
			t.Errorf("rights changed: %t; the visitor heard:\n%s", changed, text)
		}
	})
}

// Rights that begin after the events of a round show nothing that was hidden before they began.
func TestFeed_RightsAreNoMoreRecentThanEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, &homeNode{})
		v.local.gain(t, v.engine) // the visitor's home, too
		v.demote()
		team, other := v.team("SEC", false), v.team("OTHER", false)
		id := v.issue("Hidden", team)
		s, a, changed := v.stream(v.visitor.credential), &recordingListener{}, false
		v.atBarrier(2, func() { // the round has its snapshot, and looks at the visitor
			v.must(tracker.PatchIssue, &tracker.PatchIssueIn{ID: id, IssuePatch: tracker.IssuePatch{IssueFields: tracker.IssueFields{TeamID: tracker.Some(other)}}})
			v.must(tracker.PutTeamMember, &tracker.TeamMemberIn{ID: team, UserID: tracker.UserID(v.visitor.user)})
			changed = true
		})
		s.Start(a)
		pass(2 * feedTick)
		synctest.Wait()
		if _, text := a.came(); !changed || strings.Contains(text, "Hidden") {
			t.Errorf("rights changed: %t; the visitor heard:\n%s", changed, text)
		}
	})
}

// A credential ends at its time for its streams, also where another node's answer about it is used.
func TestFeed_VisitorsCredentialsExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		home := &homeNode{}
		v := visit(t, home)
		p := decodeBody[tracker.Principal](t, home.principal)
		p.Expires = v.engine.now().Add(2500 * time.Millisecond)
		var err error
		if home.principal, err = json.Marshal(p); err != nil {
			t.Fatal(err)
		}
		a := v.listen(0)
		pass(2 * time.Second)
		v.happen(1) // the home is asked about the visitor
		pass(600 * time.Millisecond)
		v.happen(1)
		pass(feedPause)
		synctest.Wait()
		if got := a.heard(); got != "1 " || a.ended == 0 {
			t.Errorf("heard %q, ended %d times", got, a.ended)
		}
	})
}
