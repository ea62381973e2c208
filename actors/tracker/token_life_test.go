package tracker

import (
	"slices"
	"testing"
	"time"

	json "github.com/goccy/go-json"
)

// good reports whether a credential gives access to a workspace; errors other than 401
// fail the test.
func (w *testService) good(credential string, id WorkspaceID) bool {
	w.Helper()
	_, err := w.ask(credential, id, ListIssues, &ListIssuesIn{})
	if err != nil {
		wantCode(w, err, CodeUnauthorized)
	}
	return err == nil
}

func (w *testService) tokens(home Onboarded) []Token {
	w.Helper()
	return decode[TokenList](w, w.must(home.Token.Secret, home.Workspace.ID, ListTokens, &PageIn{Limit: 100}).Body).Tokens
}

func (w *testService) mintAs(credential string, home Onboarded, in CreateTokenIn) CreatedToken {
	w.Helper()
	in.Name = "minted"
	return decode[CreatedToken](w, w.must(credential, home.Workspace.ID, CreateToken, &in).Body)
}

func TestCreateToken_ShowsWhoseItIs(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	owner := string(home.Workspace.OwnerID)
	admin, adminToken := w.member(home, RoleAdmin, "admin")
	ends := "2026-11-25T12:00:00+02:00"
	agent := w.mintAs(adminToken, home, CreateTokenIn{AgentID: "claude", Permissions: words("admin"), ExpiresAt: Some(ends)})
	own := w.mintAs(agent.Secret, home, CreateTokenIn{ActorType: ActorAgent})
	root := w.mintAs("root", home, CreateTokenIn{UserID: UserID(owner)})
	all := w.tokens(home)
	slices.Reverse(all)
	for i, want := range []Token{
		{ActorID: owner, ActorType: ActorUser, CreatedByID: &owner},
		{ActorID: string(admin), ActorType: ActorUser, CreatedByID: &owner},
		{ActorID: "claude", ActorType: ActorAgent, CreatedByID: (*string)(&admin)},
		{ActorID: string(own.ID), ActorType: ActorAgent, CreatedByID: &agent.ActorID},
		{ActorID: owner, ActorType: ActorUser, CreatedByID: &[]string{"root"}[0]},
	} {
		got := all[i]
		if got.ActorID != want.ActorID || got.ActorType != want.ActorType || *got.CreatedByID != *want.CreatedByID || got.LastUsedAt != nil {
			t.Errorf("token %d is listed as %+v, want %+v", i, got, want)
		}
		if (got.ExpiresAt != nil) != (i == 2) || i == 2 && *got.ExpiresAt != "2026-11-25T10:00:00.000Z" {
			t.Errorf("token %d ends %v", i, got.ExpiresAt)
		}
	}
	for i, created := range []CreatedToken{agent, own, root} {
		shown, _ := json.Marshal(created.Token)
		listed, _ := json.Marshal(all[i+2])
		if string(shown) != string(listed) {
			t.Errorf("created as %s, listed as %s", shown, listed)
		}
	}
	w.verify()
}

func TestToken_Expires(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	for _, at := range []string{"2026-11-20T21:30:00Z", "1999-01-01T00:00:00Z"} {
		_, err := w.ask(home.Token.Secret, home.Workspace.ID, CreateToken, &CreateTokenIn{Name: "x", ExpiresAt: Some(at)})
		wantCode(t, err, CodeBadRequest, "expiresAt")
	}
	ends := w.now.Add(time.Hour)
	token := w.mintAs(home.Token.Secret, home, CreateTokenIn{ExpiresAt: Some(ends.Format(time.RFC3339Nano))})
	w.now = ends.Add(-2 * time.Millisecond)
	if !w.good(token.Secret, home.Workspace.ID) {
		t.Error("the token ended early")
	}
	w.now = ends
	if w.good(token.Secret, home.Workspace.ID) {
		t.Error("the token outlived its end")
	}
	// An expired token stays in the list, and can be deleted.
	if n := len(w.tokens(home)); n != 2 {
		t.Errorf("%d tokens are listed", n)
	}
	w.must(home.Token.Secret, home.Workspace.ID, DeleteToken, &DeleteTokenIn{ID: token.ID})
	w.verify()
}

