package actors

import (
	"encoding/json"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// client makes an OAuth client and gives its identifier and secret.
func (b *testEngine) client(o onboarded, permissions string) tracker.CreatedOAuthClient {
	b.t.Helper()
	req := b.admitted(o.id, o.credential, tracker.CreateOAuthClient)
	reply, err := b.engine.Do(req, tracker.CreateOAuthClient, &tracker.CreateOAuthClientIn{Name: "c", Permissions: []byte(`"` + permissions + `"`)})
	if err != nil {
		b.t.Fatal(err)
	}
	var out tracker.CreatedOAuthClient
	if err := json.Unmarshal(reply.Body, &out); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// access gets an access token for a client.
func (b *testEngine) access(c tracker.CreatedOAuthClient) string {
	b.t.Helper()
	req := b.admitted(storage.ID{}, "", tracker.GrantOAuthToken)
	reply, err := b.engine.Do(req, tracker.GrantOAuthToken, &tracker.OAuthTokenIn{
		GrantType: "client_credentials", ClientID: url.QueryEscape(c.ClientID), ClientSecret: url.QueryEscape(c.ClientSecret),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	var out tracker.OAuthToken
	if err := json.Unmarshal(reply.Body, &out); err != nil {
		b.t.Fatal(err)
	}
	return out.AccessToken
}

// An access token is refused from its last millisecond on, cached or not.
func TestAdmit_ExpiredTokenIsRefused(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	start := time.Date(2026, 11, 20, 21, 30, 0, 0, time.UTC)
	b := setup(t, func(c *Config) {
		c.OpenOnboarding = true
		c.Clock = func() time.Time { return start.Add(time.Duration(ahead.Load())) }
	})
	mine := b.onboard("mine")
	client := b.client(mine, "write")
	op := needing(tracker.Write, "")
	token := b.access(client)
	found := b.engine.Stats().CallersFound
	for range 3 {
		b.admitted(mine.id, token, op)
	}
	if b.engine.Stats().CallersFound == found {
		t.Error("the client is not remembered")
	}
	ahead.Store(int64(time.Hour - time.Millisecond))
	b.admitted(mine.id, token, op)
	ahead.Store(int64(time.Hour))
	for range 2 {
		_, err := b.admit(mine.id, token, op)
		wantCode(t, err, tracker.CodeUnauthorized)
		_, err = b.admit(workspaceNumber(1), token, op)
		wantCode(t, err, tracker.CodeUnauthorized)
		_, err = b.admit(storage.ID{}, token, needing(tracker.Identified, ""))
		wantCode(t, err, tracker.CodeUnauthorized)
	}
	b.admitted(mine.id, b.access(client), op)
}

// The next request with a deleted client's token is refused, even if its caller is
// cached.
func TestAdmit_DeletedClientStopsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.OpenOnboarding = true })
	mine := b.onboard("mine")
	op := needing(tracker.Read, "")
	for range 10 {
		client := b.client(mine, "read")
		token := b.access(client)
		for range 3 {
			b.admitted(mine.id, token, op)
		}
		req := b.admitted(mine.id, mine.credential, tracker.DeleteOAuthClient)
		if _, err := b.engine.Do(req, tracker.DeleteOAuthClient, &tracker.RecordIn{ID: string(client.ID)}); err != nil {
			t.Fatal(err)
		}
		_, err := b.admit(mine.id, token, op)
		wantCode(t, err, tracker.CodeUnauthorized)
	}
}

// A SCIM token is valid for SCIM operations of its workspace, within its scopes. No
// other token except for the operator's is valid for these.
func TestAdmit_SCIM(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.OpenOnboarding, c.RootToken = true, testRoot })
	mine, other := b.onboard("mine"), b.onboard("other")
	req := b.admitted(mine.id, mine.credential, tracker.CreateSCIMConnection)
	reply, err := b.engine.Do(req, tracker.CreateSCIMConnection, &tracker.CreateSCIMConnectionIn{Scopes: []string{"scim.users.read"}})
	if err != nil {
		t.Fatal(err)
	}
	var made tracker.CreatedSCIMConnection
	if err := json.Unmarshal(reply.Body, &made); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		workspace  storage.ID
		credential string
		op         *tracker.Op
		want       tracker.Code
	}{
		{mine.id, made.Token, tracker.ListSCIMUsers, ""},
		{mine.id, made.Token, tracker.SCIMServiceProvider, ""},
		{mine.id, made.Token, tracker.CreateSCIMUser, tracker.CodeForbidden},
		{mine.id, made.Token, tracker.ListSCIMGroups, tracker.CodeForbidden},
		{other.id, made.Token, tracker.ListSCIMUsers, tracker.CodeNotFound},
		{mine.id, made.Token, tracker.WorkspaceByID, tracker.CodeUnauthorized},
		{mine.id, made.Token, needing(tracker.Admin, ""), tracker.CodeUnauthorized},
		{storage.ID{}, made.Token, needing(tracker.Identified, ""), tracker.CodeUnauthorized},
		{mine.id, mine.credential, tracker.ListSCIMUsers, tracker.CodeUnauthorized},
		{mine.id, testRoot, tracker.CreateSCIMUser, ""},
	} {
		for range 2 {
			_, err := b.admit(row.workspace, row.credential, row.op)
			if row.want == "" {
				if err != nil {
					t.Errorf("%s: %v", row.op.Name, err)
				}
				continue
			}
			wantCode(t, err, row.want)
		}
	}
}
