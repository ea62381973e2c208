package tracker

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
)

// A refused child is told as every other fault of a request.
func TestSpawnSession_NamesTheFault(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	spawn := func(id SessionID) (SessionID, error) {
		reply, err := f.try(f.admin, SpawnSession, &SpawnSessionIn{ID: id, Title: "Part"})
		if err != nil {
			return "", err
		}
		return decode[SpawnedSession](t, reply.Body).Session.ID, nil
	}
	wantFault := func(err error, hint string) {
		t.Helper()
		wantCode(t, err, CodeBadRequest, "")
		var e *Error
		if errors.As(err, &e); e.Hint != hint {
			t.Errorf("the hint is %q, want %q", e.Hint, hint)
		}
		if d, ok := e.Details.(BadRequestDetails); !ok || len(d.Issues) != 1 || d.Issues[0].Message != e.Message {
			t.Errorf("%q has the details %+v", e.Message, e.Details)
		}
	}
	issue := f.work(PriorityLow).ID
	top := f.dispatch(issue, DispatchIssueIn{}).ID
	id := top
	var err error
	for range maxSessionDepth {
		if id, err = spawn(id); err != nil {
			t.Fatal(err)
		}
	}
	_, err = spawn(id)
	wantFault(err, "Do the work in this session, or spawn from one further up.")
	f.run(f.admin, CancelSession, &CancelSessionIn{ID: top})
	_, err = spawn(top)
	wantFault(err, "Only a session that has not ended can have further children.")
	f.run(f.admin, DeleteIssue, &DeleteIssueIn{ID: string(issue)})
	_, err = spawn(top)
	wantCode(t, err, CodeNotFound)
	f.verify()
}

func TestListSessionChildren_InPagesNewestFirst(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.dispatch(f.work(PriorityHigh).ID, DispatchIssueIn{})
	parent := f.claimOne()
	lane := parent.LaneToken
	var spawned []SessionID
	for range 5 {
		child := decode[SpawnedSession](f, f.run(lane, SpawnSession, &SpawnSessionIn{ID: parent.Session.ID, Title: "Part"}).Body)
		spawned = append(spawned, child.Session.ID)
	}
	slices.Reverse(spawned)
	for _, i := range []int{1, 3} {
		if err := f.report(f.admin, spawned[i], SessionCanceled); err != nil {
			t.Fatal(err)
		}
	}
	list := func(credential string, in ListSessionChildrenIn) (got []SessionID) {
		t.Helper()
		in.ID = parent.Session.ID
		for {
			page := decode[SessionPage](f, f.run(credential, ListSessionChildren, &in).Body)
			for _, s := range page.Sessions {
				got = append(got, s.ID)
			}
			if page.NextCursor == "" {
				return got
			}
			in.Cursor = Some(page.NextCursor)
		}
	}
	for _, credential := range []string{f.admin, lane} {
		for limit := range 6 {
			if got := list(credential, ListSessionChildrenIn{Limit: limit}); !slices.Equal(got, spawned) {
				t.Errorf("by %d: %v, want %v", limit, got, spawned)
			}
		}
		if got := list(credential, ListSessionChildrenIn{Status: Some(SessionCanceled), Limit: 1}); !slices.Equal(got, []SessionID{spawned[1], spawned[3]}) {
			t.Errorf("canceled: %v of %v", got, spawned)
		}
		if got := list(credential, ListSessionChildrenIn{Status: Some(SessionCreated), Summary: "1"}); !slices.Equal(got, []SessionID{spawned[0], spawned[2], spawned[4]}) {
			t.Errorf("created: %v of %v", got, spawned)
		}
		if got := list(credential, ListSessionChildrenIn{Status: Some(SessionRunning)}); got != nil {
			t.Errorf("running: %v", got)
		}
	}
	// A cursor is valid for its own query only.
	page := decode[SessionPage](f, f.run(lane, ListSessionChildren, &ListSessionChildrenIn{ID: parent.Session.ID, Limit: 1}).Body)
	_, err := f.try(f.admin, ListSessionChildren, &ListSessionChildrenIn{ID: spawned[0], Cursor: Some(page.NextCursor)})
	wantCode(t, err, CodeBadRequest, "query.cursor")
	// The lane lists its children, but can't read them or their children.
	for op, in := range map[*Op]any{
		ListSessionChildren: &ListSessionChildrenIn{ID: spawned[0]}, SessionByID: &SessionByIDIn{ID: spawned[0]}, OpenTools: &OpenToolsIn{ID: spawned[0]},
	} {
		_, err := f.try(lane, op, in)
		wantCode(t, err, CodeForbidden)
	}
	f.verify()
}