// Credentials that a member made, also through agents, end with the membership. Those
// that others made stay.
func TestRemoveMember_EndsWhatTheyMinted(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home, abroad := w.onboard("home"), w.onboard("abroad")
	id := home.Workspace.ID
	bob, bobs := w.member(home, RoleAdmin, "admin")
	carol, carols := w.member(home, RoleMember, "write")
	stranger := abroad.Workspace.OwnerID
	w.must(home.Token.Secret, id, AddMember, &AddMemberIn{UserID: Some(stranger), Role: RoleAdmin})

	agent := w.mintAs(bobs, home, CreateTokenIn{AgentID: "bot", Permissions: words("admin")})
	chain := w.mintAs(agent.Secret, home, CreateTokenIn{ActorType: ActorAgent, Permissions: words("admin")})
	w.must(bobs, id, DeleteToken, &DeleteTokenIn{ID: agent.ID}) // tokens that it made stay valid
	deep := w.mintAs(chain.Secret, home, CreateTokenIn{ActorType: ActorAgent})
	forCarol := w.mintAs(bobs, home, CreateTokenIn{UserID: carol})
	forBob := w.mintAs(home.Token.Secret, home, CreateTokenIn{UserID: bob})
	client := decode[CreatedOAuthClient](t, w.must(chain.Secret, id, CreateOAuthClient, &CreateOAuthClientIn{Name: "c", Permissions: words("admin")}).Body)
	access := w.access(client, "")
	byClient := w.mintAs(access, home, CreateTokenIn{AgentID: "bot"})
	byBob := w.mintAs(bobs, home, CreateTokenIn{})
	ends := []string{byBob.Secret, chain.Secret, deep.Secret, forCarol.Secret, access, byClient.Secret}
	// Tokens that others made for bob are valid again if he comes back.
	his := []string{bobs, forBob.Secret}

	foreign := w.mintAs(abroad.Token.Secret, home, CreateTokenIn{AgentID: "bot"}) // made by a member whose token is stored elsewhere
	stays := []string{carols, w.mintAs(home.Token.Secret, home, CreateTokenIn{AgentID: "bot"}).Secret, w.access(w.client(home, "write"), "")}
	for _, credential := range append(append([]string{foreign.Secret}, ends...), stays...) {
		if !w.good(credential, id) {
			t.Fatal("a credential is not good to begin with")
		}
	}
	w.must(home.Token.Secret, id, RemoveMember, &MemberIn{bob})
	w.must(home.Token.Secret, id, RemoveMember, &MemberIn{stranger})
	for i, credential := range append([]string{foreign.Secret}, ends...) {
		if w.good(credential, id) {
			t.Errorf("credential %d outlived the membership", i)
		}
	}
	for i, credential := range his {
		_, err := w.ask(credential, id, WorkspaceByID, &None{})
		if wantCode(t, err, CodeNotFound); err == nil {
			t.Errorf("credential %d is good for no member", i)
		}
	}
	for i, credential := range stays {
		if !w.good(credential, id) {
			t.Errorf("credential %d, which others made, ended", i)
		}
	}
	_, err := w.ask("", "", GrantOAuthToken, &OAuthTokenIn{Authorization: basic(client.ClientID, client.ClientSecret), GrantType: "client_credentials"})
	wantCode(t, err, CodeUnauthorized)
	w.verify()
	// Tokens that ended stay ended if the member comes back.
	w.must(home.Token.Secret, id, AddMember, &AddMemberIn{UserID: Some(bob), Role: RoleAdmin})
	for i, credential := range ends {
		if w.good(credential, id) {
			t.Errorf("credential %d came back with its maker", i)
		}
	}
	for i, credential := range his {
		if !w.good(credential, id) {
			t.Errorf("credential %d, which others made, is not good again", i)
		}
	}
	w.verify()
}

