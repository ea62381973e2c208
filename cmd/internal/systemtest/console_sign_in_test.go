package systemtest

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"switchyard/cmd/internal/node"
	"switchyard/console/signin"
	"switchyard/console/signin/oidctest"
)

func newSignInWorld(t *testing.T, slug string) (*consoleWorld, *oidctest.Provider) {
	t.Helper()
	idp := oidctest.New(t)
	return newConsoleWorld(t, slug, func(c *node.Config) {
		c.OIDC = signin.Config{Issuer: idp.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret}
	}), idp
}

func TestSignIn_AMemberWithAVerifiedAddress(t *testing.T) {
	t.Parallel()
	w, idp := newSignInWorld(t, "acme")
	ada := w.member(t, map[string]any{"name": "Ada", "email": "Ada@Acme.example", "role": "guest"})
	b := newTab(t, w.url)
	if a := b.wants(401, "GET", "/console/session", nil); !strings.Contains(string(a.Body), `"oidc":true`) {
		t.Errorf("%s", a.Body)
	}
	idp.As(person("ada-1", "ada@acme.example"))
	if at := b.confirmed("/console/acme/issues?view=list"); at != "/console/acme/issues?view=list" {
		t.Fatalf("it leads to %s", at)
	}
	s := b.session()
	if s.ActorID != ada || *s.Role != "guest" || !s.SignIn.OIDC || len(b.cookies) != 1 {
		t.Errorf("%+v %v", s, b.cookies)
	}
	b.wants(403, "GET", w.path+"/tokens", nil) // the role decides
	// Another sign-in in the same browser ends the session.
	earlier := newTab(t, w.url)
	earlier.cookies = maps.Clone(b.cookies)
	b.confirmed("/console/acme/issues")
	b.session()
	earlier.wants(401, "GET", "/console/session", nil)
	// The only workspace with the person is found without its name.
	if at := newTab(t, w.url).confirmed("/console/"); at != "/console/" {
		t.Errorf("it leads to %s", at)
	}
	// The session ends with the membership.
	if a, err := w.Do(t.Context(), "DELETE", w.path+"/members/"+ada, nil); err != nil || a.Status != 204 {
		t.Fatalf("%v %v", a, err)
	}
	b.wants(401, "GET", "/console/session", nil)
	if n := w.sessions(t); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func TestSignIn_AProvisionedUser(t *testing.T) {
	t.Parallel()
	w, idp := newSignInWorld(t, "scim")
	var conn struct{ Token string }
	if err := w.Decode(t.Context(), "POST", w.path+"/scim/connections", map[string]any{"scopes": []string{"scim.users.read", "scim.users.write"}}, 201, &conn); err != nil {
		t.Fatal(err)
	}
	base := "/scim/v2/" + strings.TrimPrefix(w.path, "/workspaces/")
	as := []string{"Authorization", "Bearer " + conn.Token}
	var ada, ben struct{ ID string }
	if err := w.Decode(t.Context(), "POST", base+"/Users", map[string]any{"userName": "ada", "externalId": "Subject-1", "emails": []any{map[string]any{"value": "ada@other.example"}}}, 201, &ada, as...); err != nil {
		t.Fatal(err)
	}
	if err := w.Decode(t.Context(), "POST", base+"/Users", map[string]any{"userName": "ben@acme.example"}, 201, &ben, as...); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		who  oidctest.Claims
		user string
	}{
		{oidctest.Claims{"sub": "Subject-1"}, ada.ID},
		{person("Subject-2", "BEN@acme.example"), ben.ID},
		{oidctest.Claims{"sub": "subject-1"}, ""},
		{oidctest.Claims{"sub": "ben@acme.example", "preferred_username": "ben@acme.example"}, ""},
	} {
		idp.As(row.who)
		b := newTab(t, w.url)
		at := b.confirmed("/console/scim/issues")
		if row.user == "" {
			if at != "/console/scim/issues?error=sign-in-unknown" || len(b.cookies) != 0 {
				t.Errorf("%v: %s", row.who, at)
			}
			continue
		}
		if s := b.session(); s.ActorID != row.user {
			t.Errorf("%v is %s", row.who, s.ActorID)
		}
	}
	// A user who is deactivated gets in no more.
	idp.As(oidctest.Claims{"sub": "Subject-1"})
	b := newTab(t, w.url)
	b.confirmed("/console/scim/issues")
	patch := map[string]any{"schemas": []string{"urn:ietf:params:scim:api:messages:2.0:PatchOp"}, "Operations": []any{map[string]any{"op": "replace", "value": map[string]any{"active": false}}}}
	if a, err := w.Do(t.Context(), "PATCH", base+"/Users/"+ada.ID, patch, as...); err != nil || a.Status != 200 {
		t.Fatalf("%v %v", a, err)
	}
	b.wants(401, "GET", "/console/session", nil)
	if at := b.confirmed("/console/scim/issues"); !strings.HasSuffix(at, "?error=sign-in-unknown") {
		t.Errorf("a deactivated user: %s", at)
	}
}

