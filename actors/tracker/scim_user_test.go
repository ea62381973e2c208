package tracker

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"switchyard/storage"
)

// A user who is activated again has the previous role and teams, without deleted teams.
func TestSCIMUser_ComesBackAsTheyWere(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	root, org := p.home.Token.Secret, p.home.Workspace.ID
	u := p.user("ann@x.example")
	p.must(root, org, PatchMember, &PatchMemberIn{u.ID, RoleAdmin})
	kept := p.group("Kept", u.ID)
	secret := p.team(root, org, &CreateTeamIn{Key: "SEC", IsPublic: Some(false)})
	p.must(root, org, PutTeamMember, &TeamMemberIn{secret.ID, u.ID})
	doomed := p.team(root, org, &CreateTeamIn{Key: "DOOM"})
	p.must(root, org, PutTeamMember, &TeamMemberIn{doomed.ID, u.ID})
	token := p.testService.token(p.home, &CreateTokenIn{UserID: u.ID, Permissions: words("admin")})
	p.must(token, org, ListTokens, &PageIn{})
	p.active(u.ID, false)
	p.active(u.ID, false)
	_, err := p.ask(token, org, WorkspaceByID, &None{})
	wantCode(t, err, CodeNotFound)
	if p.sees(token, org) || p.listed(u.ID) {
		t.Error("the directory shows the workspace on")
	}
	if got := p.shown(u.ID); *got.Active || len(got.Groups) != 1 || !slices.Equal(p.membersOf(kept.ID), []UserID{u.ID}) || p.teamOf(kept.ID) != nil {
		t.Errorf("while deactivated %+v", got)
	}
	// The groups change while the user is inactive.
	late := p.group("Late", u.ID)
	left := p.group("Left", u.ID)
	p.provision(PatchSCIMGroup, patchGroup(left.ID, "remove", fmt.Sprintf("members[value eq %q]", u.ID), ""))
	p.must(root, org, DeleteTeam, &TeamByIDIn{doomed.ID})
	p.verify()
	p.restart()
	p.active(u.ID, true)
	p.must(token, org, ListTokens, &PageIn{}) // as an admin
	if !p.sees(token, org) {
		t.Error("the directory has forgotten them")
	}
	for team, want := range map[TeamID][]UserID{kept.ID: {u.ID}, secret.ID: {p.home.Workspace.OwnerID, u.ID}, late.ID: {u.ID}, left.ID: nil} {
		if got := p.teamOf(team); !slices.Equal(got, want) {
			t.Errorf("team %s has %v", team, got)
		}
	}
	p.verify()
	p.pass(2 * time.Hour)
	p.verify()
}

// A user is active if, and only if, there is a member, however it was added or removed.
func TestSCIMUser_RemovedAndAddedByAnAdmin(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	root, org := p.home.Token.Secret, p.home.Workspace.ID
	u := p.user("ann@x.example")
	g := p.group("Group", u.ID)
	version := p.shown(u.ID).Meta.Version
	p.must(root, org, RemoveMember, &MemberIn{u.ID})
	if got := p.shown(u.ID); *got.Active || got.Meta.Version == version {
		t.Errorf("a removed member is shown as %+v", got)
	}
	p.must(root, org, AddMember, &AddMemberIn{UserID: Some(u.ID), Role: RoleGuest})
	if got := p.shown(u.ID); !*got.Active {
		t.Error("a member who was added again is not active")
	}
	if got := p.membersOf(g.ID); got != nil {
		t.Errorf("the group has %v", got)
	}
	p.active(u.ID, false)
	p.must(root, org, AddMember, &AddMemberIn{UserID: Some(u.ID)})
	p.provision(PatchSCIMUser, patchUser(u.ID, "replace", "displayName", `"Ann"`))
	p.verify()
	p.provision(DeleteSCIMUser, &DeleteSCIMUserIn{SCIMBase: scimHere, ID: u.ID})
	_, err := p.try(SCIMUserByID, &SCIMUserByIDIn{SCIMBase: scimHere, ID: u.ID})
	wantCode(t, err, CodeNotFound)
	p.verify()
}