// Credentials of a former admin lose the admin right.
func TestPatchMember_CapsWhatTheyMinted(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	id := home.Workspace.ID
	bob, bobs := w.member(home, RoleAdmin, "admin")
	agent := w.mintAs(bobs, home, CreateTokenIn{AgentID: "bot", Permissions: words("admin")}).Secret
	client := decode[CreatedOAuthClient](t, w.must(bobs, id, CreateOAuthClient, &CreateOAuthClientIn{Name: "c", Permissions: words("admin")}).Body)
	hidden := w.team(home.Token.Secret, id, &CreateTeamIn{Name: "Hidden", Key: "HID", IsPublic: Some(false)})
	w.must(home.Token.Secret, id, PutTeamMember, &TeamMemberIn{ID: hidden.ID, UserID: "bot"})
	for _, role := range []Role{RoleAdmin, RoleMember, RoleGuest} {
		w.must(home.Token.Secret, id, PatchMember, &PatchMemberIn{bob, role})
		for _, credential := range []string{agent, w.access(client, "")} {
			_, err := w.ask(credential, id, ListTokens, &PageIn{})
			if (err == nil) != (role == RoleAdmin) {
				t.Errorf("an agent of a %s lists tokens: %v", role, err)
			}
			w.must(credential, id, ListIssues, &ListIssuesIn{})
		}
		_, err := w.ask(agent, id, TeamByID, &TeamByIDIn{ID: hidden.ID})
		if (err == nil) != (role != RoleGuest) {
			t.Errorf("an agent of a %s and a private team of its own: %v", role, err)
		}
	}
	w.verify()
}

// The use of a token is recorded at most once an hour, and removed with the token.
func TestNoteTokenUses(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	note := func(at time.Time) {
		w.Helper()
		token, _ := ParseCredential(home.Token.Secret)
		uses := []TokenUse{{ID: token.ID, At: At(at)}, {ID: home.Workspace.ID.raw(), At: At(at)}} // the other id is no token
		if _, err := w.do(ServiceRequest("", home.Workspace.ID.raw()), NoteTokenUses, &TokenUses{Uses: uses}); err != nil {
			t.Fatal(err)
		}
	}
	first := w.now
	for _, step := range []struct{ at, want time.Time }{
		{first, first}, {first.Add(59 * time.Minute), first}, {first.Add(-time.Hour), first}, {first.Add(time.Hour), first.Add(time.Hour)},
	} {
		note(step.at)
		if got := w.tokens(home)[0].LastUsedAt; got == nil || *got != At(step.want) {
			t.Errorf("used at %s: lastUsedAt is %v, want %s", At(step.at), got, At(step.want))
		}
		c, _ := ParseCredential(home.Token.Secret)
		v := w.view(c.Home)
		if p, err := Authenticate(&v, c); err != nil || !p.Used.Equal(step.want) {
			t.Errorf("the principal was used at %s: %v", p.Used, err)
		}
	}
	w.verify()
	token, _ := ParseCredential(home.Token.Secret)
	w.must("root", home.Workspace.ID, DeleteToken, &DeleteTokenIn{ID: TokenID(token.ID.String())})
	if n := w.rows(tokenUseTable); n != 0 {
		t.Errorf("%d uses are kept of a token that is gone", n)
	}
	w.verify()
}

