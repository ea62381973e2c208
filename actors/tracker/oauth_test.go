package tracker

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchyard/storage"
)

// client makes an OAuth client with an owner's token.
func (w *testService) client(home Onboarded, permissions string, scopes ...string) CreatedOAuthClient {
	w.Helper()
	in := &CreateOAuthClientIn{Name: "client", Permissions: words(permissions), Scopes: scopes}
	return decode[CreatedOAuthClient](w, w.must(home.Token.Secret, home.Workspace.ID, CreateOAuthClient, in).Body)
}

func basic(id, secret string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(id)+":"+url.QueryEscape(secret)))
}

// access gets an access token for a client.
func (w *testService) access(c CreatedOAuthClient, scope string) string {
	w.Helper()
	in := &OAuthTokenIn{Authorization: basic(c.ClientID, c.ClientSecret), GrantType: "client_credentials", Scope: scope}
	return decode[OAuthToken](w, w.must("", "", GrantOAuthToken, in).Body).AccessToken
}

func wantReason(t tester, err error, code Code, reason string) {
	t.Helper()
	var failure *Error
	if !errors.As(err, &failure) || failure.Code != code || failure.Reason != reason {
		t.Errorf("got %v, want %s, %s", err, code, reason)
	}
}

// A client authenticates in one of two ways.
func TestGrantOAuthToken_ClientAuthentication(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	c, other := w.client(home, "read"), w.client(home, "admin")
	gone := w.onboard("gone")
	orphan := w.client(gone, "read")
	w.must(gone.Token.Secret, gone.Workspace.ID, DeleteWorkspace, &None{})
	directory := clientIdentifier(storage.DirectoryID, storage.ID{1})
	for name, row := range map[string]struct {
		in     OAuthTokenIn
		code   Code
		reason string
	}{
		"basic":               {OAuthTokenIn{Authorization: basic(c.ClientID, c.ClientSecret)}, "", ""},
		"basic in lower case": {OAuthTokenIn{Authorization: "basic" + basic(c.ClientID, c.ClientSecret)[5:]}, "", ""},
		"basic, named again":  {OAuthTokenIn{Authorization: basic(c.ClientID, c.ClientSecret), ClientID: c.ClientID}, "", ""},
		"body":                {OAuthTokenIn{ClientID: c.ClientID, ClientSecret: c.ClientSecret}, "", ""},
		"both":                {OAuthTokenIn{Authorization: basic(c.ClientID, c.ClientSecret), ClientSecret: c.ClientSecret}, CodeBadRequest, oauthInvalidRequest},
		"two clients":         {OAuthTokenIn{Authorization: basic(c.ClientID, c.ClientSecret), ClientID: other.ClientID}, CodeBadRequest, oauthInvalidRequest},
		"none":                {OAuthTokenIn{}, CodeUnauthorized, oauthInvalidClient},
		"bearer":              {OAuthTokenIn{Authorization: "Bearer " + c.ClientSecret}, CodeUnauthorized, oauthInvalidClient},
		"no colon":            {OAuthTokenIn{Authorization: "Basic " + base64.StdEncoding.EncodeToString([]byte("x"))}, CodeUnauthorized, oauthInvalidClient},
		"broken escape":       {OAuthTokenIn{Authorization: "Basic " + base64.StdEncoding.EncodeToString([]byte("%zz:x"))}, CodeUnauthorized, oauthInvalidClient},
		"no Base64":           {OAuthTokenIn{Authorization: "Basic !"}, CodeUnauthorized, oauthInvalidClient},
		"another's secret":    {OAuthTokenIn{ClientID: c.ClientID, ClientSecret: other.ClientSecret}, CodeUnauthorized, oauthInvalidClient},
		"a token as secret":   {OAuthTokenIn{ClientID: c.ClientID, ClientSecret: home.Token.Secret}, CodeUnauthorized, oauthInvalidClient},
		"a deleted workspace": {OAuthTokenIn{ClientID: orphan.ClientID, ClientSecret: orphan.ClientSecret}, CodeUnauthorized, oauthInvalidClient},
		"the directory":       {OAuthTokenIn{ClientID: directory, ClientSecret: c.ClientSecret}, CodeUnauthorized, oauthInvalidClient},
		"password":            {OAuthTokenIn{ClientID: c.ClientID, ClientSecret: c.ClientSecret, GrantType: "password"}, CodeBadRequest, oauthUnsupported},
	} {
		in := row.in
		if in.GrantType == "" {
			in.GrantType = "client_credentials"
		}
		_, err := w.ask("", "", GrantOAuthToken, &in)
		if row.code == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var failure *Error
		if !errors.As(err, &failure) || failure.Code != row.code || failure.Reason != row.reason {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.verify()
}

// Without the client's secret nobody learns that the workspace is there, or that it is read-only.
func TestGrantOAuthToken_SecretComesFirst(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	c := w.client(home, "read")
	id, _ := storage.ParseID(c.ID)
	forged, _ := newCredential(OAuthSecret, home.Workspace.ID.raw(), id, [secretLen]byte{1})
	grant := func(secret string) error {
		t.Helper()
		_, err := w.ask("", "", GrantOAuthToken, &OAuthTokenIn{Authorization: basic(c.ClientID, secret), GrantType: "client_credentials"})
		return err
	}
	wantReason(t, grant(forged), CodeUnauthorized, oauthInvalidClient)
	w.bufferOf(home.Workspace.ID.raw()).Forbid(errReadOnly(workspaceReadOnly, "An inquiry."))
	wantReason(t, grant(forged), CodeUnauthorized, oauthInvalidClient)
	wantCode(t, grant(c.ClientSecret), CodeUnavailable)
}

// An identifier with a mistake in any place is not valid.
func TestClientIdentifier(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var workspace, client storage.ID
		copy(workspace[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "workspace"))
		copy(client[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "client"))
		workspace[6] = workspace[6]&0x0f | 0x70
		text := clientIdentifier(workspace, client)
		w, c, ok := parseClientIdentifier(text)
		if !ok || w != workspace || c != client {
			t.Fatalf("%s reads back as %v %v %t", text, w, c, ok)
		}
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		mistyped := text[:at] + string(rapid.RuneFrom([]rune("ABCxyz0_-\n")).Draw(t, "letter")) + text[at+1:]
		if _, _, ok := parseClientIdentifier(mistyped); ok && mistyped != text {
			t.Fatalf("%q was taken for %q", mistyped, text)
		}
	})
	if _, _, ok := parseClientIdentifier(clientIdentifier(storage.DirectoryID, storage.ID{})); ok {
		t.Error("the directory has a client")
	}
}

