package systemtest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// ownerHeader names the node that an answer came from.
const ownerHeader = "Switchyard-Owner"

// TestOwner_IsNamedAndFollowed asks every node of a cluster for the same workspace:
// those that forward the request name the owner's URL, which then answers itself. When
// the owner is killed the others name the next one.
func TestOwner_IsNamedAndFollowed(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	f := NewFleet(binary(t), t.TempDir(), "--shards", "2", "--bootstrap-expect", "3")
	f.keepLogs(t)
	var seeds []string
	for n := range 3 {
		seeds = append(seeds, f.address(n+1, 7946))
	}
	urls := map[string]string{} // by name
	for n := range 3 {
		name := fmt.Sprintf("node-%d", n+1)
		m, err := f.Add(name, "--join", strings.Join(seeds, ","), "--client-url", "http://"+f.address(n+1, 8080)+"/")
		if err != nil {
			t.Fatal(err)
		}
		urls[name] = m.URL
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range f.members {
		if err := m.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.members[0].Await(ctx, "every shard has three voters", Level(3)); err != nil {
		t.Fatal(err)
	}
	o, err := f.members[0].Client("").Onboard(ctx, "Owned", "owned")
	if err != nil {
		t.Fatal(err)
	}
	path := "/workspaces/" + o.Workspace.ID + "/issues"
	// ask asks a node, over a retry while an owner changes, and gives what it names.
	ask := func(m *Member, token string, status int) string {
		t.Helper()
		for {
			answer, err := m.Client(token).Do(ctx, "GET", path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if answer.Status == status {
				return answer.Header.Get(ownerHeader)
			}
			if answer.Status != http.StatusServiceUnavailable {
				t.Fatalf("%s: %d %s", m.Name, answer.Status, answer.Body)
			}
		}
	}
	owner, err := f.members[0].Owner(ctx, o.Workspace.ID)
	if err != nil {
		t.Fatal(err)
	}
	var first *Member
	for _, m := range f.members {
		want := urls[owner]
		if m.Name == owner {
			first, want = m, ""
		}
		if got := ask(m, o.Token.Token, 200); got != want {
			t.Errorf("%s names the owner %q, want %q", m.Name, got, want)
		}
		if got := ask(m, "swy_unknown", 401); got != want {
			t.Errorf("%s refuses a token and names the owner %q, want %q", m.Name, got, want)
		}
	}
	first.Kill()
	named := map[string]string{}
	for _, m := range f.members {
		if m != first {
			named[m.Name] = ask(m, o.Token.Token, 200)
		}
	}
	for name, url := range named {
		if url == "" {
			continue // it is the owner
		}
		next := ""
		for other := range named {
			if urls[other] == url {
				next = other
			}
		}
		if next == "" || next == name || named[next] != "" {
			t.Errorf("%s names the owner %q; all: %v", name, url, named)
		}
	}
	if len(named) != 2 || named["node-1"] == named["node-2"] && first.Name == "node-3" {
		t.Errorf("after the owner was killed: %v", named)
	}
}
