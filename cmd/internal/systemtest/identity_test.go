package systemtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// identity is a workspace with an OAuth client and a SCIM connection.
type identity struct {
	id, admin string
	client    struct{ ID, ClientID, ClientSecret string }
	scim      struct{ Token string }
}

func newIdentity(ctx context.Context, c *Client, slug string) (w identity, err error) {
	o, err := c.onboardInsisting(ctx, slug, slug)
	if err != nil {
		return w, err
	}
	w.id, w.admin = o.Workspace.ID, o.Token.Token
	as := []string{"Authorization", "Bearer " + w.admin}
	if err := c.Decode(ctx, "POST", "/workspaces/"+w.id+"/oauth-clients", map[string]string{"name": "c", "permissions": "write"}, http.StatusCreated, &w.client, as...); err != nil {
		return w, err
	}
	scopes := map[string][]string{"scopes": {"scim.users.read", "scim.users.write"}}
	return w, c.Decode(ctx, "POST", "/workspaces/"+w.id+"/scim/connections", scopes, http.StatusCreated, &w.scim, as...)
}

// access gets an access token from a node.
func (w *identity) access(ctx context.Context, c *Client) (token string, status int, err error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	req, err := http.NewRequestWithContext(ctx, "POST", c.URL+"/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(url.QueryEscape(w.client.ClientID), url.QueryEscape(w.client.ClientSecret))
	res, err := c.HTTP.Do(req)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "", 0, err
	}
	var out struct {
		Token string `json:"access_token"`
	}
	err = json.Unmarshal(body, &out)
	return out.Token, res.StatusCode, err
}

// looks gives the status of reading the workspace with a token at a node.
func (w *identity) looks(ctx context.Context, c *Client, token string) (int, error) {
	answer, err := c.Do(ctx, "GET", "/workspaces/"+w.id, nil, "Authorization", "Bearer "+token)
	return answer.Status, err
}

// TestCluster_IdentityThroughEveryNode gets and uses access tokens, and provisions,
// through nodes that serve the workspace and nodes that don't, across the death of
// the one that does.
func TestCluster_IdentityThroughEveryNode(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "4")
	var all []identity
	for i, m := range f.members {
		for j := range 2 {
			w, err := newIdentity(ctx, m.Client(""), fmt.Sprintf("identity-%d-%d", i, j))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, w)
		}
	}
	tokens := map[string][]string{}
	for _, w := range all {
		for i, m := range f.members {
			token, status, err := w.access(ctx, m.Client(""))
			if err != nil || status != http.StatusOK {
				t.Fatalf("a token from %s: %d, %v", m.Name, status, err)
			}
			tokens[w.id] = append(tokens[w.id], token)
			user := map[string]string{"userName": fmt.Sprint("user", i)}
			if err := m.Client(w.scim.Token).Decode(ctx, "POST", "/scim/v2/"+w.id+"/Users", user, http.StatusCreated, nil); err != nil {
				t.Error(err)
			}
		}
		for _, m := range f.members {
			for _, token := range tokens[w.id] {
				if status, err := w.looks(ctx, m.Client(""), token); err != nil || status != http.StatusOK {
					t.Errorf("at %s: %d, %v", m.Name, status, err)
				}
			}
		}
	}
	w := all[0]
	owner, err := f.members[0].Owner(ctx, w.id)
	if err != nil {
		t.Fatal(err)
	}
	var left []*Member
	for _, m := range f.members {
		if m.Name == owner {
			m.Kill()
		} else {
			left = append(left, m)
		}
	}
	for _, m := range left {
		c := m.Client("")
		token := ""
		for token == "" {
			got, status, err := w.access(ctx, c)
			switch {
			case err != nil:
				t.Fatal(err)
			case status == http.StatusOK:
				token = got
			case status != http.StatusServiceUnavailable:
				t.Fatalf("after the owner's death %s answers %d", m.Name, status)
			}
		}
		for _, token := range append(tokens[w.id], token) {
			if status, err := w.looks(ctx, c, token); err != nil || status != http.StatusOK {
				t.Errorf("at %s, after the owner's death: %d, %v", m.Name, status, err)
			}
		}
		var users struct{ TotalResults int }
		if err := m.Client(w.scim.Token).Decode(ctx, "GET", "/scim/v2/"+w.id+"/Users", nil, http.StatusOK, &users); err != nil || users.TotalResults != 3 {
			t.Errorf("%d users at %s, %v", users.TotalResults, m.Name, err)
		}
	}
	if err := left[0].Client(w.admin).Decode(ctx, "DELETE", "/workspaces/"+w.id+"/oauth-clients/"+w.client.ID, nil, http.StatusNoContent, nil); err != nil {
		t.Fatal(err)
	}
	for _, m := range left {
		for _, token := range tokens[w.id] {
			if status, err := w.looks(ctx, m.Client(""), token); err != nil || status != http.StatusUnauthorized {
				t.Errorf("at %s, a deleted client's token: %d, %v", m.Name, status, err)
			}
		}
	}
}
