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
	f := NewFleet(binary(t), t.TempDir(), "--shards", "2")
	f.keepLogs(t)
	urls := map[string]string{} // by name
	f.form(ctx, t, 3, func(n int) []string {
		url := "http://" + f.address(n, 8080)
		urls[fmt.Sprintf("node-%d", n)] = url
		return []string{"--client-url", url + "/"}
	})
	o, err := f.members[0].Client("").onboardInsisting(ctx, "Owned", "owned")
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
	// settle asks the living nodes until each of them names the owner, to callers whom it
	// knows and to others, and the owner names nobody. It returns the owner's name.
	settle := func() string {
		t.Helper()
		for {
			alive := f.alive()
			owner, err := alive[0].Owner(ctx, o.Workspace.ID)
			if err != nil {
				t.Fatal(err)
			}
			var wrong []string
			for _, m := range alive {
				for token, status := range map[string]int{o.Token.Token: 200, "swy_unknown": 401} {
					want := urls[owner]
					if m.Name == owner {
						want = ""
					}
					if got := ask(m, token, status); got != want {
						wrong = append(wrong, fmt.Sprintf("%s names %q in a %d, want %q", m.Name, got, status, want))
					}
				}
			}
			if len(wrong) == 0 {
				return owner
			}
			if !pause(ctx, 20*time.Millisecond) {
				t.Fatal(strings.Join(wrong, "; "))
			}
		}
	}
	first := settle()
	for _, m := range f.members {
		if m.Name == first {
			m.Kill()
		}
	}
	if next := settle(); next == first {
		t.Errorf("the owner is still %s, which was killed", next)
	}
}