// A token has the permissions that both it and its client have.
func TestOAuth_Narrowing(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ permissions, scope, want, shown string }{
		{"read", "", "read", "read"},
		{"issues:write,read", "", "issues:write,read", "read issues:write"},
		{"admin", "read  sessions:write", "read,sessions:write", "read sessions:write"},
		{"admin", "robots", "admin", "admin robots"},
		{"write", "robots issues:read", "issues:read", "robots issues:read"},
		{"read", "write", "", ""},
		{"read", "strange", "", ""},
	} {
		p, _, _ := ParsePermissions(row.permissions)
		got, shown, err := narrow(&oauthSecret{Permissions: p, Scopes: []string{"robots", "write"}}, row.scope)
		if row.want == "" {
			wantReason(t, err, CodeBadRequest, oauthInvalidScope)
			continue
		}
		if want, _, _ := ParsePermissions(row.want); err != nil || got != want || shown != row.shown {
			t.Errorf("%+v: %b %q %v", row, got, shown, err)
		}
	}
}

// Access tokens expire after an hour, and are swept then.
func TestAccessTokens_Expire(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	c := w.client(home, "read")
	first := w.access(c, "")
	w.pass(30 * time.Minute)
	second := w.access(c, "")
	w.must(first, home.Workspace.ID, WorkspaceByID, &None{})
	w.verify()
	w.pass(30 * time.Minute)
	_, err := w.ask(first, home.Workspace.ID, WorkspaceByID, &None{})
	wantCode(t, err, CodeUnauthorized)
	w.must(second, home.Workspace.ID, WorkspaceByID, &None{})
	w.verify()
	left := func() (n int) {
		w.each(func(key, _ []byte) {
			if _, _, table, _, err := storage.SplitKey(key); err == nil && (table == accessTokenTable || table == accessTokenByExpiry) {
				n++
			}
		})
		return n
	}
	w.pass(15 * time.Minute)
	if n := left(); n != 2 {
		t.Errorf("%d rows of tokens, one of which expired", n)
	}
	w.must(home.Token.Secret, home.Workspace.ID, DeleteOAuthClient, &RecordIn{string(c.ID)})
	w.verify()
	w.pass(2 * time.Hour)
	if n := left(); n != 0 {
		t.Errorf("%d rows of expired tokens are left", n)
	}
	w.verify()
	w.must(home.Token.Secret, home.Workspace.ID, DeleteWorkspace, &None{})
	if n := w.traces(home.Workspace.ID); n != 0 {
		t.Errorf("%d keys of a deleted workspace", n)
	}
}

