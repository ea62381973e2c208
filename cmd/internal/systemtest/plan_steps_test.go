package systemtest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// choose returns one of a list.
func choose[T any](run *planRun, from []T) T { return from[run.IntN(len(from))] }

// some returns one of the sessions for which is holds, or nil.
func (run *planRun) some(is func(*planSession) bool) *planSession {
	var all []*planSession
	for _, s := range run.m.sessions {
		if is(s) {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return choose(run, all)
}

// step does one thing at random.
func (run *planRun) step() {
	if len(run.m.issues) < 5 {
		run.bulk()
		return
	}
	for _, kind := range []struct {
		often int
		do    func()
	}{
		{4, run.createIssue}, {3, run.bulk}, {10, run.relate}, {5, run.unrelate}, {18, run.dispatch}, {17, run.claim}, {13, run.report},
		{3, run.wait}, {4, run.release}, {2, run.formerHolder}, {4, run.hold}, {3, run.limit}, {8, run.patchIssue}, {2, run.deleteIssue},
		{3, run.cancel}, {3, run.retry}, {1, run.reply}, {1, run.shortPause}, {1, run.waitingClaim},
		{8, run.use}, {4, run.budget}, {3, run.spawn}, {3, run.putCheckpoint}, {1, run.redrive}, {1, run.shortWait},
	} {
		run.dice -= kind.often
		if run.dice < 0 {
			run.dice = run.IntN(planDice)
			kind.do()
			return
		}
	}
}

// planDice is the sum of the numbers in step.
const planDice = 125

var (
	planStatuses   = []string{"triage", "backlog", "todo", "todo", "in_progress"}
	planPriorities = []string{"low", "medium", "high", "urgent"}
	planKeys       = []string{"deploy", "db/main", "a%20b"}
	planPRStates   = []string{"open", "merged", "closed"}
)

func (run *planRun) issueBody() (object, *planIssue) {
	t := &planIssue{status: choose(run, planStatuses), priority: choose(run, planPriorities)}
	body := object{"title": fmt.Sprintf("Issue %d", run.asked), "status": t.status, "priority": t.priority}
	if run.IntN(3) == 0 {
		t.project = choose(run, run.m.projects)
		body["projectId"] = t.project
	}
	return body, t
}

func (run *planRun) createIssue() {
	body, t := run.issueBody()
	var made struct{ ID string }
	run.read(run.want("POST", "/issues", body, http.StatusCreated), http.StatusCreated, &made)
	t.id = made.ID
	run.m.issues = append(run.m.issues, t)
}

// planMade is a session in the answer to a dispatch.
type planMade struct{ ID, Status, CreatedAt string }

// made puts a dispatched session into the plan and compares its status.
func (run *planRun) made(s *planSession, after []*planSession, got planMade) {
	s.id, s.createdAt = got.ID, got.CreatedAt
	run.m.add(s, after)
	run.same(s, got.Status)
}

func (run *planRun) same(s *planSession, status string) {
	if status != s.status {
		run.fail("session %s is %s, want %s", s, status, s.status)
	}
}

// options returns the body of a dispatch at random.
func (run *planRun) options(t *planIssue) (object, *planSession) {
	s := &planSession{issue: t, agent: choose(run, planAgents), provider: choose(run, []string{"external", "p1", "p2"}), retry: planRetry{max: 3, lapsed: true}}
	body := object{"agentId": s.agent}
	if s.provider != "external" {
		body["provider"] = s.provider
	}
	if s.whenReady = run.IntN(2) == 0; s.whenReady {
		body["whenReady"] = true
	}
	switch run.IntN(12) {
	case 0:
		s.putOff = true
		body["notBefore"] = time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)
	case 1:
		body["notBefore"] = "2001-02-03T04:05:06Z"
	}
	if run.IntN(5) < 2 {
		first := run.IntN(len(planKeys))
		for i := range 1 + run.IntN(2) {
			s.keys = append(s.keys, planKeys[(first+i)%len(planKeys)])
		}
		body["concurrencyKeys"] = s.keys
	}
	if run.IntN(3) == 0 {
		s.retry = planRetry{max: 1 + run.IntN(3), lapsed: run.IntN(4) > 0, failed: run.IntN(3) > 0, backoff: run.IntN(4) == 0}
		on := []string{}
		if s.retry.failed {
			on = append(on, "failed")
		}
		if s.retry.lapsed {
			on = append(on, "lapsed")
		}
		retry := object{"maxAttempts": s.retry.max, "on": on}
		if s.retry.backoff {
			retry["backoffSeconds"] = 86400
		}
		body["retry"] = retry
	}
	return body, s
}

func (run *planRun) dispatch() {
	t := choose(run, run.m.issues)
	body, s := run.options(t)
	var after []*planSession
	if run.IntN(3) == 0 && len(run.m.sessions) > 0 {
		var ids []string
		for range 1 + run.IntN(3) {
			p := choose(run, run.m.sessions[max(0, len(run.m.sessions)-20):])
			if p.ended() && p.status != "completed" && run.IntN(8) > 0 {
				continue // it would only be canceled
			}
			after, ids = append(after, p), append(ids, p.id)
		}
		switch {
		case len(ids) == 1 && run.IntN(2) == 0:
			body["queuedAfter"] = ids[0]
		case len(ids) > 0:
			body["queuedAfter"] = ids
		}
	}
	var got planMade
	run.read(run.want("POST", "/issues/"+t.id+"/dispatch", body, http.StatusCreated), http.StatusCreated, &got)
	run.made(s, after, got)
}

// bulk creates issues that depend on each other, and dispatches some of them.
func (run *planRun) bulk() {
	var items []object
	var made []*planIssue
	var sessions []*planSession
	n := 2 + run.IntN(5)
	for i := range n {
		item, t := run.issueBody()
		item["ref"] = fmt.Sprintf("ref-%d", i)
		var relations []object
		for k := range i {
			if run.IntN(3) == 0 {
				relations = append(relations, object{"type": "blocked_by", "ref": fmt.Sprintf("ref-%d", k)})
				run.m.relate("blocks", made[k], t)
			}
		}
		if len(run.m.issues) > 0 && run.IntN(5) == 0 {
			other := choose(run, run.m.issues)
			relations = append(relations, object{"type": "blocks", "issueId": other.id})
			run.m.relate("blocks", t, other)
		}
		if relations != nil {
			item["relations"] = relations
		}
		if run.IntN(2) == 0 {
			body, s := run.options(t)
			item["dispatch"] = body
			sessions = append(sessions, s)
		}
		items, made = append(items, item), append(made, t)
	}
	var got struct {
		Issues   []struct{ ID string }
		Sessions []planMade
	}
	run.read(run.want("POST", "/issues/bulk", object{"items": items}, http.StatusCreated), http.StatusCreated, &got)
	if len(got.Issues) != n || len(got.Sessions) != len(sessions) {
		run.fail("%d issues and %d sessions were made, want %d and %d", len(got.Issues), len(got.Sessions), n, len(sessions))
	}
	for i, t := range made {
		t.id = got.Issues[i].ID
	}
	run.m.issues = append(run.m.issues, made...)
	for i, s := range sessions {
		run.made(s, nil, got.Sessions[i])
	}
}

func (run *planRun) relate() {
	from, to := choose(run, run.m.issues), choose(run, run.m.issues)
	kind := "blocks"
	if run.IntN(12) == 0 {
		kind = "duplicates"
	}
	status := http.StatusBadRequest
	if from != to {
		if status = http.StatusConflict; run.m.relate(kind, from, to) {
			status = http.StatusOK
		}
	}
	path := "/issues/" + from.id + "/relations/" + kind + "/" + to.id
	if kind == "blocks" && run.IntN(2) == 0 {
		path = "/issues/" + to.id + "/relations/blocked_by/" + from.id
	}
	run.want("PUT", path, nil, status)
}

func (run *planRun) unrelate() {
	from, to := choose(run, run.m.issues), choose(run, run.m.issues)
	// In the order of issues, since that of a map differs from run to run.
	var all [][2]*planIssue
	for _, a := range run.m.issues {
		for _, b := range run.m.blockedBy(a) {
			all = append(all, [2]*planIssue{a, b})
		}
	}
	if len(all) > 0 && run.IntN(8) > 0 {
		e := choose(run, all)
		from, to = e[0], e[1]
	}
	status := http.StatusNotFound
	if run.m.blocks[[2]*planIssue{from, to}] {
		status = http.StatusNoContent
		run.m.unrelate(from, to)
	}
	if from == to {
		status = http.StatusBadRequest
	}
	run.want("DELETE", "/issues/"+from.id+"/relations/blocks/"+to.id, nil, status)
}

func (run *planRun) patchIssue() {
	t := choose(run, run.m.issues)
	switch run.IntN(9) {
	case 0, 1:
		t.priority = choose(run, planPriorities)
		run.want("PATCH", "/issues/"+t.id, object{"priority": t.priority}, http.StatusOK)
		return
	case 2, 8:
		// Mostly an issue with sessions in the queue, which the project's budget may concern.
		if s := run.some(func(s *planSession) bool { return s.status == "created" && !s.issue.gone }); s != nil && run.IntN(4) > 0 {
			t = s.issue
		}
		body := object{"projectId": nil}
		t.project = choose(run, append([]string{""}, run.m.projects...))
		for _, p := range run.m.projects {
			if run.m.exceeded("project:"+p) && run.IntN(2) == 0 {
				t.project = p
			}
		}
		if t.project != "" {
			body["projectId"] = t.project
		}
		run.want("PATCH", "/issues/"+t.id, body, http.StatusOK)
		return
	case 3:
		awaitsPR := func(c planCondition) bool { return c.pr != "" }
		if s := run.some(func(s *planSession) bool { return s.wait != nil && slices.ContainsFunc(s.wait.left, awaitsPR) }); s != nil {
			t = s.issue
		}
		state := choose(run, planPRStates)
		run.m.request(func() {
			t.pr = state
			run.m.happen(func(c planCondition) bool { return c.issue == t && c.pr != "" && c.metBy(state) })
		})
		run.want("PATCH", "/issues/"+t.id, object{"prState": state}, http.StatusOK)
		return
	}
	status := "done"
	switch {
	case !t.open() || run.IntN(5) == 0:
		status = choose(run, planStatuses)
	case run.IntN(4) == 0:
		status = "canceled"
	}
	run.m.setStatus(t, status)
	run.want("PATCH", "/issues/"+t.id, object{"status": status}, http.StatusOK)
}

func (run *planRun) deleteIssue() {
	t := choose(run, run.m.issues)
	run.m.remove(t)
	run.want("DELETE", "/issues/"+t.id, nil, http.StatusNoContent)
}

func (run *planRun) hold() {
	scope := choose(run, []string{"workspace", "agent:alpha", "agent:beta", "agent:gamma", "provider:p1", "provider:external"})
	path := "/holds/" + url.PathEscape(scope)
	if run.m.holds[scope] || run.IntN(4) == 0 {
		status := http.StatusNotFound
		if run.m.holds[scope] {
			status = http.StatusNoContent
			delete(run.m.holds, scope)
		}
		run.want("DELETE", path, nil, status)
		return
	}
	body := object{"reason": "To look"}
	if run.IntN(3) == 0 {
		body["until"] = time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)
	}
	run.m.holds[scope] = true
	run.want("PUT", path, body, http.StatusOK)
}

func (run *planRun) limit() {
	key := choose(run, planKeys)
	path := "/agent/limits/" + url.PathEscape(key)
	if run.IntN(3) == 0 {
		status := http.StatusNotFound
		if _, is := run.m.limits[key]; is {
			status = http.StatusNoContent
			delete(run.m.limits, key)
		}
		run.want("DELETE", path, nil, status)
		return
	}
	run.m.limits[key] = 1 + run.IntN(3)
	run.want("PUT", path, object{"limit": run.m.limits[key]}, http.StatusOK)
}
