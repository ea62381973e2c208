package tracker

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	json "github.com/goccy/go-json"
)

func TestCreateToken_Defaults(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	for _, c := range []struct{ permissions, want string }{
		{``, "write"},
		{`"read"`, "read"},
		{`"issues:write, read ,issues:write"`, "issues:write,read"},
		{`["sessions:read","issues:read"]`, "sessions:read,issues:read"},
		{`["read,write"]`, "read,write"},
	} {
		reply := w.must(home.Token.Secret, home.Workspace.ID, CreateToken, &CreateTokenIn{Name: "x", Permissions: json.RawMessage(c.permissions)})
		if got := decode[CreatedToken](w, reply.Body); got.Permissions != c.want {
			t.Errorf("permissions %s became %q, want %q", c.permissions, got.Permissions, c.want)
		}
	}
	w.verify()
}

func TestCreateTokenIn_Validate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   CreateTokenIn
		path string
	}{
		{CreateTokenIn{}, ""},
		{CreateTokenIn{Permissions: json.RawMessage(`"reed"`)}, "permissions"},
		{CreateTokenIn{Permissions: json.RawMessage(`""`)}, "permissions"},
		{CreateTokenIn{Permissions: json.RawMessage(`[]`)}, "permissions"},
		{CreateTokenIn{Permissions: json.RawMessage(`[1]`)}, "permissions"},
		{CreateTokenIn{Permissions: json.RawMessage(`{}`)}, "permissions"},
		{CreateTokenIn{Permissions: json.RawMessage(`null`)}, "permissions"},
		{CreateTokenIn{Permissions: json.RawMessage(`"` + strings.Repeat("x,", 1000) + `"`)}, "permissions"},
		{CreateTokenIn{ActorType: ActorUser, AgentID: "a"}, "agentId"},
		{CreateTokenIn{ActorType: ActorAgent, UserID: "a"}, "userId"},
		{CreateTokenIn{AgentID: "a", UserID: "a"}, "userId"},
	} {
		var faults Faults
		c.in.Validate(&faults)
		if faults.Empty() != (c.path == "") || !faults.Empty() && !faults.Has(c.path) {
			t.Errorf("%+v: %v", c.in, faults.Err())
		}
		if err := faults.Err(); err != nil && len(err.Error()) > 1000 {
			t.Errorf("a fault of %d bytes", len(err.Error()))
		}
	}
}

// The token and its secret are nowhere on disk in plain text, not even in the kept
// answer.
func TestCreateToken_SecretIsKeptNowhere(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := decode[Onboarded](w, w.must("", "", OnboardWorkspace, &NewWorkspaceIn{Name: "x", Slug: "home"}, "a key").Body)
	reply := w.must(home.Token.Secret, home.Workspace.ID, CreateToken, &CreateTokenIn{Name: "x"}, "k")
	for _, text := range []string{home.Token.Secret, decode[CreatedToken](w, reply.Body).Secret} {
		raw, err := base64.RawURLEncoding.DecodeString(text[kindLen:])
		if err != nil {
			t.Fatal(err)
		}
		secret := raw[32 : 32+secretLen]
		w.each(func(key, value []byte) {
			for _, b := range [][]byte{key, value} {
				if bytes.Contains(b, secret) || bytes.Contains(b, []byte(text[kindLen:])) || bytes.Contains(b, []byte(base64.StdEncoding.EncodeToString(secret))) {
					t.Errorf("the secret is on disk under %x", key)
				}
			}
		})
	}
}

func TestCreateToken_ReplayGivesTheSecretAgain(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	in := &CreateTokenIn{Name: "x"}
	first := w.must(home.Token.Secret, home.Workspace.ID, CreateToken, in, "k")
	w.restart()
	second := w.must(home.Token.Secret, home.Workspace.ID, CreateToken, in, "k")
	if !second.Replayed || second.Outcome != Created || !bytes.Equal(first.Body, second.Body) {
		t.Errorf("replayed %t: %s, first %s", second.Replayed, second.Body, first.Body)
	}
	_, err := w.ask(home.Token.Secret, home.Workspace.ID, CreateToken, &CreateTokenIn{Name: "y"}, "k")
	wantCode(t, err, CodeIdempotencyKeyReused)
	// The same key of another caller is another key.
	other := w.token(home, &CreateTokenIn{Permissions: words("admin")})
	if third := w.must(other, home.Workspace.ID, CreateToken, in, "k"); third.Replayed || bytes.Equal(first.Body, third.Body) {
		t.Error("another caller got the answer")
	}
	w.verify()
}

