package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
)

// fakePlans answers what is asked about issues that depend on each other and about their
// sessions: those that wait for a blocker are released by any change of an issue.
func fakePlans(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	var made, waiting atomic.Int64
	mux.HandleFunc("POST /workspaces/{w}/issues/bulk", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Items []struct {
				Title     string
				Relations []struct{ Ref string }
				Ref       string
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Errorf("bulk: %v", err)
		}
		refs := map[string]bool{}
		issues := []map[string]any{}
		for i, item := range in.Items {
			for _, other := range item.Relations {
				if !refs[other.Ref] {
					t.Errorf("item %d is related to %q, which is not before it", i, other.Ref)
				}
			}
			refs[item.Ref] = true
			issues = append(issues, map[string]any{"id": fmt.Sprintf("0190e0a1-0000-7000-a000-%012d", made.Add(1)), "title": item.Title})
		}
		body, err := json.Marshal(map[string]any{"issues": issues, "sessions": []any{}})
		if err != nil {
			t.Errorf("bulk: %v", err)
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body)
	})
	mux.HandleFunc("POST /workspaces/{w}/agent/dispatch-batch", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Items []struct{ WhenReady bool } }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Items) != batchItems {
			t.Errorf("a batch of %d, %v", len(in.Items), err)
		}
		for _, item := range in.Items {
			if item.WhenReady {
				waiting.Add(1)
			}
		}
		_, _ = w.Write([]byte(`{"results":[]}`))
	})
	mux.HandleFunc("PATCH /workspaces/{w}/issues/{id}", func(w http.ResponseWriter, _ *http.Request) {
		waiting.Store(0)
		_, _ = w.Write([]byte("{}"))
	})
	mux.HandleFunc("GET /workspaces/{w}/agent/queue", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"waitingFor":{"blocked":%d}}`, waiting.Load())
	})
	mux.HandleFunc("PUT /workspaces/{w}/holds/{scope}", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	mux.HandleFunc("DELETE /workspaces/{w}", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
}

func TestAllIDs(t *testing.T) {
	t.Parallel()
	const id = "0190e0a1-0000-7000-8000-00000000000"
	body := `{"other":[{"id":"` + id + `0"}],"issues":[{"id":"` + id + `1","parentId":"x"},{"id":"` + id + `2"}]}`
	if got := allIDs([]byte(body), "issues"); !slices.Equal(got, []string{id + "1", id + "2"}) {
		t.Errorf("found %q", got)
	}
}

func TestMiddle(t *testing.T) {
	t.Parallel()
	if got := middle([]float64{9, 1, 5}); got != 5 {
		t.Errorf("the middle is %g", got)
	}
}

// No issue gets more sessions than it may have, however many issues the run has.
func TestParkRequests(t *testing.T) {
	const kinds, issueMost = 4, 1000
	for issues, want := range map[int]int{1: kinds, 2000: 10_000 / batchItems, 20_000: 100_000 / batchItems, 10_000_000: 100_000 / batchItems} {
		got := parkRequests(issues, kinds)
		if got != want {
			t.Errorf("%d issues: %d requests, want %d", issues, got, want)
		}
		if of := parkedIssues/kinds - 1; got*batchItems/kinds/of >= issueMost {
			t.Errorf("%d issues: %d sessions for each of %d", issues, got*batchItems/kinds/of, of)
		}
	}
}