// The number of stored access tokens is limited; expired ones make room.
func TestAccessTokens_Bounded(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	c := w.client(home, "read")
	w.access(c, "")
	crowd := func(n uint64) {
		w.must("root", home.Workspace.ID, NewCommand[None, None]("crowd", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
			return Reply{}, tx.SetCounter(recordCountTable, recordCountSubject(accessTokenTable), n)
		}), &None{})
	}
	crowd(quotas[accessTokenTable].most)
	_, err := w.ask("", "", GrantOAuthToken, &OAuthTokenIn{ClientID: c.ClientID, ClientSecret: c.ClientSecret, GrantType: "client_credentials"})
	wantCode(t, err, CodeTooManyRequests)
	crowd(1)
	w.access(c, "")
	w.verify()
}

// A client can't have more permissions than its maker, at its creation or after a
// change.
func TestOAuthClients_NoMoreThanTheMaker(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	boss := w.access(w.client(home, "admin"), "")
	made := decode[CreatedOAuthClient](w, w.must(boss, home.Workspace.ID, CreateOAuthClient, &CreateOAuthClientIn{Name: "x", Permissions: words("write")}).Body)
	token := w.access(made, "")
	_, err := w.ask(token, home.Workspace.ID, CreateOAuthClient, &CreateOAuthClientIn{Name: "x"})
	wantCode(t, err, CodeForbidden)
	_, err = w.ask(token, "", CreateWorkspace, &NewWorkspaceIn{Name: "x", Slug: "x"})
	wantCode(t, err, CodeForbidden)
	w.must(w.token(home, &CreateTokenIn{Permissions: words("admin")}), home.Workspace.ID, PatchOAuthClient, &PatchOAuthClientIn{ID: string(made.ID), Permissions: words("issues:read")})
	_, err = w.ask(token, home.Workspace.ID, WorkspaceByID, &None{})
	wantCode(t, err, CodeForbidden)
	w.must(token, home.Workspace.ID, ListIssues, &ListIssuesIn{IssueFilter: IssueFilter{}})
	w.verify()
}

// Neither secrets nor tokens are on disk in plain text.
func TestOAuth_SecretsAreKeptNowhere(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	c := w.client(home, "read")
	conn := decode[CreatedSCIMConnection](w, w.must(home.Token.Secret, home.Workspace.ID, CreateSCIMConnection, &CreateSCIMConnectionIn{Scopes: []string{"scim.users.read"}}, "k").Body)
	for _, text := range []string{c.ClientSecret, w.access(c, ""), conn.Token} {
		raw, err := base64.RawURLEncoding.DecodeString(text[kindLen:])
		if err != nil {
			t.Fatal(err)
		}
		secret := string(raw[32 : 32+secretLen])
		w.each(func(key, value []byte) {
			if strings.Contains(string(value), secret) || strings.Contains(string(value), text[kindLen:]) || strings.Contains(string(value), base64.StdEncoding.EncodeToString([]byte(secret))) {
				t.Errorf("%s is on disk under %x", text[:kindLen], key)
			}
		})
	}
}

// An answer with a secret can only be repeated to the token that first got it.
func TestOAuth_ReplayUnderTheNextToken(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("home")
	c := w.client(home, "admin")
	first, second := w.access(c, ""), w.access(c, "")
	in := &CreateTokenIn{Name: "x", AgentID: "bot"}
	w.must(first, home.Workspace.ID, CreateToken, in, "k")
	if again := w.must(first, home.Workspace.ID, CreateToken, in, "k"); !again.Replayed {
		t.Error("not replayed")
	}
	_, err := w.ask(second, home.Workspace.ID, CreateToken, in, "k")
	wantCode(t, err, CodeConflict)
	team := &CreateTeamIn{Name: "x", Key: "X"}
	w.must("root", home.Workspace.ID, PutTeamMember, &TeamMemberIn{home.Team.ID, UserID(c.ID)})
	w.must(first, home.Workspace.ID, CreateTeam, team, "t")
	if again := w.must(second, home.Workspace.ID, CreateTeam, team, "t"); !again.Replayed {
		t.Error("the client's own answer is not found under its next token")
	}
	w.verify()
}
