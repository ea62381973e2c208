package actors

import (
	"encoding/json"
	"testing"

	"switchyard/actors/tracker"
)

// run runs an operation in a workspace with a credential.
func (b *testEngine) run(o onboarded, credential string, op *tracker.Op, in any, out any) {
	b.t.Helper()
	reply, err := b.engine.Do(b.admitted(o.id, credential, op), op, in)
	if err != nil {
		b.t.Fatal(err)
	}
	if out != nil {
		if err := json.Unmarshal(reply.Body, out); err != nil {
			b.t.Fatal(err)
		}
	}
}

// lane registers a session and returns its lane token.
func (b *testEngine) lane(o onboarded, credential string) string {
	b.t.Helper()
	var issue tracker.Issue
	b.run(o, o.credential, tracker.CreateIssue, &tracker.CreateIssueIn{Title: "Work"}, &issue)
	var s tracker.RegisteredSession
	b.run(o, credential, tracker.RegisterSession, &tracker.RegisterSessionIn{IssueID: string(issue.ID), Provider: "p", Status: tracker.SessionRunning}, &s)
	return *s.LaneToken
}

// A cached lane is refused from the commit on that ends its maker's credential, also if
// another workspace stores that credential.
func TestAdmit_LaneEndsWithItsMaker(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.OpenOnboarding = true })
	mine, abroad := b.onboard("mine"), b.onboard("abroad")
	b.run(mine, mine.credential, tracker.AddMember, &tracker.AddMemberIn{UserID: tracker.Some(tracker.UserID(abroad.user)), Role: tracker.RoleAdmin}, nil)
	for name, from := range map[string]onboarded{"kept in the workspace": mine, "kept elsewhere": abroad} {
		made := b.token(from, "write")
		first, second := b.lane(mine, made.Secret), b.lane(mine, made.Secret)
		found := b.engine.Stats().CallersFound
		for range 3 {
			b.admitted(mine.id, first, tracker.Heartbeat)
			b.admitted(mine.id, second, tracker.Heartbeat)
		}
		if n := b.engine.Stats().CallersFound - found; n < 4 {
			t.Errorf("%s: a lane was found remembered %d times of 6", name, n)
		}
		b.deleteToken(from, made.ID)
		for _, lane := range []string{first, second} {
			_, err := b.admit(mine.id, lane, tracker.Heartbeat)
			wantCode(t, err, tracker.CodeUnauthorized)
		}
	}
	lane := b.lane(mine, abroad.credential)
	b.admitted(mine.id, lane, tracker.Heartbeat)
	b.run(mine, mine.credential, tracker.RemoveMember, &tracker.MemberIn{UserID: tracker.UserID(abroad.user)}, nil)
	_, err := b.admit(mine.id, lane, tracker.Heartbeat)
	wantCode(t, err, tracker.CodeUnauthorized)
}

// The operator's lanes end when there is no operator's token any more.
func TestAdmit_LaneOfTheOperator(t *testing.T) {
	t.Parallel()
	const root = "a root token of some length"
	b := setup(t, func(c *Config) { c.OpenOnboarding, c.RootToken = true, root })
	mine := b.onboard("mine")
	lane := b.lane(mine, root)
	b.admitted(mine.id, lane, tracker.Heartbeat)
	if err := b.engine.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.start(func(c *Config) { c.OpenOnboarding = true })
	_, err := b.admit(mine.id, lane, tracker.Heartbeat)
	wantCode(t, err, tracker.CodeUnauthorized)
}
