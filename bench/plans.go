package bench

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
)

// plannedIssues is the number of issues that fillPlans adds to the filled workspace, in
// requests of planSize. They are its newest, so lists of ready issues have to pass the
// blocked ones.
const (
	plannedIssues = 5000
	planSize      = 250
)

// fillPlans adds issues that depend on each other to the filled workspace, once: of ten one
// is ready, one has a session, and eight are blocked.
func fillPlans(ctx context.Context, w *world) error {
	if w.planned {
		return nil
	}
	d := w.dial()
	defer d.close()
	issues := newIssueWriter(w.stream(0))
	var body []byte
	for range plannedIssues / planSize {
		if err := ctx.Err(); err != nil {
			return err
		}
		body = issues.appendItems(body[:0], planSize, func(item int) string {
			more := fmt.Sprintf(`,"status":"todo","ref":%q`, itemRef(item))
			switch item % 10 {
			case 0:
			case 1:
				more += `,"dispatch":{"agentId":"planner"}`
			default:
				more += fmt.Sprintf(`,"relations":[{"type":"blocked_by","ref":%q}]`, itemRef(item-item%10))
			}
			return more
		})
		if _, err := ask(d, request("POST", w.host, "/workspaces/"+w.read.id+"/issues/bulk", w.read.token, string(body)), 201); err != nil {
			return err
		}
	}
	w.planned = true
	return nil
}

// allIDs returns the ids of the objects in a list of an answer.
func allIDs(body []byte, list string) (ids []string) {
	_, rest, _ := strings.Cut(string(body), `"`+list+`":[`)
	for {
		var found bool
		if _, rest, found = strings.Cut(rest, `{"id":"`); !found || len(rest) < 36 {
			return ids
		}
		ids = append(ids, rest[:36])
	}
}

// dispatchBatch dispatches n sessions in one request; item returns the JSON of each.
func (w *world) dispatchBatch(d doer, in workspace, n int, item func(i int) string) error {
	body := []byte(`{"items":[`)
	for i := range n {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, item(i)...)
	}
	answer, err := ask(d, request("POST", w.host, "/workspaces/"+in.id+"/agent/dispatch-batch", in.token, string(append(body, `]}`...))), 200)
	if err != nil {
		return err
	}
	if _, refusal, is := bytes.Cut(answer, []byte(`"error":"`)); is {
		return fmt.Errorf("bench: a session was not dispatched: %.300s", refusal)
	}
	return nil
}

// ownWorkspace makes a workspace for one scenario.
func (r *run) ownWorkspace(name string) (workspace, error) {
	d := r.world.dial()
	defer d.close()
	in, err := onboardOne(d, r.world.host, r.Token, fmt.Sprintf("bench-%s-%08x", name, rand.Uint32()))
	if err != nil {
		return in, fmt.Errorf("bench: onboard: %w", err)
	}
	return in, nil
}

// dropWorkspace deletes a workspace, so that what it has in store weighs on no later
// scenario.
func (r *run) dropWorkspace(in workspace) error {
	d := r.world.dial()
	defer d.close()
	_, err := ask(d, request("DELETE", r.world.host, "/workspaces/"+in.id, in.token, ""), 200)
	return err
}