func TestDeleteToken(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	made := decode[CreatedToken](w, w.must(home.Token.Secret, home.Workspace.ID, CreateToken, &CreateTokenIn{Name: "x"}).Body)
	list := w.must(home.Token.Secret, home.Workspace.ID, ListTokens, &PageIn{})
	if all := decode[TokenList](w, list.Body); len(all.Tokens) != 2 || all.Tokens[0].ID != made.ID {
		t.Errorf("listed %+v", all)
	}
	if bytes.Contains(list.Body, []byte("hash")) || bytes.Contains(list.Body, []byte(`"token":`)) || bytes.Contains(list.Body, []byte("sponsor")) {
		t.Errorf("the list shows too much: %s", list.Body)
	}
	w.must(home.Token.Secret, home.Workspace.ID, DeleteToken, &DeleteTokenIn{made.ID})
	_, err := w.ask(made.Secret, home.Workspace.ID, WorkspaceByID, &None{})
	wantCode(t, err, CodeUnauthorized)
	for _, id := range []TokenID{made.ID, "x", ""} {
		_, err := w.ask(home.Token.Secret, home.Workspace.ID, DeleteToken, &DeleteTokenIn{id})
		wantCode(t, err, CodeNotFound)
	}
	w.verify()
}

// An admin of a workspace can't get access to others by making a token for a user who
// is a member there.
func TestCreateToken_ForSomebodyElse(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home, victim := w.onboard("home"), w.onboard("victim")
	stranger := victim.Workspace.OwnerID
	w.must(home.Token.Secret, home.Workspace.ID, AddMember, &AddMemberIn{UserID: Some(stranger), Role: RoleAdmin})
	forged := w.token(home, &CreateTokenIn{UserID: stranger, Permissions: words("admin")})
	w.must(forged, home.Workspace.ID, ListTokens, &PageIn{}) // valid at home
	closed := func(credential string) {
		t.Helper()
		_, err := w.ask(credential, victim.Workspace.ID, WorkspaceByID, &None{})
		wantCode(t, err, CodeNotFound)
		_, err = w.ask(credential, "", WorkspaceBySlug, &WorkspaceBySlugIn{"victim"})
		wantCode(t, err, CodeNotFound)
		_, err = w.ask(credential, victim.Workspace.ID, DeleteWorkspace, &None{})
		wantCode(t, err, CodeNotFound)
		_, err = w.ask(credential, "", CreateWorkspace, &NewWorkspaceIn{Name: "x", Slug: "x"})
		wantCode(t, err, CodeForbidden)
		if w.sees(credential, victim.Workspace.ID) {
			t.Error("the list shows the other workspace")
		}
	}
	closed(forged)
	// A token made with that token gives no access, either.
	closed(decode[CreatedToken](w, w.must(forged, home.Workspace.ID, CreateToken, &CreateTokenIn{Name: "x", Permissions: words("admin")}).Body).Secret)

	// Another admin of the home workspace does not get its owner's access elsewhere.
	_, admin := w.member(home, RoleAdmin, "admin")
	second := decode[Workspace](w, w.must(home.Token.Secret, "", CreateWorkspace, &NewWorkspaceIn{Name: "x", Slug: "second"}).Body)
	asOwner := decode[CreatedToken](w, w.must(admin, home.Workspace.ID, CreateToken, &CreateTokenIn{Name: "x", UserID: home.Workspace.OwnerID, Permissions: words("admin")}).Body).Secret
	_, err := w.ask(asOwner, second.ID, WorkspaceByID, &None{})
	wantCode(t, err, CodeNotFound)

	// Users whom this workspace created keep its tokens wherever they are members.
	bob, bobs := w.member(home, RoleMember, "write")
	w.must(victim.Token.Secret, victim.Workspace.ID, AddMember, &AddMemberIn{UserID: Some(bob)})
	w.must(bobs, victim.Workspace.ID, WorkspaceByID, &None{})
	w.must(bobs, "", CreateWorkspace, &NewWorkspaceIn{Name: "x", Slug: "bobs"})

	_, err = w.ask(home.Token.Secret, home.Workspace.ID, CreateToken, &CreateTokenIn{Name: "x", UserID: "nobody"})
	wantCode(t, err, CodeBadRequest, "userId")
	_, err = w.ask("root", home.Workspace.ID, CreateToken, &CreateTokenIn{Name: "x"})
	wantCode(t, err, CodeBadRequest, "userId")
	w.verify()
}

func TestCreateToken_Agents(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	for _, in := range []*CreateTokenIn{{ActorType: ActorAgent}, {ActorType: ActorAgent, AgentID: "bot"}, {AgentID: "bot"}} {
		in.Name = "x"
		made := decode[CreatedToken](w, w.must(home.Token.Secret, home.Workspace.ID, CreateToken, in).Body)
		c, err := ParseCredential(made.Secret)
		if err != nil {
			t.Fatal(err)
		}
		v := w.view(c.Home)
		p, err := Authenticate(&v, c)
		want := in.AgentID
		if want == "" {
			want = string(made.ID)
		}
		if err != nil || p.Type != ActorAgent || p.ID != want || !p.Confined {
			t.Errorf("%+v stands for %+v, %v", in, p, err)
		}
	}
}
