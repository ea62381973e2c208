package tracker

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func (w *testService) team(credential string, home WorkspaceID, in *CreateTeamIn) Team {
	w.Helper()
	if in.Name == "" {
		in.Name = "team"
	}
	return decode[Team](w, w.must(credential, home, CreateTeam, in).Body)
}

func (w *testService) issue(credential string, home WorkspaceID, team TeamID) Issue {
	w.Helper()
	in := &CreateIssueIn{Title: "issue"}
	in.TeamID = Some(team)
	return decode[Issue](w, w.must(credential, home, CreateIssue, in).Body)
}

func TestTeams_KeyIsUnique(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	root, org := home.Token.Secret, home.Workspace.ID
	eng := w.team(root, org, &CreateTeamIn{Key: "eng"})
	if eng.Key != "ENG" || !eng.IsPublic || eng.IsDefault || eng.OwnerID != home.Workspace.OwnerID {
		t.Errorf("made %+v", eng)
	}
	_, err := w.ask(root, org, CreateTeam, &CreateTeamIn{Name: "x", Key: "Eng"})
	wantCode(t, err, CodeConflict)
	_, err = w.ask(root, org, PatchTeam, &PatchTeamIn{ID: home.Team.ID, Key: Some("eng")})
	wantCode(t, err, CodeConflict)
	same := decode[Team](w, w.must(root, org, PatchTeam, &PatchTeamIn{ID: eng.ID, Key: Some("eng")}).Body)
	if same.UpdatedAt != eng.UpdatedAt {
		t.Error("a change to the same key is a change")
	}
	w.must(root, org, PatchTeam, &PatchTeamIn{ID: eng.ID, Key: Some("dev"), Name: Some("Dev"), TriageAssigneeID: Some("ann")})
	w.team(root, org, &CreateTeamIn{Key: "ENG"})
	w.verify()
}

func TestTeams_DefaultOne(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	root, org := home.Token.Secret, home.Workspace.ID
	second := w.team(root, org, &CreateTeamIn{Key: "TWO"})
	third := w.team(root, org, &CreateTeamIn{Key: "THREE"})

	_, err := w.ask(root, org, DeleteTeam, &TeamByIDIn{home.Team.ID})
	wantCode(t, err, CodeConflict)
	_, err = w.ask(root, org, PatchTeam, &PatchTeamIn{ID: home.Team.ID, IsDefault: Some(false)})
	wantCode(t, err, CodeConflict)
	_, err = w.ask(root, org, PatchWorkspace, &PatchWorkspaceIn{DefaultTeamID: Some(TeamID("nothing"))})
	wantCode(t, err, CodeNotFound)
	_, member := w.member(home, RoleMember, "write")
	_, err = w.ask(member, org, PatchTeam, &PatchTeamIn{ID: second.ID, IsDefault: Some(true)})
	wantCode(t, err, CodeForbidden)
	w.verify()

	ws := decode[Workspace](w, w.must(root, org, PatchWorkspace, &PatchWorkspaceIn{DefaultTeamID: Some(second.ID), SSOEnforced: Some(true)}).Body)
	if *ws.DefaultTeamID != second.ID {
		t.Errorf("default team %s", *ws.DefaultTeamID)
	}
	w.verify()
	w.must(root, org, DeleteTeam, &TeamByIDIn{home.Team.ID}) // it can be deleted now
	if got := decode[Team](w, w.must(root, org, PatchTeam, &PatchTeamIn{ID: third.ID, IsDefault: Some(true)}).Body); !got.IsDefault {
		t.Errorf("patched %+v", got)
	}
	w.must(root, org, DeleteTeam, &TeamByIDIn{second.ID})
	w.verify()
}

// A registered agent needs no token to be a member of a team.
func TestPutTeamMember_RegisteredAgent(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	root, org := home.Token.Secret, home.Workspace.ID
	agent := UserID(decode[Agent](w, w.must(root, org, CreateAgent, &CreateAgentIn{Name: "Bot"}).Body).ID)
	w.must(root, org, PutTeamMember, &TeamMemberIn{home.Team.ID, agent})
	list := decode[TeamMemberList](w, w.must(root, org, ListTeamMembers, &TeamMembersIn{ID: home.Team.ID}).Body)
	if !slices.ContainsFunc(list.Members, func(m TeamMember) bool { return m.UserID == agent }) {
		t.Errorf("the team has %+v", list.Members)
	}
	_, err := w.ask(root, org, PutTeamMember, &TeamMemberIn{home.Team.ID, agent + "x"})
	wantCode(t, err, CodeNotFound)
	w.verify()
}

