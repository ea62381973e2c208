package actors

import (
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// sightFixture has two sessions of one agent in the queue, of issues in a private team.
type sightFixture struct {
	*workspaceFixture
	secret tracker.TeamID
	issues []tracker.IssueID
	queued []tracker.SessionID
}

func newSightFixture(t *testing.T) *sightFixture {
	y := &sightFixture{workspaceFixture: newWorkspaceFixture(t)}
	private := &tracker.CreateTeamIn{Name: "Secret", Key: "SEC", IsPublic: tracker.Some(false)}
	y.secret = decodeBody[tracker.Team](t, y.must(tracker.CreateTeam, private).Body).ID
	for range 2 {
		in := &tracker.CreateIssueIn{Title: "Work", IssueFields: tracker.IssueFields{TeamID: tracker.Some(y.secret)}}
		id := decodeBody[tracker.Issue](t, y.must(tracker.CreateIssue, in).Body).ID
		y.issues = append(y.issues, id)
		dispatch := &tracker.DispatchIssueIn{ID: string(id), AgentID: tracker.Some("x"), Provider: tracker.Some("p")}
		y.queued = append(y.queued, decodeBody[tracker.DispatchedSession](t, y.must(tracker.DispatchIssue, dispatch).Body).ID)
	}
	return y
}

// member adds a member and returns it with a token of its own.
func (y *sightFixture) member() (tracker.UserID, string) {
	y.t.Helper()
	m := decodeBody[tracker.Member](y.t, y.must(tracker.AddMember, &tracker.AddMemberIn{Name: tracker.Some("mel"), Role: tracker.RoleMember}).Body)
	operator := tracker.Caller{Principal: tracker.OperatorPrincipal(), Role: tracker.RoleOwner, Level: tracker.Admin}
	token, err := y.as(operator, tracker.CreateToken, &tracker.CreateTokenIn{Name: "mel's", UserID: m.UserID, Permissions: []byte(`"admin"`)})
	if err != nil {
		y.t.Fatal(err)
	}
	return m.UserID, decodeBody[tracker.CreatedToken](y.t, token.Body).Secret
}

// claimWith has a claim of the agent's sessions wait.
func (y *sightFixture) claimWith(credential string) <-chan answer {
	y.t.Helper()
	req := y.admitted(y.workspace, credential, tracker.ClaimSessions)
	req.Deadline = time.Now().Add(40 * time.Second)
	done, began := make(chan answer, 1), time.Now()
	go func() {
		in := &tracker.ClaimSessionsIn{AgentID: tracker.Some("x"), Provider: tracker.Some("p"), LeaseSeconds: 3600, Wait: 20}
		reply, err := y.engine.Do(req, tracker.ClaimSessions, in)
		done <- answer{reply, err, time.Since(began)}
	}()
	synctest.Wait()
	return done
}

// A claim that waits gets a session of the queue as soon as its caller may see the session.
func TestLongPoll_AClaimGetsWhatItsCallerSeesAnew(t *testing.T) {
	t.Parallel()
	for name, show := range map[string]func(y *sightFixture, who tracker.UserID){
		"the team is public": func(y *sightFixture, _ tracker.UserID) {
			y.must(tracker.PatchTeam, &tracker.PatchTeamIn{ID: y.secret, IsPublic: tracker.Some(true)})
		},
		"the caller is in the team": func(y *sightFixture, who tracker.UserID) {
			y.must(tracker.PutTeamMember, &tracker.TeamMemberIn{ID: y.secret, UserID: who})
		},
		"the caller is an admin": func(y *sightFixture, who tracker.UserID) {
			y.must(tracker.PatchMember, &tracker.PatchMemberIn{UserID: who, Role: tracker.RoleAdmin})
		},
		"the issues are in another team": func(y *sightFixture, _ tracker.UserID) {
			for _, id := range y.issues {
				patch := tracker.IssuePatch{IssueFields: tracker.IssueFields{TeamID: tracker.Some(tracker.TeamID(y.team.String()))}}
				y.must(tracker.PatchIssue, &tracker.PatchIssueIn{ID: string(id), IssuePatch: patch})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				y := newSightFixture(t)
				who, credential := y.member()
				_, other := y.member()
				blind := y.claimWith(other)
				claims := []<-chan answer{y.claimWith(credential), y.claimWith(credential)}
				pass(time.Second)
				show(y, who)
				synctest.Wait()
				got := map[tracker.SessionID]bool{}
				for _, claim := range append(claims, blind) {
					a := <-claim
					for _, s := range a.sessions(t) {
						if got[s.Session.ID] = true; a.after != time.Second {
							t.Errorf("claimed after %s", a.after)
						}
					}
				}
				if len(got) != len(y.queued) {
					t.Errorf("claimed %v, want the sessions %v", got, y.queued)
				}
			})
		})
	}
}

// A claim that is woken in vain waits on.
func TestLongPoll_AClaimThatSeesNothingNewWaitsOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		y := newSightFixture(t)
		team, _ := storage.ParseID(y.secret)
		claim := y.waiting(worker("blind", team), tracker.ClaimSessions, &tracker.ClaimSessionsIn{Wait: 20})
		pass(time.Second)
		other, _ := y.member()
		y.must(tracker.PutTeamMember, &tracker.TeamMemberIn{ID: y.secret, UserID: other})
		pass(time.Second)
		id := y.dispatch("y")
		if a := <-claim; len(a.sessions(t)) != 1 || a.sessions(t)[0].Session.ID != id || a.after != 2*time.Second {
			t.Errorf("got %s after %s, want session %s", a.reply.Body, a.after, id)
		}
	})
}
