package consoletest

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"switchyard/cmd/internal/systemtest"
)

// rootToken is the operator's token of the services under test.
const rootToken = "root-of-a-console-test-0123456789"

// object is a JSON object that tests send.
type object = map[string]any

// service is a node, or one of a cluster, with a workspace.
type service struct {
	t    testing.TB
	url  string
	path string // of the workspace in the API
	slug string
	// token is that of the workspace's first admin.
	token string
}

// launch starts a node alone, without a workspace. It ends with the test.
func launch(ctx context.Context, t testing.TB, flags ...string) *service {
	t.Helper()
	flags = append([]string{"--shards", "2"}, flags...)
	p, err := systemtest.Launch(ctx, shared.built.switchyard, t.TempDir(), []string{"SWITCHYARD_ROOT_TOKEN=" + rootToken}, flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("the node printed: %s", p.Output())
		}
	})
	return &service{t: t, url: p.URL}
}

// onboarded starts a node alone with the workspace Acme.
func onboarded(ctx context.Context, t testing.TB, flags ...string) *service {
	t.Helper()
	s := launch(ctx, t, flags...)
	s.onboard(ctx, "Acme", "acme")
	return s
}

// onboard makes a workspace and becomes its admin.
func (s *service) onboard(ctx context.Context, name, slug string) {
	s.t.Helper()
	o, err := systemtest.NewClient(s.url, "", 1).Onboard(ctx, name, slug)
	if err != nil {
		s.t.Fatal(err)
	}
	s.path, s.slug, s.token = "/workspaces/"+o.Workspace.ID, slug, o.Token.Token
}

// page is the address of one of the workspace's pages.
func (s *service) page(rest string) string { return "/console/" + s.slug + "/" + rest }

// send sends a request as the admin and returns the answer's object; a status of 300 or more fails the test.
// path is that of the API below the workspace.
func (s *service) send(ctx context.Context, method, path string, body any) object {
	s.t.Helper()
	return s.sendAs(ctx, s.token, method, s.path+path, body)
}

// sendAs sends a request with a token. path is the whole one.
func (s *service) sendAs(ctx context.Context, token, method, path string, body any) object {
	s.t.Helper()
	c := systemtest.NewClient(s.url, token, 1)
	defer c.HTTP.CloseIdleConnections()
	answer, err := c.Do(ctx, method, path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if answer.Status >= http.StatusMultipleChoices {
		s.t.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Body)
	}
	got := object{}
	if len(answer.Body) > 0 {
		if err := json.Unmarshal(answer.Body, &got); err != nil {
			s.t.Fatalf("%s %s: %v in %s", method, path, err, answer.Body)
		}
	}
	return got
}

// member adds a person and returns a token of theirs with these permissions.
func (s *service) member(ctx context.Context, name, role, permissions string) string {
	s.t.Helper()
	added := s.send(ctx, "POST", "/members", object{"name": name, "email": strings.ToLower(name) + "@acme.example", "role": role})
	token := s.send(ctx, "POST", "/tokens", object{"name": name, "userId": added["userId"], "permissions": permissions})
	return token["token"].(string)
}

// issue files an issue and returns it.
func (s *service) issue(ctx context.Context, title string, fields object) object {
	s.t.Helper()
	body := object{"title": title}
	maps.Copy(body, fields)
	return s.send(ctx, "POST", "/issues", body)
}
