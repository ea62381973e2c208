package actors

import (
	"encoding/json"
	"testing"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// readTitle is the title of an issue as GET shows it; "" without one. It asks as often as
// it takes to have the record kept in memory.
func (b *testEngine) readTitle(o onboarded, id tracker.IssueID) (title string) {
	b.t.Helper()
	for range 3 {
		reply, err := b.engine.Do(b.admitted(o.id, o.credential, tracker.IssueByID), tracker.IssueByID, &tracker.IssueByIDIn{ID: string(id)})
		if err != nil {
			wantCode(b.t, err, tracker.CodeNotFound)
			continue
		}
		var issue tracker.Issue
		if err := json.Unmarshal(reply.Body, &issue); err != nil {
			b.t.Fatal(err)
		}
		title = issue.Title
	}
	return title
}

// Kept records are as the stored ones are: after a change, a deletion, and a change that
// another owner made meanwhile, and never another workspace's.
func TestQuery_KeptRecords(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.OpenOnboarding = true })
	mine, other := b.onboard("mine"), b.onboard("other")
	var issue, second tracker.Issue
	b.run(mine, mine.credential, tracker.CreateIssue, &tracker.CreateIssueIn{Title: "first"}, &issue)
	b.run(mine, mine.credential, tracker.CreateIssue, &tracker.CreateIssueIn{Title: "second"}, &second)
	want := func(o onboarded, id tracker.IssueID, title string) {
		t.Helper()
		if got := b.readTitle(o, id); got != title {
			t.Fatalf("the title is %q, want %q", got, title)
		}
	}
	want(mine, issue.ID, "first")
	want(mine, second.ID, "second")
	if b.store.Records().Use().Hits == 0 {
		t.Fatal("nothing was found in memory")
	}
	want(other, issue.ID, "")

	patch := &tracker.PatchIssueIn{ID: string(issue.ID)}
	patch.Title = tracker.Some("changed")
	b.run(mine, mine.credential, tracker.PatchIssue, patch, nil)
	want(mine, issue.ID, "changed")

	b.run(mine, mine.credential, tracker.DeleteIssue, &tracker.DeleteIssueIn{ID: string(second.ID)}, nil)
	want(mine, second.ID, "")

	// Another owner changes the title while this node follows, and this one takes over.
	open := func(c *Config) { c.OpenOnboarding = true }
	first := b.engine
	for n := range storage.Shard(testShards + 1) {
		b.local.lose(first, n)
	}
	b.start(open)
	patch.Title = tracker.Some("changed elsewhere")
	b.run(mine, mine.credential, tracker.PatchIssue, patch, nil)
	if err := b.engine.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.engine = first
	b.local.gain(t, first)
	want(mine, issue.ID, "changed elsewhere")
}

// A kept record is shown to those alone who may see it now: not to a token that was
// deleted, nor to a member who was taken out.
func TestQuery_KeptRecordsAndRights(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.OpenOnboarding = true })
	mine, guest := b.onboard("mine"), b.onboard("guest")
	var issue tracker.Issue
	b.run(mine, mine.credential, tracker.CreateIssue, &tracker.CreateIssueIn{Title: "first"}, &issue)
	b.run(mine, mine.credential, tracker.AddMember, &tracker.AddMemberIn{UserID: tracker.Some(tracker.UserID(guest.user)), Role: tracker.RoleMember}, nil)
	token := b.token(mine, "read")
	get := func(credential string) error {
		req, err := b.admit(mine.id, credential, tracker.IssueByID)
		if err == nil {
			_, err = b.engine.Do(req, tracker.IssueByID, &tracker.IssueByIDIn{ID: string(issue.ID)})
		}
		return err
	}
	for range 3 {
		for _, credential := range []string{guest.credential, token.Secret} {
			if err := get(credential); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.deleteToken(mine, token.ID)
	wantCode(t, get(token.Secret), tracker.CodeUnauthorized)
	b.run(mine, mine.credential, tracker.RemoveMember, &tracker.MemberIn{UserID: tracker.UserID(guest.user)}, nil)
	wantCode(t, get(guest.credential), tracker.CodeNotFound)
}