func TestSignIn_Refusals(t *testing.T) {
	t.Parallel()
	w, idp := newSignInWorld(t, "refusals")
	w.member(t, map[string]any{"name": "Ada", "email": "ada@acme.example", "role": "member"})
	w.member(t, map[string]any{"name": "Twin", "email": "twin@acme.example", "role": "member"})
	w.member(t, map[string]any{"name": "Twin", "email": "twin@acme.example", "role": "admin"})
	w.member(t, map[string]any{"name": "Kay", "email": "kay@acme.example", "role": "member"})
	for _, row := range []struct {
		who      oidctest.Claims
		to, code string
	}{
		{oidctest.Claims{"sub": "a", "email": "ada@acme.example", "email_verified": false}, "/console/refusals/issues", "unknown"},
		{oidctest.Claims{"sub": "a", "email": "ada@acme.example"}, "/console/refusals/issues", "unknown"},
		{person("a", "ada@acme.example."), "/console/refusals/issues", "unknown"},
		{person("a", "twin@acme.example"), "/console/refusals/issues", "unknown"},
		{person("a", "\u212aay@acme.example"), "/console/refusals/issues", "unknown"}, // the Kelvin sign folds to k
		{person("a", "ada@acme.example"), "/console/another/issues", "unknown"},
		{person("a", ""), "/console/", "unknown"},
	} {
		idp.As(row.who)
		b := newTab(t, w.url)
		if at := b.confirmed(row.to); at != row.to+"?error=sign-in-"+row.code || len(b.cookies) != 0 {
			t.Errorf("%v: %s %v", row.who, at, b.cookies)
		}
	}
	idp.As(person("a", "ada@acme.example"))
	b, victim := newTab(t, w.url), newTab(t, w.url)
	// An answer that another browser was given signs nobody in (login CSRF), nor does an
	// answer without a sign-in that this browser began.
	attackers := b.answer("/console/")
	if at := victim.location(victim.send("GET", "/console/callback?"+attackers.Encode(), nil)); at != "/console/?error=sign-in-expired" || len(victim.cookies) != 0 {
		t.Errorf("another browser's answer: %s %v", at, victim.cookies)
	}
	victim.answer("/console/")
	if at := victim.location(victim.send("GET", "/console/callback?"+attackers.Encode(), nil)); at != "/console/?error=sign-in-expired" || len(victim.cookies) != 0 {
		t.Errorf("another browser's answer to its own sign-in: %s %v", at, victim.cookies)
	}
	// The same answer twice, with the cookie of the sign-in kept by an attacker.
	kept := map[string]string{}
	for name, value := range b.cookies {
		kept[name] = value
	}
	if at := b.location(b.send("GET", "/console/callback?"+attackers.Encode(), nil)); at != "/console/" {
		t.Fatalf("the first time: %s", at)
	}
	b.cookies = kept
	if at := b.location(b.send("GET", "/console/callback?"+attackers.Encode(), nil)); at != "/console/?error=sign-in-refused" || len(b.cookies) != 0 {
		t.Errorf("again: %s %v", at, b.cookies)
	}
	// The way back leads nowhere else.
	for _, to := range []string{"//evil.example", "https://evil.example", "/console/..//evil.example", "/\\evil.example", "javascript:alert(1)"} {
		if at := newTab(t, w.url).confirmed(to); at != "/console/" {
			t.Errorf("%s leads to %s", to, at)
		}
	}
	idp.Down(true)
	if at := b.location(b.send("GET", "/console/callback?code=x&state=y", nil)); at != "/console/?error=sign-in-expired" {
		t.Errorf("without a cookie: %s", at)
	}
}

// A member with the id of a user of other workspaces gets into the one workspace alone, since
// the address is the word of that workspace's admin.
func TestSignIn_IsConfined(t *testing.T) {
	t.Parallel()
	w, idp := newSignInWorld(t, "mallory")
	victim := NewClient(w.url, "", 1)
	defer victim.HTTP.CloseIdleConnections()
	other, err := victim.Onboard(t.Context(), "Victim", "victim")
	if err != nil {
		t.Fatal(err)
	}
	victim.Token = other.Token.Token
	var ws struct{ OwnerID string }
	if err := victim.Decode(t.Context(), "GET", "/workspaces/"+other.Workspace.ID, nil, 200, &ws); err != nil {
		t.Fatal(err)
	}
	w.member(t, map[string]any{"userId": ws.OwnerID, "email": "mallory@evil.example", "role": "admin"})
	idp.As(person("mallory-1", "mallory@evil.example"))
	b := newTab(t, w.url)
	if at := b.confirmed("/console/mallory/issues"); at != "/console/mallory/issues" {
		t.Fatalf("it leads to %s", at)
	}
	if s := b.session(); len(s.Workspaces) != 1 || s.Workspaces[0].Slug != "mallory" {
		t.Errorf("%+v", s)
	}
	b.wants(http.StatusNotFound, "GET", "/workspaces/"+other.Workspace.ID+"/issues", nil)
	// The same address in two workspaces: the address has to name one.
	if err := victim.Decode(t.Context(), "POST", "/workspaces/"+other.Workspace.ID+"/members", map[string]any{"email": "mallory@evil.example", "role": "guest"}, 201, nil); err != nil {
		t.Fatal(err)
	}
	if at := newTab(t, w.url).confirmed("/console/"); at != "/console/?error=sign-in-several" {
		t.Errorf("without a name: %s", at)
	}
}
