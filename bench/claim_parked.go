package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	claimParkedName = "claim-parked"
	// parkedPerIssue is the number of sessions that are parked for each of Config.Issues.
	parkedPerIssue = 5
	// parkedMost bounds them. More are not needed, and the issues of a kind take 99,000.
	parkedMost = 100_000
	// parkedIssues is the number of issues that parked sessions are about. Each of them may
	// have up to 1,000 that have not ended.
	parkedIssues = 400
)

// claimParked measures claims in a workspace in which many sessions of the same agent wait
// for something, in turns with claims in a workspace without any.
var claimParked = scenario{
	name: claimParkedName, about: "claim beside many parked sessions",
	alone: func(ctx context.Context, r *run) (figures []Figure, err error) {
		var in [2]workspace
		for i, name := range []string{"parked", "unparked"} {
			if in[i], err = r.ownWorkspace(name); err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, r.dropWorkspace(in[i])) }()
		}
		figure := Figure{Scenario: claimParkedName, About: "claims beside parked sessions"}
		parked, err := r.park(ctx, in[0])
		if err == nil {
			err = r.claimBeside(ctx, in, parked, &figure)
		}
		if err != nil {
			figure.Fault = err.Error()
		}
		return []Figure{figure}, nil
	},
}

const (
	// claimedBeside is the agent of all sessions.
	claimedBeside = "crew"
	// claimedIssues is the number of issues that the claimed sessions are about, in turns. A session that has
	// ended leaves tombstones in the store until it flushes, and thousands of sessions of one issue would make
	// each claim of the next one iterate over them.
	claimedIssues = 500
)

// claimBeside claims in the two workspaces in turns.
func (r *run) claimBeside(ctx context.Context, in [2]workspace, parked int, figure *Figure) error {
	d := r.world.dial()
	defer d.close()
	var issues [2][]string
	written, text := newIssueWriter(r.world.stream(0)), r.world.sessionText(0)
	written.priority = "low" // the parked sessions come before them in the queue
	for i := range in {
		for range claimedIssues {
			body, err := ask(d, request("POST", r.world.host, "/workspaces/"+in[i].id+"/issues", in[i].token, string(written.appendIssue(nil))), 201)
			if err != nil {
				return err
			}
			id, _ := issueID(body)
			issues[i] = append(issues[i], id)
		}
	}
	var all [2]time.Duration
	took := [2]*[]float64{{}, {}}
	measured := time.Now().Add(r.Warmup)
	for n, end := 0, measured.Add(r.Duration); len(*took[1]) == 0 || time.Now().Before(end); n++ {
		warm := !time.Now().Before(measured) || r.Warmup == 0
		for i := range in {
			if _, err := r.world.dispatch(d, in[i], issues[i][n%claimedIssues], claimedBeside, text); err != nil {
				return err
			}
			claim := request("POST", r.world.host, "/workspaces/"+in[i].id+"/agent/sessions/claim", in[i].token, fmt.Sprintf(claimBody, claimedBeside, 0))
			began := time.Now()
			body, err := ask(d, claim, 200)
			lasted := time.Since(began)
			if err != nil {
				return err
			}
			session, lane, err := claimed(body)
			if err != nil {
				return err
			}
			if _, err := ask(d, request("POST", r.world.host, "/workspaces/"+in[i].id+"/agent/sessions/"+session+"/report", lane, text.report()), 200); err != nil {
				return err
			}
			if warm {
				all[i] += lasted
				*took[i] = append(*took[i], millisOf(lasted))
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	beside, alone := middle(*took[0]), middle(*took[1])
	figure.Value, figure.Unit, figure.Target = beside/alone, "x", 1.11 // 0.9 of the rate
	figure.About = fmt.Sprintf("a claim beside %d parked sessions takes %.2f ms (p50, mean %.2f), without them %.2f ms (mean %.2f)",
		parked, beside, mean(all[0], len(*took[0])), alone, mean(all[1], len(*took[1])))
	return nil
}

func mean(all time.Duration, of int) float64 { return millisOf(all) / float64(of) }

// park dispatches sessions that wait: for a blocked issue, for a time, for a place of a
// key, for the end of a hold. It returns their number.
func (r *run) park(ctx context.Context, in workspace) (int, error) {
	w := r.world
	d := w.dial()
	defer d.close()
	issues := newIssueWriter(w.stream(0))
	body := issues.appendItems(nil, parkedIssues, func(item int) string {
		more := fmt.Sprintf(`,"status":"todo","ref":%q`, itemRef(item))
		if item > 0 && item < parkedIssues/4 {
			more += fmt.Sprintf(`,"relations":[{"type":"blocked_by","ref":%q}]`, itemRef(0))
		}
		return more
	})
	answer, err := ask(d, request("POST", w.host, "/workspaces/"+in.id+"/issues/bulk", in.token, string(body)), 201)
	if err != nil {
		return 0, err
	}
	ids := allIDs(answer, "issues")
	if len(ids) != parkedIssues {
		return 0, fmt.Errorf("bench: %d issues were created, want %d", len(ids), parkedIssues)
	}
	base := "/workspaces/" + in.id
	// The session that holds the key's only place, and the agent on hold.
	if _, err := ask(d, request("POST", w.host, base+"/issues/"+ids[0]+"/dispatch", in.token, `{"agentId":"holder","concurrencyKeys":["dock"]}`), 201); err != nil {
		return 0, err
	}
	if _, err := ask(d, request("POST", w.host, base+"/agent/sessions/claim", in.token, `{"agentId":"holder","leaseSeconds":3600}`), 200); err != nil {
		return 0, err
	}
	if _, err := ask(d, request("PUT", w.host, base+"/holds/agent:"+heldAgent, in.token, `{"reason":"No quota"}`), 200); err != nil {
		return 0, err
	}
	kinds := [...]string{
		fmt.Sprintf(`,"agentId":%q,"whenReady":true}`, claimedBeside),
		fmt.Sprintf(`,"agentId":%q,"notBefore":%q}`, claimedBeside, time.Now().AddDate(0, 6, 0).UTC().Format(time.RFC3339)),
		fmt.Sprintf(`,"agentId":%q,"concurrencyKeys":["dock"]}`, claimedBeside),
		fmt.Sprintf(`,"agentId":%q}`, heldAgent),
	}
	requests := parkRequests(r.Issues, len(kinds))
	faults := make([]error, parkers)
	var all sync.WaitGroup
	for c := range parkers {
		all.Go(func() {
			d := w.dial()
			defer d.close()
			for n := c; n < requests && faults[c] == nil && ctx.Err() == nil; n += parkers {
				kind, of := n%len(kinds), parkedIssues/len(kinds)
				faults[c] = w.dispatchBatch(d, in, batchItems, func(i int) string {
					// The issues of a kind are together, and the first is the blocker.
					issue := ids[kind*of+1+(n*batchItems+i)%(of-1)]
					return fmt.Sprintf(`{"issueId":%q`, issue) + kinds[kind]
				})
			}
		})
	}
	all.Wait()
	return requests * batchItems, errors.Join(append(faults, ctx.Err())...)
}

// parkRequests returns how many requests park the sessions of a run with so many issues: one for
// each of the kinds at least.
func parkRequests(issues, kinds int) int {
	return max(kinds, min(issues*parkedPerIssue, parkedMost)/batchItems)
}

const (
	// heldAgent is on hold.
	heldAgent = "resting"
	// parkers is the number of connections that dispatch the parked sessions.
	parkers = 8
)
