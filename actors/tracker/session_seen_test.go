package tracker

import (
	"slices"
	"testing"

	"switchyard/storage"
)

// wakesOf runs fn and returns the wake-ups of its commands.
func (f *agentFixture) wakesOf(fn func()) (wakes []Wake) {
	f.note = func(_ storage.ID, l *WriteBuffer, _ []byte) { wakes = append(wakes, l.WakeUps()...) }
	fn()
	f.note = nil
	return wakes
}

// Claims are woken for the sessions of an issue that other callers see from now on, and for none else.
func TestSeenAnew_WakesClaims(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue := f.work(PriorityLow)
	for _, provider := range []string{"p", "q", "p"} {
		f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("a"), Provider: Some(provider)})
	}
	f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("b"), Provider: Some("p")})
	f.claim(ClaimSessionsIn{AgentID: Some("b"), LeaseSeconds: 3600})
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("c")})
	mel, _ := f.member(f.home, RoleMember, "write")
	secret := decode[Team](t, f.run(f.admin, CreateTeam, &CreateTeamIn{Name: "Secret", Key: "SEC", IsPublic: Some(false)}).Body)
	grant := func(actor string, kind GranteeType) func() {
		return func() {
			f.run(f.admin, PutAccessGrant, &PutAccessGrantIn{ID: string(issue.ID), ActorID: actor, ActorType: kind})
		}
	}
	remove := func(actor string) func() {
		return func() { f.run(f.admin, RemoveAccessGrant, &AccessGrantIn{string(issue.ID), actor}) }
	}
	patch := func(p IssuePatch) func() {
		return func() { f.run(f.admin, PatchIssue, patchIn(issue.ID, "", p)) }
	}
	isPublic := func(is bool) func() {
		return func() { f.run(f.admin, PatchTeam, &PatchTeamIn{ID: secret.ID, IsPublic: Some(is)}) }
	}
	queued := []Wake{{One: true, Topics: claimTopics("a", "p")}, {One: true, Topics: claimTopics("a", "q")}}
	all := []Wake{{Each: true}}
	for _, row := range []struct {
		name string
		do   func()
		want []Wake
	}{
		{"the first grant", grant("x", GranteeUser), nil},
		{"another grant", grant("y", GranteeUser), queued},
		{"a grant that is there", grant("y", GranteeUser), nil},
		{"a grant to an actor of another type", grant("y", GranteeAgent), queued},
		{"a grant is removed", remove("x"), nil},
		{"the last grant is removed", remove("y"), queued},
		{"another team", patch(IssuePatch{IssueFields: IssueFields{TeamID: Some(secret.ID)}}), queued},
		{"another title", patch(IssuePatch{Title: Some("New")}), nil},
		{"a team is public", isPublic(true), all},
		{"another name of a team", func() { f.run(f.admin, PatchTeam, &PatchTeamIn{ID: secret.ID, Name: Some("Public")}) }, nil},
		{"a member of a team", func() { f.run(f.admin, PutTeamMember, &TeamMemberIn{ID: secret.ID, UserID: mel}) }, all},
		{"another role", func() { f.run(f.admin, PatchMember, &PatchMemberIn{UserID: mel, Role: RoleAdmin}) }, all},
	} {
		got := f.wakesOf(row.do)
		slices.SortFunc(got, func(a, b Wake) int { return slices.Compare(a.Topics[0][:], b.Topics[0][:]) })
		slices.SortFunc(row.want, func(a, b Wake) int { return slices.Compare(a.Topics[0][:], b.Topics[0][:]) })
		if !slices.Equal(got, row.want) {
			t.Errorf("%s wakes %v, want %v", row.name, got, row.want)
		}
	}
}

// Of an issue with many sessions none is looked at.
func TestSeenAnew_OfManySessions(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue := f.work(PriorityLow)
	f.restrict(issue.ID)
	for range maxSeenAnew + 1 {
		f.dispatch(issue.ID, DispatchIssueIn{AgentID: Some("a")})
	}
	got := f.wakesOf(func() { f.run(f.admin, PutAccessGrant, &PutAccessGrantIn{ID: string(issue.ID), ActorID: "x"}) })
	if !slices.Equal(got, []Wake{{Each: true}}) {
		t.Errorf("got the wake-ups %v, want one for each topic", got)
	}
}
