package tracker

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func (w *testService) putLimits(id WorkspaceID, limits LimitsIn) LimitsAndUsage {
	w.Helper()
	return decode[LimitsAndUsage](w, w.must("root", id, PutLimits, &PutLimitsIn{Limits: limits}).Body)
}

func (w *testService) used(id WorkspaceID) WorkspaceUsage {
	w.Helper()
	return decode[LimitsAndUsage](w, w.must("root", id, GetLimits, &None{}).Body).Used
}

func TestLimits_CountsAreExact(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	user, org := home.Token.Secret, home.Workspace.ID
	if used := w.used(org); used.Issues != 0 || used.Sessions != 0 || used.Tokens != 1 || used.Subscriptions != 0 || used.Bytes == 0 {
		t.Errorf("a new workspace uses %+v", used)
	}
	one := Some[int64](1)
	w.putLimits(org, LimitsIn{Issues: Some[int64](2), Sessions: one, Tokens: Some[int64](2), Subscriptions: one})

	ref := &CreateIssueIn{Title: "First", IssueFields: IssueFields{ExternalRef: Some("ref")}}
	first := decode[Issue](t, w.must(user, org, CreateIssue, ref, "key").Body)
	w.must(user, org, CreateIssue, &CreateIssueIn{Title: "Second"})
	_, err := w.ask(user, org, CreateIssue, &CreateIssueIn{Title: "Third"})
	wantLimit(t, err, "issues", 2)
	if !w.must(user, org, CreateIssue, ref, "key").Replayed || w.must(user, org, CreateIssue, ref).Outcome != Done {
		t.Error("a repeat by key or externalRef makes an issue")
	}
	w.must("root", org, CreateIssue, &CreateIssueIn{Title: "The operator's"})

	dispatch := func() (string, error) {
		reply, err := w.ask(user, org, DispatchIssue, &DispatchIssueIn{ID: string(first.ID), AgentID: Some("bot")})
		if err != nil {
			return "", err
		}
		return string(decode[AgentSession](t, reply.Body).ID), nil
	}
	session, err := dispatch()
	if err != nil {
		t.Fatal(err)
	}
	_, err = dispatch()
	wantLimit(t, err, "sessions", 1)
	w.must(user, org, CancelSession, &CancelSessionIn{ID: SessionID(session)})
	if _, err := dispatch(); err != nil {
		t.Error(err)
	}

	token := decode[CreatedToken](t, w.must(user, org, CreateToken, &CreateTokenIn{Name: "x"}).Body)
	_, err = w.ask(user, org, CreateToken, &CreateTokenIn{Name: "y"})
	wantLimit(t, err, "tokens", 2)
	w.must(user, org, DeleteToken, &DeleteTokenIn{ID: token.ID})
	w.must(user, org, CreateToken, &CreateTokenIn{Name: "y"})

	w.must(user, org, CreateWebhook, &CreateWebhookIn{URL: "https://example.com/"})
	_, err = w.ask(user, org, CreateWebhook, &CreateWebhookIn{URL: "https://example.com/"})
	wantLimit(t, err, "subscriptions", 1)

	w.restart()
	if used := w.used(org); used.Issues != 3 || used.Sessions != 1 || used.Tokens != 2 || used.Subscriptions != 1 {
		t.Errorf("the workspace uses %+v", used)
	}
	w.must(user, org, DeleteIssue, &DeleteIssueIn{ID: string(first.ID)})
	if used := w.used(org); used.Issues != 2 || used.Sessions != 0 {
		t.Errorf("after a deletion the workspace uses %+v", used)
	}
	w.putLimits(org, LimitsIn{}) // the flags' again: none
	w.must(user, org, CreateIssue, &CreateIssueIn{Title: "Third"})
	w.limit(org, Limits{Issues: 3})
	_, err = w.ask(user, org, CreateIssue, &CreateIssueIn{Title: "Fourth"})
	wantLimit(t, err, "issues", 3)
	w.putLimits(org, LimitsIn{Issues: Some[int64](0), Bytes: Some[int64](0)})
	_, err = w.ask(user, org, CreateTeam, &CreateTeamIn{Name: "x", Key: "T"})
	wantLimit(t, err, "bytes", 0)
	w.verify()
}

func TestLimits_CreatesPerSecond(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	user, org := home.Token.Secret, home.Workspace.ID
	w.putLimits(org, LimitsIn{CreatesPerSecond: Some[int64](2)})
	create := func(caller string) error {
		_, err := w.ask(caller, org, CreateIssue, &CreateIssueIn{Title: "One"})
		return err
	}
	wantRate := func(err error) {
		t.Helper()
		var told *Error
		if !errors.As(err, &told) || told.Code != CodeTooManyRequests || told.RetryAfter <= 0 || told.RetryAfter > time.Second || told.Details != (LimitDetails{limitCreatesPerSecond, 2}) {
			t.Errorf("error %+v", err)
		}
	}
	for range 2 {
		if err := create(user); err != nil {
			t.Fatal(err)
		}
	}
	wantRate(create(user))
	if err := create("root"); err != nil {
		t.Error(err)
	}
	w.now = w.now.Add(500 * time.Millisecond)
	if err := create(user); err != nil {
		t.Error(err)
	}
	wantRate(create(user))
	w.now = w.now.Add(time.Hour)
	for range 2 {
		if err := create(user); err != nil {
			t.Error(err)
		}
	}
	wantRate(create(user))
}