func TestDeleteTeam(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	root, org := home.Token.Secret, home.Workspace.ID
	team := w.team(root, org, &CreateTeamIn{Key: "ENG"})
	issue := w.issue(root, org, team.ID)
	user, _ := w.member(home, RoleMember, "write")
	w.must(root, org, PutTeamMember, &TeamMemberIn{team.ID, user})
	_, err := w.ask(root, org, DeleteTeam, &TeamByIDIn{team.ID})
	wantCode(t, err, CodeConflict)
	w.must(root, org, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	w.must(root, org, DeleteTeam, &TeamByIDIn{team.ID})
	_, err = w.ask(root, org, TeamByID, &TeamByIDIn{team.ID})
	wantCode(t, err, CodeNotFound)
	w.verify()
}

// No member is left of a deleted team, whatever characters the id has.
func TestDeleteTeam_MemberOfAnyID(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	root, org := home.Token.Secret, home.Workspace.ID
	const user = UserID("a\x01b")
	w.must(root, org, AddMember, &AddMemberIn{UserID: Some(user)})
	team := w.team(root, org, &CreateTeamIn{Key: "X"})
	w.must(root, org, PutTeamMember, &TeamMemberIn{team.ID, user})
	w.must(root, org, DeleteTeam, &TeamByIDIn{team.ID})
	if n := w.rows(teamMemberTable); n != 0 {
		t.Errorf("%d members are left of a team that is gone", n)
	}
	w.verify()
}

// A number is never used twice under a key, whichever team has it.
func TestTeams_NumbersUnderARetiredKey(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	root, org := home.Token.Secret, home.Workspace.ID
	number := func(team TeamID) string { return *w.issue(root, org, team).Identifier }
	var got []string

	a := w.team(root, org, &CreateTeamIn{Key: "A"})
	got = append(got, number(a.ID), number(a.ID))
	w.must(root, org, PatchTeam, &PatchTeamIn{ID: a.ID, Key: Some("B")})
	got = append(got, number(a.ID))
	another := w.team(root, org, &CreateTeamIn{Key: "A"}) // continues after A-2
	got = append(got, number(another.ID))
	w.must(root, org, PatchTeam, &PatchTeamIn{ID: another.ID, Key: Some("C")})
	w.must(root, org, PatchTeam, &PatchTeamIn{ID: a.ID, Key: Some("A")}) // has the key again, after A-3
	got = append(got, number(a.ID))
	if want := "[A-1 A-2 B-3 A-3 A-4]"; fmt.Sprint(got) != want {
		t.Errorf("identifiers %v, want %s", got, want)
	}

	gone := w.team(root, org, &CreateTeamIn{Key: "D"})
	issue := w.issue(root, org, gone.ID)
	w.must(root, org, DeleteIssue, &DeleteIssueIn{ID: string(issue.ID)})
	w.must(root, org, DeleteTeam, &TeamByIDIn{gone.ID})
	if got := number(w.team(root, org, &CreateTeamIn{Key: "D"}).ID); got != "D-2" {
		t.Errorf("identifier %s after a deleted team's D-1", got)
	}
	w.verify()
}

// Only its members and admins see a private team (Decision 11).
func TestTeams_PrivateOnesAreHidden(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	org := home.Workspace.ID
	maker, makers := w.member(home, RoleMember, "write")
	outsider, outsiders := w.member(home, RoleMember, "write")
	guest, guests := w.member(home, RoleGuest, "write")
	_, admins := w.member(home, RoleAdmin, "admin")
	_, cappedAdmins := w.member(home, RoleAdmin, "write")
	agents := w.token(home, &CreateTokenIn{AgentID: "bot"})
	adminAgents := w.token(home, &CreateTokenIn{AgentID: "boss", Permissions: words("admin")})
	team := w.team(makers, org, &CreateTeamIn{Key: "SEC", IsPublic: Some(false)})
	in := &TeamByIDIn{team.ID}

	check := func(when string, sees map[string]bool) {
		t.Helper()
		for who, credential := range map[string]string{
			"maker": makers, "outsider": outsiders, "guest": guests, "owner": home.Token.Secret, "admin": admins,
			"admin with a write token": cappedAdmins, "agent": agents, "admin agent": adminAgents, "root": "root",
		} {
			_, err := w.ask(credential, org, TeamByID, in)
			listed := len(decode[TeamList](w, w.must(credential, org, ListTeams, &PageIn{}).Body).Teams) == 2
			if (err == nil) != sees[who] || listed != sees[who] {
				t.Errorf("%s: %s sees the team: %t, in the list: %t", when, who, err == nil, listed)
			}
			if err != nil {
				wantCode(t, err, CodeNotFound)
				for _, op := range []*Op{ListTeamMembers, PutTeamMember, RemoveTeamMember, PatchTeam, DeleteTeam} {
					_, err := w.ask(credential, org, op, map[*Op]any{
						ListTeamMembers: &TeamMembersIn{ID: team.ID}, PutTeamMember: &TeamMemberIn{team.ID, outsider},
						RemoveTeamMember: &TeamMemberIn{team.ID, maker}, PatchTeam: &PatchTeamIn{ID: team.ID}, DeleteTeam: in,
					}[op])
					wantCode(t, err, CodeNotFound)
				}
			}
		}
	}
	always := map[string]bool{"maker": true, "owner": true, "admin": true, "admin agent": true, "root": true}
	check("at first", always)

	for _, who := range []UserID{outsider, "bot", guest} {
		w.must(makers, org, PutTeamMember, &TeamMemberIn{team.ID, who})
		w.must(makers, org, PutTeamMember, &TeamMemberIn{team.ID, who}) // again
	}
	always["outsider"], always["agent"] = true, true // a guest can't see it
	check("with more members", always)
	if n := len(decode[TeamMemberList](w, w.must(makers, org, ListTeamMembers, &TeamMembersIn{ID: team.ID}).Body).Members); n != 4 {
		t.Errorf("%d members are listed", n)
	}

	w.must(makers, org, RemoveTeamMember, &TeamMemberIn{team.ID, outsider})
	_, err := w.ask(makers, org, RemoveTeamMember, &TeamMemberIn{team.ID, outsider})
	wantCode(t, err, CodeNotFound)
	delete(always, "outsider")
	check("with one gone", always)

	_, err = w.ask(makers, org, PutTeamMember, &TeamMemberIn{team.ID, "nobody"})
	wantCode(t, err, CodeNotFound)
	_, err = w.ask(guests, org, CreateTeam, &CreateTeamIn{Name: "x", Key: "X", IsPublic: Some(false)})
	wantCode(t, err, CodeForbidden)

	// A member who leaves the workspace leaves its teams.
	w.must("root", org, RemoveMember, &MemberIn{maker})
	w.must("root", org, AddMember, &AddMemberIn{UserID: Some(maker)})
	again := w.mintAs("root", home, CreateTokenIn{UserID: maker}).Secret
	_, err = w.ask(again, org, TeamByID, in)
	wantCode(t, err, CodeNotFound)
	w.verify()
}

func TestPatchTeam_MadePrivateStaysInSight(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	_, member := w.member(home, RoleMember, "write")
	team := w.team(home.Token.Secret, home.Workspace.ID, &CreateTeamIn{Key: "SEC"})
	w.must(member, home.Workspace.ID, PatchTeam, &PatchTeamIn{ID: team.ID, IsPublic: Some(false)})
	w.must(member, home.Workspace.ID, TeamByID, &TeamByIDIn{team.ID})
	w.verify()
}

// A guest hides no team from the members: nobody but an admin could show it again.
func TestPatchTeam_GuestsMakeNonePrivate(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	org := home.Workspace.ID
	_, guest := w.member(home, RoleGuest, "write")
	_, member := w.member(home, RoleMember, "write")
	_, err := w.ask(guest, org, PatchTeam, &PatchTeamIn{ID: home.Team.ID, Name: Some("Other"), IsPublic: Some(false)})
	wantCode(t, err, CodeForbidden)
	if team := decode[Team](t, w.must(member, org, TeamByID, &TeamByIDIn{home.Team.ID}).Body); !team.IsPublic || team.Name != home.Team.Name {
		t.Errorf("the team became %+v", team)
	}
	w.must(guest, org, PatchTeam, &PatchTeamIn{ID: home.Team.ID, Name: Some("Other"), IsPublic: Some(true)})
	w.verify()
}

func TestTeams_Bounded(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	full := NewCommand[None, None]("full", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		for i := range quotas[teamTable].most - 1 {
			if _, _, err := tx.addTeam(Team{Key: fmt.Sprint("T", i), Name: "x", IsPublic: true}); err != nil {
				return Reply{}, err
			}
		}
		return Reply{}, nil
	})
	w.must("root", home.Workspace.ID, full, &None{})
	_, err := w.ask(home.Token.Secret, home.Workspace.ID, CreateTeam, &CreateTeamIn{Name: "x", Key: "X"})
	wantCode(t, err, CodeConflict)
	all := decode[TeamList](w, w.must(home.Token.Secret, home.Workspace.ID, ListTeams, &PageIn{}).Body)
	if len(all.Teams) != 1000 || all.NextCursor != "" {
		t.Errorf("without a limit %d teams come", len(all.Teams))
	}
	w.must(home.Token.Secret, home.Workspace.ID, DeleteTeam, &TeamByIDIn{all.Teams[0].ID})
	w.team(home.Token.Secret, home.Workspace.ID, &CreateTeamIn{Key: "X"})
	w.pass(time.Minute)
	w.verify()
}
