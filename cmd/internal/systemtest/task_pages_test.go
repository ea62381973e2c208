package systemtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"
)

// Ids that stand for workspaces in the pages.
const (
	pageWorkspace = "01931f6e-7a3c-7def-8123-456789abcdef"
	pageExported  = "01931f6e-7a3c-7def-8123-456789abcd00"
)

// TestTaskPages runs every command of the pages for operators as a new operator would, one page after
// another: install, watch, upgrade, move, operate, lose a majority. docs/backup.md and docs/performance.md have
// tests of their own.
func TestTaskPages(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 3*time.Minute)
	defer cancel()
	m := newMachines(ctx, t)

	m.page("install.md")
	text, err := os.ReadFile(m.dir("node-1", "etc", "switchyard", "root-token"))
	if err != nil {
		t.Fatal(err)
	}
	token := string(bytes.TrimSpace(text))
	one := m.node("node-1", token)
	if err := one.Await(ctx, "three nodes hold each shard", Level(3)); err != nil {
		t.Fatal(err)
	}
	text, err = os.ReadFile(m.dir("node-1", "acme.json"))
	if err != nil {
		t.Fatal(err)
	}
	var acme Onboarded
	if err := json.Unmarshal(text, &acme); err != nil {
		t.Fatal(err)
	}
	exported, err := one.Client(token).onboardInsisting(ctx, "Exported", "exported")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := one.Client(token).onboardInsisting(ctx, "Kept", "kept")
	if err != nil {
		t.Fatal(err)
	}
	issues := map[string]string{}
	for _, o := range []Onboarded{acme, exported, kept} {
		issues[o.Workspace.ID] = "/workspaces/" + o.Workspace.ID + "/issues/" + one.Client(o.Token.Token).createInsisting(ctx, t, o.Workspace.ID, "First")
	}
	// there proves that a node answers with what was written before.
	there := func(base, token string, o Onboarded) {
		t.Helper()
		if err := NewClient(base, token, 1).Decode(ctx, "GET", issues[o.Workspace.ID], nil, http.StatusOK, nil); err != nil {
			t.Error(err)
		}
	}

	m.page("watch.md", "seconds=30", "seconds=1")
	m.page("upgrade.md")
	if err := one.Await(ctx, "three nodes hold each shard again", Level(3)); err != nil {
		t.Fatal(err)
	}
	there(one.URL, acme.Token.Token, acme)

	const newToken = "operator-of-the-new-cluster"
	if err := os.WriteFile(m.dir("operator", "new-root-token"), []byte(newToken), 0o600); err != nil {
		t.Fatal(err)
	}
	m.sh("new", "switchyard serve --data new --http 10.0.1.1:8080 --metrics 10.0.1.1:9090 --root-token-file "+m.dir("operator", "new-root-token"))
	m.page("move.md", pageWorkspace, acme.Workspace.ID, pageExported, exported.Workspace.ID)
	moved := "http://" + m.net[1] + "1:8080"
	there(moved, acme.Token.Token, acme)
	there(moved, newToken, exported)

	m.page("operations.md", pageWorkspace, kept.Workspace.ID)
	// The removed node serves until the new one has its replicas.
	level := Level(3)
	replaced := func(v ClusterView) bool {
		for _, n := range v.Nodes {
			if n.Name == "node-3" {
				return false
			}
		}
		return len(v.Nodes) == 3 && level(v)
	}
	if err := one.Await(ctx, "three nodes hold each shard after one was replaced", replaced); err != nil {
		t.Fatal(err)
	}

	// The page's commands are in the cluster's audit.
	for action, want := range map[string]string{"node.drained": "node-3", "node.undrained": "node-3", "node.removed": "node-3", "cluster.read_only": "service", "limit.*": kept.Workspace.ID} {
		var page struct {
			Entries []struct {
				Target struct{ ID string }
				Actor  struct{ ID string }
			}
		}
		if err := NewClient(one.URL, token, 1).Decode(ctx, "GET", "/cluster/audit?action="+action, nil, http.StatusOK, &page); err != nil {
			t.Error(err)
		}
		if len(page.Entries) == 0 || page.Entries[0].Target.ID != want || page.Entries[0].Actor.ID != "root" {
			t.Errorf("the audit's entries of %s are %+v", action, page.Entries)
		}
	}

	// Two disks are lost.
	m.kill()
	if err := os.CopyFS(m.dir("operator", "disks", "node-2"), os.DirFS(m.dir("node-2", "var", "lib", "switchyard"))); err != nil {
		t.Fatal(err)
	}
	m.page("majority.md")
	there("http://"+m.address("operator")+":8080", kept.Token.Token, kept)

	m.page("harden.md")
}