// A token for somebody else depends on the member who made it, and so does each credential
// that is made with it: the member may have the secrets of all.
func TestRemoveMember_EndsWhatTheyMintedAsSomebodyElse(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	id := home.Workspace.ID
	bob, bobs := w.member(home, RoleAdmin, "admin")
	carol, carols := w.member(home, RoleAdmin, "admin")
	asOwner := w.mintAs(bobs, home, CreateTokenIn{UserID: home.Workspace.OwnerID, Permissions: words("admin")})
	console := decode[OpenedConsole](t, w.must("", "", OpenConsole, &OpenConsoleIn{Token: asOwner.Secret, Life: time.Hour}).Body)
	second := w.mintAs(asOwner.Secret, home, CreateTokenIn{Permissions: words("admin")})
	agent := w.mintAs(second.Secret, home, CreateTokenIn{ActorType: ActorAgent, Permissions: words("admin")})
	client := decode[CreatedOAuthClient](t, w.must(agent.Secret, id, CreateOAuthClient, &CreateOAuthClientIn{Name: "c", Permissions: words("admin")}).Body)
	access := w.access(client, "")
	asCarol := w.mintAs(access, home, CreateTokenIn{UserID: carol, Permissions: words("admin")})
	last := w.mintAs(asCarol.Secret, home, CreateTokenIn{AgentID: "bot"})
	stays := w.mintAs(carols, home, CreateTokenIn{UserID: home.Workspace.OwnerID})
	ends := []string{asOwner.Secret, console.Secret, second.Secret, agent.Secret, access, asCarol.Secret, last.Secret}
	for i, credential := range append([]string{stays.Secret}, ends...) {
		if !w.good(credential, id) {
			t.Fatalf("credential %d is not good to begin with", i)
		}
	}
	w.must(home.Token.Secret, id, RemoveMember, &MemberIn{bob})
	for i, credential := range ends {
		if w.good(credential, id) {
			t.Errorf("credential %d outlived the membership of its maker", i)
		}
	}
	_, err := w.ask("", "", GrantOAuthToken, &OAuthTokenIn{Authorization: basic(client.ClientID, client.ClientSecret), GrantType: "client_credentials"})
	wantCode(t, err, CodeUnauthorized)
	if !w.good(stays.Secret, id) {
		t.Error("a token that another member made has ended")
	}
	w.verify()
}

// A token for somebody else has no higher role than each member it depends on, so that a
// former admin can't become one again.
func TestPatchMember_CapsWhatTheyMintedAsSomebodyElse(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	id := home.Workspace.ID
	bob, bobs := w.member(home, RoleAdmin, "admin")
	asOwner := w.mintAs(bobs, home, CreateTokenIn{UserID: home.Workspace.OwnerID, Permissions: words("admin")}).Secret
	second := w.mintAs(asOwner, home, CreateTokenIn{Permissions: words("admin")}).Secret
	agent := w.mintAs(asOwner, home, CreateTokenIn{AgentID: "bot", Permissions: words("admin")}).Secret
	client := decode[CreatedOAuthClient](t, w.must(asOwner, id, CreateOAuthClient, &CreateOAuthClientIn{Name: "c", Permissions: words("admin")}).Body)
	private := w.team(home.Token.Secret, id, &CreateTeamIn{Name: "Hidden", Key: "HID", IsPublic: Some(false)})
	w.must(home.Token.Secret, id, PutTeamMember, &TeamMemberIn{ID: private.ID, UserID: home.Workspace.OwnerID})
	for _, role := range []Role{RoleAdmin, RoleMember, RoleGuest, RoleAdmin} {
		w.must(home.Token.Secret, id, PatchMember, &PatchMemberIn{bob, role})
		for i, credential := range []string{asOwner, second, agent, w.access(client, "")} {
			if _, err := w.ask(credential, id, ListTokens, &PageIn{}); (err == nil) != (role == RoleAdmin) {
				t.Errorf("%s: credential %d lists tokens: %v", role, i, err)
			}
			w.must(credential, id, ListIssues, &ListIssuesIn{})
		}
		if _, err := w.ask(asOwner, id, TeamByID, &TeamByIDIn{ID: private.ID}); (err == nil) != (role != RoleGuest) {
			t.Errorf("%s: a token for the owner and a private team of theirs: %v", role, err)
		}
		if _, err := w.ask(asOwner, id, PatchMember, &PatchMemberIn{bob, role}); (err == nil) != (role == RoleAdmin) {
			t.Errorf("%s: a token for the owner changes roles: %v", role, err)
		}
	}
	described := decode[ConsoleSession](t, w.must(asOwner, "", DescribeConsole, &None{}).Body)
	if *described.Role != string(RoleAdmin) {
		t.Errorf("an admin's token for the owner has the role %s", *described.Role)
	}
	w.verify()
}

