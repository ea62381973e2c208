package systemtest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
)

// TestPutRelation_NoRingFromManyConnections makes and removes random relations between few
// issues from many connections at once, and creates issues in bulk that are a way from one of
// them to another. However they interleave, neither blocks nor duplicates form a ring, and
// every relation that would close one is refused (Decision 56).
func TestPutRelation_NoRingFromManyConnections(t *testing.T) {
	t.Parallel()
	const issues, connections, each = 7, 12, 40
	c := newSimultaneousClients(t, connections)
	base := "/workspaces/" + c.workspace + "/issues/"
	var made struct {
		Issues []Issue `json:"issues"`
	}
	items := make([]object, issues)
	for i := range items {
		items[i] = object{"title": fmt.Sprintf("Number %d", i)}
	}
	if err := c.clients[0].Decode(t.Context(), "POST", base+"bulk", object{"items": items}, http.StatusCreated, &made); err != nil {
		t.Fatal(err)
	}
	forms := map[string][2]string{"blocks": {"blocks", "blocked_by"}, "duplicates": {"duplicates", "duplicated_by"}}
	var all sync.WaitGroup
	var between sync.Mutex
	ways := []Issue{} // guarded by between
	for n, one := range c.clients {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			for range each {
				from, to := r.IntN(issues), r.IntN(issues)
				if from == to {
					continue
				}
				if r.IntN(8) == 0 {
					way := object{"title": "Way", "relations": []object{{"type": "blocked_by", "issueId": made.Issues[from].ID}, {"type": "blocks", "issueId": made.Issues[to].ID}}}
					answer, err := one.Do(t.Context(), "POST", base+"bulk", object{"items": []object{way}})
					var added struct{ Issues []Issue }
					if err == nil && answer.Status == http.StatusCreated {
						err = json.Unmarshal(answer.Body, &added)
					}
					if err != nil || answer.Status != http.StatusCreated && answer.Status != http.StatusBadRequest {
						t.Errorf("bulk: %d %s %v", answer.Status, answer.Body, err)
					}
					between.Lock()
					ways = append(ways, added.Issues...)
					between.Unlock()
					continue
				}
				types := forms[[]string{"blocks", "blocks", "duplicates"}[r.IntN(3)]]
				path := base + made.Issues[from].ID + "/relations/" + types[0] + "/" + made.Issues[to].ID
				if r.IntN(2) == 0 {
					path = base + made.Issues[to].ID + "/relations/" + types[1] + "/" + made.Issues[from].ID
				}
				method, allowed := "PUT", []int{200, 409}
				if r.IntN(4) == 0 {
					method, allowed = "DELETE", []int{204, 404}
				}
				answer, err := one.Do(t.Context(), method, path, nil)
				if err != nil || !slices.Contains(allowed, answer.Status) {
					t.Errorf("%s: %d %s %v", method, answer.Status, answer.Body, err)
				}
			}
		})
	}
	all.Wait()
	made.Issues = append(made.Issues, ways...)
	for kind, types := range forms {
		ahead := make([][]int, len(made.Issues))
		for i, issue := range made.Issues {
			var page struct {
				Relations []struct {
					Type    string `json:"type"`
					IssueID string `json:"issueId"`
				} `json:"relations"`
			}
			if err := c.clients[0].Decode(t.Context(), "GET", base+issue.ID+"/relations?limit=100", nil, http.StatusOK, &page); err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Relations {
				if r.Type == types[0] {
					ahead[i] = append(ahead[i], slices.IndexFunc(made.Issues, func(other Issue) bool { return other.ID == r.IssueID }))
				}
			}
		}
		checkRings(t, c, kind, ahead, made.Issues)
	}
}

// checkRings checks that edges form no ring, and that edges that would close one are
// refused.
func checkRings(t *testing.T, c *simultaneousClients, kind string, ahead [][]int, issues []Issue) {
	t.Helper()
	leads := func(from, to int) bool {
		seen, queue := map[int]bool{}, []int{from}
		for len(queue) > 0 {
			at := queue[0]
			queue = queue[1:]
			for _, next := range ahead[at] {
				if next == to {
					return true
				}
				if !seen[next] {
					seen[next] = true
					queue = append(queue, next)
				}
			}
		}
		return false
	}
	for from := range issues {
		if leads(from, from) {
			t.Fatalf("%s: issue %d is in a ring: %v", kind, from, ahead)
		}
		if from > 2*len(c.clients) {
			continue // one request for each pair would be too many
		}
		for to := range issues {
			if from == to || to > 2*len(c.clients) || !leads(to, from) {
				continue
			}
			answer, err := c.clients[0].Do(t.Context(), "PUT", "/workspaces/"+c.workspace+"/issues/"+issues[from].ID+"/relations/"+kind+"/"+issues[to].ID, nil)
			if err != nil || answer.Status != http.StatusConflict {
				t.Errorf("%s from %d to %d: %d %v; there is %v", kind, from, to, answer.Status, err, ahead)
			}
		}
	}
}
