package systemtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

// filled is a workspace with one of everything.
type filled struct {
	*testing.T
	c          *Client
	id, slug   string
	tokens     []string // secrets that work in it
	share      string
	attachment string
	webhook    string // takes its deliveries
	marker     string // a word that is in all its texts
}

// TestDeleteWorkspace_LeavesNotOneKey deletes a workspace that has one of
// everything, with people still at work in it, and looks through all that the node
// keeps. Its twin stays, so that what was looked for is known to be there.
func TestDeleteWorkspace_LeavesNotOneKey(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 2*time.Minute)
	defer cancel()
	data := t.TempDir()
	node, err := Launch(ctx, binary(t), data, []string{"SWITCHYARD_ROOT_TOKEN=" + rootToken}, append([]string{"--shards", "2", "--sweep-interval", "100ms"}, toLocal...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Kill)
	gone := fillWorkspace(t, node.URL, "gone")

	var busy sync.WaitGroup
	for range 4 {
		busy.Go(func() { // until there is no workspace any more
			for {
				answer, err := gone.c.Do(ctx, "POST", "/workspaces/"+gone.id+"/issues", object{"title": gone.marker})
				if err != nil {
					t.Error(err)
				}
				if err != nil || answer.Status != http.StatusCreated {
					if answer.Status != http.StatusUnauthorized && answer.Status != http.StatusNotFound {
						t.Errorf("a late create: %d %s", answer.Status, answer.Body)
					}
					return
				}
			}
		})
	}
	if deleted := gone.do("DELETE", "", nil, http.StatusOK, "Idempotency-Key", "end"); deleted["deleted"] != true || deleted["r2Objects"] != 2.0 {
		t.Errorf("the deletion is answered %v", deleted)
	}
	busy.Wait()
	operator := NewClient(node.URL, rootToken, 1)
	for _, token := range gone.tokens {
		c := NewClient(node.URL, token, 1)
		for _, path := range []string{"", "/issues", "/attachments/" + gone.attachment} {
			if err := c.Decode(ctx, "GET", "/workspaces/"+gone.id+path, nil, http.StatusUnauthorized, nil); err != nil {
				t.Error(err)
			}
		}
	}
	for _, path := range []string{"/workspaces/" + gone.id, "/workspaces/slug/gone", "/workspaces/" + gone.id + "/issues", "/shared-issues/" + gone.id + "/" + gone.share} {
		if err := operator.Decode(ctx, "GET", path, nil, http.StatusNotFound, nil); err != nil {
			t.Error(err)
		}
	}
	twin := fillWorkspace(t, node.URL, "twin")
	testkit.Await(ctx, t, "a noted use of a token", func() bool {
		answer, err := twin.c.Do(ctx, "GET", "/workspaces/"+twin.id+"/tokens", nil)
		return err == nil && strings.Contains(string(answer.Body), `"lastUsedAt":"`)
	})
	if err := operator.Decode(ctx, "GET", "/shared-issues/"+twin.id+"/"+twin.share, nil, http.StatusOK, nil); err != nil {
		t.Error(err)
	}
	calm, err := NewClient(node.URL, "", 1).Onboard(ctx, "Calm", "calm")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{calm.Workspace.ID, twin.id} {
		if err := operator.Decode(ctx, "PUT", "/cluster/workspaces/"+id+"/read-only", object{"reason": "xxcalmxx"}, http.StatusOK, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := operator.Decode(ctx, "DELETE", "/workspaces/"+calm.Workspace.ID, nil, http.StatusOK, nil); err != nil {
		t.Fatal(err)
	}
	if err := node.Terminate(ctx); err != nil {
		t.Fatal(err)
	}
	if err := Verify(ctx, binary(t), data); err != nil {
		t.Error(err)
	}

	store, err := storage.Open(storage.Config{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if traces := tracesOf(t, store, gone); len(traces) > 0 {
		t.Errorf("of the deleted workspace there are left %d rows, such as\n%s", len(traces), strings.Join(traces[:min(len(traces), 10)], "\n"))
	}
	if left := tablesOf(t, store, calm.Workspace.ID); len(left) > 0 {
		t.Errorf("of the workspace that was read-only there are left %v", left)
	}
	if traces := tracesOf(t, store, twin); len(traces) < 500 {
		t.Errorf("of the other one there are only %d", len(traces))
	}
	// The twin has the tables that the other workspace had.
	have := map[storage.TableID]bool{}
	eachTrace(t, store, twin, func(key, _ []byte) {
		if _, _, table, _, err := storage.SplitKey(key); err == nil {
			have[table] = true
		}
	})
	kinds, err := storage.Describe(tracker.Schema())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(kinds) { // the id, the kind in a column, the name
		id, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseUint(id, 10, 8)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSpace(strings.TrimLeft(kind, " ")[len("shard-wide index"):])
		if !have[storage.TableID(n)] && !slices.Contains(passing, name) {
			t.Errorf("the test has no %s (table %d): let fillWorkspace make one", name, n)
		}
	}
	t.Logf("%d tables and indexes were filled", len(have))
}

// passing are the rows that are there for a moment only, not in a workspace, or only in one that has
// moved here, of which TestArrival_EndCutAtEveryStep deletes one.
var passing = []string{"pending change of a member", "issue to index", "issue in several segments", "released issue", "unsentAudit", "arrival"}

// clusterAudit is the table of the audit, of which the directory has the cluster's.
const clusterAudit storage.TableID = 183

// tracesOf describes the rows that belong to a workspace or tell of it.
func tracesOf(t *testing.T, store *storage.Store, f *filled) (traces []string) {
	t.Helper()
	eachTrace(t, store, f, func(key, value []byte) {
		if _, of, table, _, err := storage.SplitKey(key); err == nil && of == storage.DirectoryID && table == clusterAudit {
			return // the cluster's list keeps what was done in the workspace
		}
		traces = append(traces, fmt.Sprintf("%x = %.200q", key, value))
	})
	return traces
}

// tablesOf counts the rows in a workspace's own range, by their tables.
func tablesOf(t *testing.T, store *storage.Store, workspace string) map[storage.TableID]int {
	t.Helper()
	have := map[storage.TableID]int{}
	eachRow(t, store, func(key, _ []byte) {
		if _, of, table, _, err := storage.SplitKey(key); err == nil && of.String() == workspace {
			have[table]++
		}
	})
	return have
}

func eachTrace(t *testing.T, store *storage.Store, f *filled, fn func(key, value []byte)) {
	t.Helper()
	id, ok := storage.ParseID(f.id)
	if !ok {
		t.Fatalf("%s is no id", f.id)
	}
	texts := [][]byte{id[:], storage.Key(nil).DescID(id), []byte(f.id), []byte(f.marker), []byte(f.slug + "@example.com")}
	eachRow(t, store, func(key, value []byte) {
		if slices.ContainsFunc(texts, func(text []byte) bool { return bytes.Contains(key, text) || bytes.Contains(value, text) }) {
			fn(key, value)
		}
	})
}

func eachRow(t *testing.T, store *storage.Store, fn func(key, value []byte)) {
	t.Helper()
	rows, err := store.State().NewIter(&pebble.IterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for ok := rows.First(); ok; ok = rows.Next() {
		value, err := rows.ValueAndErr()
		if err != nil {
			t.Fatal(err)
		}
		fn(rows.Key(), value)
	}
}

func decoded(t *testing.T, answer Answer) (out object) {
	t.Helper()
	if err := json.Unmarshal(answer.Body, &out); err != nil {
		t.Fatalf("%v in %s", err, answer.Body)
	}
	return out
}