// A workspace may make tokens for a user whom it created, but not for one who left and
// came back.
func TestSCIMUser_WhoComesBackIsTheirOwn(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	other := p.onboard("other")
	u := p.user("ann@x.example")
	p.must(other.Token.Secret, other.Workspace.ID, AddMember, &AddMemberIn{UserID: Some(u.ID)})
	p.must(p.testService.token(p.home, &CreateTokenIn{UserID: u.ID}), other.Workspace.ID, WorkspaceByID, &None{})
	p.active(u.ID, false)
	p.active(u.ID, true)
	_, err := p.ask(p.testService.token(p.home, &CreateTokenIn{UserID: u.ID}), other.Workspace.ID, WorkspaceByID, &None{})
	wantCode(t, err, CodeNotFound)
	p.verify()
}

// The owner can be neither deactivated nor deleted.
func TestSCIMUser_OwnerIsFixed(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	owner := p.home.Workspace.OwnerID
	p.must("root", p.home.Workspace.ID, NewCommand[None, None]("known", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		if err := tx.countRecord(scimUserTable, 1); err != nil {
			return Reply{}, err
		}
		_, err := scimUsers.Insert(tx, &scimUser{ID: owner, SCIMUserAttributes: SCIMUserAttributes{UserName: "owner"}})
		return Reply{}, err
	}), &None{})
	_, err := p.try(PatchSCIMUser, patchUser(owner, "replace", "active", "false"))
	wantCode(t, err, CodeConflict)
	_, err = p.try(PutSCIMUser, &PutSCIMUserIn{SCIMBase: scimHere, ID: owner, SCIMUserIn: SCIMUserIn{UserName: "owner", Active: json.RawMessage(`"False"`)}})
	wantCode(t, err, CodeConflict)
	_, err = p.try(DeleteSCIMUser, &DeleteSCIMUserIn{SCIMBase: scimHere, ID: owner})
	wantCode(t, err, CodeConflict)
	p.must(p.home.Token.Secret, p.home.Workspace.ID, ListTokens, &PageIn{})
	p.verify()
}

// The member of a user whose name has only spaces is called by the userName.
func TestCreateSCIMUser_NamesOfSpaces(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	in := &CreateSCIMUserIn{SCIMBase: scimHere, SCIMUserIn: SCIMUserIn{UserName: "ann", Name: Some(SCIMNameIn{GivenName: Some(" ")})}}
	user := decode[SCIMUser](p, p.provision(CreateSCIMUser, in).Body)
	for _, m := range decode[MemberList](p, p.must(p.home.Token.Secret, p.home.Workspace.ID, ListMembers, &PageIn{}).Body).Members {
		if m.UserID == user.ID && fromPtr(m.Name) != "ann" {
			t.Errorf("the member is called %q", fromPtr(m.Name))
		}
	}
	p.verify()
}

// A new user adopts a member with the same address, and each member is adopted once.
func TestCreateSCIMUser_AdoptsMembers(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	root, org := p.home.Token.Secret, p.home.Workspace.ID
	add := func(email string) UserID {
		return decode[Member](p, p.must(root, org, AddMember, &AddMemberIn{Email: Some(email), Role: RoleGuest}).Body).UserID
	}
	first, second, work := add("Ann@X.example"), add("ann@x.example"), add("work@x.example")
	got := []UserID{p.user("ann@X.example").ID, p.user("ANN@x.example.").ID}
	if got[0] != first && got[0] != second {
		t.Errorf("made %s", got[0])
	}
	if got[1] == first || got[1] == second {
		t.Error("another address was taken for the same")
	}
	in := &CreateSCIMUserIn{SCIMBase: scimHere, SCIMUserIn: SCIMUserIn{UserName: "w", Active: json.RawMessage("false")}}
	in.Emails = Some([]SCIMEmailIn{{Value: Some("home@x.example")}, {Value: Some("WORK@x.example"), Primary: Some(true)}})
	w := decode[SCIMUser](p, p.provision(CreateSCIMUser, in).Body)
	if w.ID != work || *w.Active {
		t.Errorf("made %+v", w)
	}
	p.active(work, true)
	for _, m := range decode[MemberList](p, p.must(root, org, ListMembers, &PageIn{}).Body).Members {
		if m.UserID == work && (m.Role != RoleGuest || *m.Email != "WORK@x.example") {
			t.Errorf("member %+v", m)
		}
	}
	p.verify()
}

