package tracker

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestRelease(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a")})
	agent, other := f.token(f.home, &CreateTokenIn{AgentID: "a"}), f.token(f.home, &CreateTokenIn{AgentID: "b"})
	release := func(credential string, fields ReleaseFields) (ShownSession, error) {
		fields.Reason = "No quota"
		reply, err := f.try(credential, ReleaseSession, &ReleaseSessionIn{ID: s.ID, ReleaseFields: fields})
		if err != nil {
			return ShownSession{}, err
		}
		return decode[ShownSession](t, reply.Body), nil
	}
	claim := func() ClaimedSession {
		return decode[ClaimedSessions](t, f.run(agent, ClaimSessions, &ClaimSessionsIn{LeaseSeconds: 3600}).Body).Sessions[0]
	}
	_, err := release(agent, ReleaseFields{})
	wantConflict(t, err, SessionCreated, false)
	c := claim()
	for _, credential := range []string{f.admin, other} {
		_, err := release(credential, ReleaseFields{})
		wantCode(t, err, CodeForbidden)
	}
	got, err := release(c.LaneToken, ReleaseFields{RetryAfterSeconds: Some(int64(30))})
	if err != nil || got.Status != SessionCreated || got.NotBefore == nil || *got.NotBefore != At(f.now.Add(30*time.Second)) {
		t.Fatalf("%v, %s, %v", err, got.Status, got.NotBefore)
	}
	_, err = release(c.LaneToken, ReleaseFields{})
	wantConflict(t, err, SessionCreated, false)
	_, err = release(agent, ReleaseFields{NotBefore: Some(string(At(f.now.AddDate(1, 0, 1))))})
	wantCode(t, err, CodeBadRequest, "notBefore")
	f.verify()
	f.pass(30 * time.Second)
	// Releases that count use the attempts up, others don't.
	for n := range 3 {
		if c := claim(); c.Attempt != n+1 || *c.LastAttempt.End != AttemptReleased {
			t.Errorf("attempt %d after %+v", c.Attempt, c.LastAttempt)
		}
		if n == 0 {
			f.must(agent, f.home.Workspace.ID, ReportSession, &ReportSessionIn{ID: s.ID, Status: Some(SessionWaiting)})
			_, err = release(agent, ReleaseFields{})
			if err != nil {
				t.Fatal(err)
			}
			claim()
		}
		if got, err = release(agent, ReleaseFields{CountAttempt: true, NotBefore: Some("2020-01-01T00:00:00Z")}); err != nil {
			t.Fatal(err)
		}
		f.verify()
	}
	if got.Status != SessionFailed || got.DeadLetteredAt == nil {
		t.Errorf("in the end %+v", got)
	}
}

func TestReleaseSessions_EachForItself(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	for range 2 {
		f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	}
	got := f.claim(ClaimSessionsIn{Limit: 2})
	item := func(id SessionID) ReleaseItem {
		return ReleaseItem{ID: string(id), ReleaseFields: ReleaseFields{Reason: "x"}}
	}
	reply := f.run(f.admin, ReleaseSessions, &ReleaseSessionsIn{Items: []ReleaseItem{item(got[1].Session.ID), item("none"), item(got[0].Session.ID), item(got[1].Session.ID)}})
	var list []string
	for _, r := range decode[ReleasedSessions](t, reply.Body).Results {
		text := "null"
		if r.Status != nil {
			text = string(*r.Status)
		}
		list = append(list, fmt.Sprint(text, " ", r.Error != nil))
	}
	if !slices.Equal(list, []string{"created false", "null true", "created false", "null true"}) {
		t.Errorf("%s", reply.Body)
	}
	far := item(got[0].Session.ID)
	far.NotBefore = Some("2096-01-01T00:00:00Z")
	_, err := f.try(f.admin, ReleaseSessions, &ReleaseSessionsIn{Items: []ReleaseItem{item(got[1].Session.ID), far}})
	wantCode(t, err, CodeBadRequest, "items[1].notBefore")
	f.verify()
}

func TestCheckpoint_ComesWithTheNextClaim(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	read := func() (Reply, error) { return f.try(f.admin, SessionCheckpoint, &CheckpointIn{ID: s.ID}) }
	put := func(credential, value string) error {
		_, err := f.try(credential, PutCheckpoint, &PutCheckpointIn{ID: s.ID, Value: []byte(value)})
		return err
	}
	_, err := read()
	wantCode(t, err, CodeNotFound)
	wantConflict(t, put(f.admin, "1"), SessionCreated, false)
	c := f.claimOne()
	if string(c.Checkpoint) != "null" || c.LastAttempt != nil || c.Attempt != 1 || c.Predecessors == nil {
		t.Errorf("the first claim has %+v", c)
	}
	_, member := f.testService.member(f.home, RoleMember, "write")
	wantCode(t, put(member, "1"), CodeForbidden)
	for _, value := range []string{`{"step":2}`, "null", "[1]"} {
		if err := put(c.LaneToken, value); err != nil {
			t.Fatal(err)
		}
		if reply, err := read(); err != nil || string(reply.Body) != value {
			t.Errorf("%v, %s", err, reply.Body)
		}
	}
	if err := put(f.admin, `{"step":3}`); err != nil { // it holds the lease
		t.Fatal(err)
	}
	f.verify()
	f.pass(2 * time.Minute)
	wantConflict(t, put(c.LaneToken, "1"), SessionCreated, false)
	if c := f.claimOne(); string(c.Checkpoint) != `{"step":3}` || *c.LastAttempt.End != AttemptLapsed || c.Attempt != 2 {
		t.Errorf("the next claim has %s, %+v", c.Checkpoint, c.LastAttempt)
	}
	f.verify()
}