// A workspace whose rows were not counted yet is counted in the background.
func TestLimits_CountsWhatWasThereBefore(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	user, org := home.Token.Secret, home.Workspace.ID
	for n := range 3 {
		w.must(user, org, CreateIssue, &CreateIssueIn{Title: fmt.Sprint("Issue ", n)})
	}
	uncount := NewCommand[None, None]("uncount", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		return Reply{}, tx.SetCounter(bytesTable, bytesIssues, 0)
	})
	l := w.bufferOf(org.raw())
	if _, err := l.Run(uncount, ServiceRequest("test", org.raw()), &None{}, w.now); err != nil {
		t.Fatal(err)
	}
	commitBuffer(w, w.db, l)
	w.restart()
	w.must(user, org, CreateIssue, &CreateIssueIn{Title: "One more"})
	w.pass(time.Minute)
	if used := w.used(org); used.Issues != 4 {
		t.Errorf("the workspace uses %+v", used)
	}
	w.verify()
}

// Each item of a batch is dispatched or not by itself, also where the workspace has no room for
// all of them.
func TestLimits_SessionsOfABatch(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	user, org := home.Token.Secret, home.Workspace.ID
	issue := decode[Issue](t, w.must(user, org, CreateIssue, &CreateIssueIn{Title: "Work"}).Body)
	w.putLimits(org, LimitsIn{Sessions: Some[int64](2)})
	in := &DispatchBatchIn{}
	for range 4 {
		in.Items = append(in.Items, DispatchItem{IssueID: string(issue.ID), AgentID: Some("bot")})
	}
	for round, fit := range []int{2, 0} {
		out := decode[DispatchedBatch](t, w.must(user, org, DispatchBatch, in).Body)
		for i, r := range out.Results {
			if made := r.SessionID != nil && r.Status != nil && r.Error == nil; made != (i < fit) || !made && r.Error == nil {
				t.Errorf("batch %d: item %d is %+v", round, i, r)
			}
		}
	}
	if used := w.used(org); used.Sessions != 2 {
		t.Errorf("%d sessions", used.Sessions)
	}
	if out := decode[DispatchedBatch](t, w.must("root", org, DispatchBatch, in).Body); out.Results[3].Error != nil {
		t.Errorf("the operator is limited: %+v", out.Results[3])
	}
}

// The issues of a file were created elsewhere. One request has more of them than the rate of
// creations ever allows at once.
func TestLimits_NoRateCountsImportedIssues(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	user, org := w.home.Token.Secret, w.home.Workspace.ID
	const team = "01935000-0002-7000-8000-0000000000bb"
	if err := w.line("team", fmt.Sprintf(importedTeam, team, "ENG")); err != nil {
		t.Fatal(err)
	}
	w.putLimits(org, LimitsIn{CreatesPerSecond: Some[int64](2), Issues: Some[int64](5)})
	lines := func(from, to int) (text []byte) {
		for n := from; n <= to; n++ {
			text = fmt.Appendf(text, "{\"n\":%d,\"type\":\"issue\",\"data\":%s}\n", n+1, fmt.Sprintf(importedIssue, n, team, 10*n, fmt.Sprint("ENG-", 10*n)))
		}
		return text
	}
	w.must(user, org, ImportLines, &ImportLinesIn{Body: lines(1, 3)})
	create := &CreateIssueIn{Title: "One", IssueFields: IssueFields{TeamID: Some(TeamID(team))}}
	w.must(user, org, CreateIssue, create)
	w.must(user, org, CreateIssue, create)
	var told *Error
	if _, err := w.ask(user, org, CreateIssue, create); !errors.As(err, &told) || told.Details != (LimitDetails{"issues", 5}) {
		t.Errorf("a sixth issue: %v", err)
	}
	w.putLimits(org, LimitsIn{CreatesPerSecond: Some[int64](2), Issues: Some[int64](6)})
	if _, err := w.ask(user, org, CreateIssue, create); !errors.As(err, &told) || told.Details != (LimitDetails{limitCreatesPerSecond, 2}) {
		t.Errorf("a third issue in a second: %v", err)
	}
	_, err := w.ask(user, org, ImportLines, &ImportLinesIn{Body: lines(4, 5)})
	wantLimit(t, err, "issues", 6)
}