func TestSCIMUser_NamesAreUnique(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	ann, bob := p.user("Ann"), p.user("Bob")
	_, err := p.try(CreateSCIMUser, &CreateSCIMUserIn{SCIMUserIn: SCIMUserIn{UserName: "aNN"}})
	wantReason(t, err, CodeConflict, scimUniqueness)
	_, err = p.try(PatchSCIMUser, patchUser(bob.ID, "replace", "userName", `"ann"`))
	wantReason(t, err, CodeConflict, scimUniqueness)
	p.provision(PatchSCIMUser, patchUser(ann.ID, "replace", "userName", `"ANN"`))
	a, b := p.group("Team"), p.group("Other")
	_, err = p.try(PatchSCIMGroup, patchGroup(b.ID, "replace", "displayName", `"TEAM"`))
	wantReason(t, err, CodeConflict, scimUniqueness)
	p.provision(PatchSCIMGroup, patchGroup(a.ID, "replace", "displayName", `"TEAM"`))
	p.verify()
}

// A walk by position returns every user once, also while users are added.
func TestListSCIMUsers_Pages(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	var want, got []UserID
	for i := range 25 {
		want = append(want, p.user(fmt.Sprintf("user%02d", i)).ID)
	}
	slices.Sort(want)
	list := func(in SCIMListIn) SCIMUserList {
		in.SCIMBase = scimHere
		return decode[SCIMUserList](p, p.provision(ListSCIMUsers, &in).Body)
	}
	for start := 1; ; {
		page := list(SCIMListIn{StartIndex: start, Count: Some(7)})
		for _, u := range page.Resources {
			got = append(got, u.ID)
		}
		if len(page.Resources) == 0 {
			break
		}
		if start == 8 {
			want = append(want, p.user("late").ID)
		}
		start += page.ItemsPerPage
	}
	if !slices.Equal(got, want) {
		t.Errorf("walked %v, want %v", got, want)
	}
	for _, row := range []struct {
		in           SCIMListIn
		total, shown int
	}{
		{SCIMListIn{StartIndex: -5, Count: Some(-1)}, 26, 0},
		{SCIMListIn{StartIndex: 26, Count: Some(1000)}, 26, 1},
		{SCIMListIn{StartIndex: 1 << 40}, 26, 0},
		{SCIMListIn{StartIndex: 3, Filter: `active eq true`, Count: Some(5)}, 26, 5},
		{SCIMListIn{Filter: `active eq false`}, 0, 0},
		{SCIMListIn{Filter: `displayName eq "x"`}, 0, 0},
		{SCIMListIn{Filter: `userName eq "USER03"`, StartIndex: 2}, 1, 0},
		{SCIMListIn{Filter: `userName eq "USER03" and userName eq "user04"`}, 0, 0},
		{SCIMListIn{Filter: `id eq "nobody"`}, 0, 0},
	} {
		if page := list(row.in); page.TotalResults != row.total || len(page.Resources) != row.shown || page.ItemsPerPage != row.shown {
			t.Errorf("%+v: %d of %d", row.in, len(page.Resources), page.TotalResults)
		}
	}
}

// listed reports whether the directory has a user as a member of the provider's
// workspace.
func (p *provider) listed(user UserID) bool {
	p.Helper()
	d := p.view(storage.DirectoryID)
	row, err := memberships.Get(&d, membershipKey(nil, user, p.home.Workspace.ID))
	if err != nil {
		p.Fatal(err)
	}
	return row != nil && row.Value.RemovedAt == nil
}

// The directory gets a change of a user, whatever step the change crashes at.
func TestSCIMUser_CutAtEveryStep(t *testing.T) {
	t.Parallel()
	for step := 1; step <= 4; step++ {
		for _, persisted := range []bool{false, true} {
			t.Run(fmt.Sprintf("step %d/persisted %t", step, persisted), func(t *testing.T) {
				t.Parallel()
				p := newProvider(t)
				u := p.user("ann")
				was := true
				for _, active := range []bool{false, true} {
					p.cut = &crashPoint{step: step, persisted: persisted}
					_, err := p.try(PatchSCIMUser, patchUser(u.ID, "replace", "active", fmt.Sprint(active)))
					if (err != nil) != (step == 1) {
						t.Errorf("%v", err)
					}
					if step > 1 || persisted {
						was = active
					}
					p.restart()
					p.verify()
					p.pass(time.Minute)
					p.verify()
					if p.listed(u.ID) != was || *p.shown(u.ID).Active != was {
						t.Errorf("after active=%t the directory shows %t", active, !was)
					}
				}
			})
		}
	}
}