func TestListSessionChildren_OfHiddenIssuesAreNotListed(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := f.dispatch(f.work(PriorityHigh).ID, DispatchIssueIn{})
	child := decode[SpawnedSession](f, f.run(f.admin, SpawnSession, &SpawnSessionIn{ID: s.ID, Title: "Part"}).Body)
	private := f.team(f.admin, f.home.Workspace.ID, &CreateTeamIn{Name: "Private", Key: "PRV", IsPublic: Some(false)})
	f.run(f.admin, PatchIssue, &PatchIssueIn{ID: string(child.Issue.ID), IssuePatch: IssuePatch{IssueFields: IssueFields{TeamID: Some(private.ID)}}})
	_, outsider := f.member(f.home, RoleMember, "write")
	for credential, want := range map[string]int{f.admin: 1, outsider: 0} {
		if page := decode[SessionPage](f, f.run(credential, ListSessionChildren, &ListSessionChildrenIn{ID: s.ID}).Body); len(page.Sessions) != want {
			t.Errorf("%d sessions are listed, want %d", len(page.Sessions), want)
		}
	}
}

func TestOpenTools_AnswersForWhoeverMayUseThem(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue := f.work(PriorityHigh)
	f.dispatch(issue.ID, DispatchIssueIn{})
	got := f.claimOne()
	lane := got.LaneToken
	other := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	scope := func(credential string) ToolScope {
		t.Helper()
		s, err := ReadToolScope(f.run(credential, OpenTools, &OpenToolsIn{ID: got.Session.ID}))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, credential := range []string{lane, f.admin} {
		if s := scope(credential); s.IssueID != issue.ID || s.Ended {
			t.Errorf("the tools are about %+v", s)
		}
	}
	_, err := f.try(lane, OpenTools, &OpenToolsIn{ID: other.ID})
	wantCode(t, err, CodeForbidden)
	for _, id := range []SessionID{"x", SessionID(issue.ID)} {
		_, err := f.try(f.admin, OpenTools, &OpenToolsIn{ID: id})
		wantCode(t, err, CodeNotFound)
	}
	if err := f.report(lane, got.Session.ID, SessionCompleted); err != nil {
		t.Fatal(err)
	}
	if s := scope(lane); !s.Ended {
		t.Errorf("at the end the tools are about %+v", s)
	}
}

// The fields behind lastStateHash are in GET of a session, not in polls and the answer to a new child.
func TestPolledPart_EndsWithTheStateHash(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.dispatch(f.work(PriorityHigh).ID, DispatchIssueIn{SessionOptions: SessionOptions{ConcurrencyKeys: Some([]string{"repo"})}})
	s := f.claimOne().Session
	keysOf := func(body []byte) (names []string) {
		for name := range decode[map[string]json.RawMessage](t, body) {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	shown := f.run(f.admin, SessionByID, &SessionByIDIn{ID: s.ID}).Body
	polled := f.run(f.admin, PollSession, &PollSessionIn{ID: s.ID}).Body
	child := decode[map[string]json.RawMessage](t, f.run(f.admin, SpawnSession, &SpawnSessionIn{ID: s.ID, Title: "Part"}).Body)
	if got := decode[ShownSession](t, shown); !slices.Equal(got.ConcurrencyKeys, []string{"repo"}) {
		t.Fatalf("got %s", shown)
	}
	want := keysOf(child["session"])
	if got := keysOf(polled); !slices.Equal(slices.DeleteFunc(got, func(name string) bool { return name == "budget" }), want) {
		t.Errorf("a poll has %v, a new child %v", got, want)
	}
	for _, name := range []string{"concurrencyKeys", "notBefore", "whenReady", "retry", "derivedStatus"} {
		if slices.Contains(want, name) || !slices.Contains(keysOf(shown), name) {
			t.Errorf("%s is in %v, or not in %v", name, want, keysOf(shown))
		}
	}
	if !slices.Contains(want, "lastStateHash") || !slices.Contains(want, "activities") {
		t.Errorf("got %v", want)
	}
}