// A token for somebody else makes nothing in another workspace that gives access to the
// workspace that stores it: that would outlive the membership of its maker.
func TestCreateToken_WithATokenForSomebodyElseElsewhere(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	id := home.Workspace.ID
	_, anns := w.member(home, RoleAdmin, "admin")
	bob, _ := w.member(home, RoleAdmin, "admin")
	asBob := w.mintAs(anns, home, CreateTokenIn{UserID: bob, Permissions: words("admin")}).Secret
	second := decode[Workspace](t, w.must(asBob, "", CreateWorkspace, &NewWorkspaceIn{Name: "x", Slug: "second"}).Body)
	elsewhere := Onboarded{Workspace: second}
	carol := decode[Member](t, w.must(asBob, elsewhere.Workspace.ID, AddMember, &AddMemberIn{Name: Some("Carol"), Role: RoleAdmin}).Body).UserID
	w.must(home.Token.Secret, id, AddMember, &AddMemberIn{UserID: Some(carol), Role: RoleAdmin})
	in, forCarol := CreateTokenIn{Permissions: words("admin")}, CreateTokenIn{UserID: carol, Permissions: words("admin")}
	made := w.mintAs(asBob, elsewhere, in).Secret
	for name, credential := range map[string]string{
		"a token": made, "a token for another": w.mintAs(asBob, elsewhere, forCarol).Secret,
		"the token of a token": w.mintAs(made, elsewhere, in).Secret, "the token of a token for another": w.mintAs(made, elsewhere, forCarol).Secret,
		"the session of a token": decode[OpenedConsole](t, w.must("", "", OpenConsole, &OpenConsoleIn{Token: made, Life: time.Hour}).Body).Secret,
	} {
		w.must(credential, elsewhere.Workspace.ID, ListTokens, &PageIn{})
		if _, err := w.ask(credential, id, WorkspaceByID, &None{}); err == nil {
			t.Errorf("%s gives access", name)
		} else {
			wantCode(t, err, CodeNotFound)
		}
	}
	// Nobody but Bob has a part in this token.
	own := w.mintAs("root", home, CreateTokenIn{UserID: bob, Permissions: words("admin")}).Secret
	for _, in := range []CreateTokenIn{in, forCarol} {
		w.must(w.mintAs(own, elsewhere, in).Secret, id, ListTokens, &PageIn{})
	}
	w.verify()
}

// The members that a credential depends on are bounded, and nobody is counted twice.
func TestCreateToken_DependsOnTooManyMembers(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	id := home.Workspace.ID
	credential := home.Token.Secret
	var first UserID
	for i := range maxVia + 1 {
		user, _ := w.member(home, RoleAdmin, "admin")
		if i == 0 {
			first = user
		}
		credential = w.mintAs(credential, home, CreateTokenIn{UserID: user, Permissions: words("admin")}).Secret
	}
	for name, in := range map[string]*CreateTokenIn{"for its user": {Name: "x"}, "for another": {Name: "x", UserID: first}, "for an agent": {Name: "x", AgentID: "bot"}} {
		if _, err := w.ask(credential, id, CreateToken, in); err == nil {
			t.Errorf("there is a token %s", name)
		} else {
			wantCode(t, err, CodeForbidden)
		}
	}
	_, err := w.ask(credential, id, CreateOAuthClient, &CreateOAuthClientIn{Name: "x"})
	wantCode(t, err, CodeForbidden)
	w.must(credential, id, ListTokens, &PageIn{})
	again := home.Token.Secret
	for range 3 * maxVia {
		again = w.mintAs(again, home, CreateTokenIn{UserID: first, Permissions: words("admin")}).Secret
	}
	w.verify()
}
