package systemtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

func (c planCondition) metBy(state string) bool {
	return state == c.pr || c.pr == "closed" && state == "merged"
}

// condition returns a condition that a session may wait for, and its body.
func (run *planRun) condition(s *planSession) (c planCondition, body object) {
	switch o := choose(run, run.m.sessions); run.IntN(16) {
	case 0, 1:
		c, body = planCondition{reply: true}, object{"reply": true}
	case 2, 3:
		c, body = planCondition{children: s}, object{"children": true}
	case 4, 5:
		state := choose(run, planPRStates[1:])
		c, body = planCondition{issue: s.issue, pr: state}, object{"pr": state}
	case 6:
		body = object{"after": time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)}
	case 7:
		body = object{"after": "2001-02-03T04:05:06Z"}
	case 8, 9, 10, 11:
		if o != s {
			c, body = planCondition{session: o}, object{"session": o.id}
			break
		}
		fallthrough
	default:
		t := choose(run, run.m.issues)
		c, body = planCondition{issue: t}, object{"issue": t.id}
	}
	text, _ := json.Marshal(body)
	c.text = string(text)
	return c, body
}

// met reports whether a condition is met already.
func (m *plan) met(c planCondition) bool {
	switch {
	case c.session != nil:
		return c.session.ended()
	case c.children != nil:
		return m.childrenEnded(c.children)
	case c.pr != "":
		return c.metBy(c.issue.pr)
	case c.issue != nil:
		return !c.issue.open()
	}
	return strings.Contains(c.text, "2001")
}

// wait reports that a session waits for conditions.
func (run *planRun) wait() {
	s := run.some(func(s *planSession) bool { return s.leased })
	if s == nil {
		return
	}
	w, how := &planWait{any: run.IntN(2) == 0}, "all"
	if w.any {
		how = "any"
	}
	var list []object
	for range 1 + run.IntN(3) {
		c, body := run.condition(s)
		w.left, list = append(w.left, c), append(list, body)
	}
	token := run.holder(s)
	run.m.request(func() {
		s.leave("waited")
		s.attempts--
		s.status, s.wait = "waiting", w
		s.meet(run.m.met)
	})
	run.session(token, s, "report", object{"status": "waiting", "waitFor": object{how: list}}, http.StatusOK)
}

// shortWait has a session wait for a moment that comes soon.
func (run *planRun) shortWait() {
	s := run.some(func(s *planSession) bool { return s.leased })
	if s == nil {
		return
	}
	body := object{"after": time.Now().Add(50 * time.Millisecond).UTC().Format(time.RFC3339Nano)}
	text, _ := json.Marshal(body)
	s.leave("waited")
	s.attempts--
	s.status, s.wokenBy = "created", []string{string(text)}
	run.want("POST", "/agent/sessions/"+s.id+"/report", object{"status": "waiting", "waitFor": object{"all": []object{body}}}, http.StatusOK)
	run.until(s, func(now planListed) bool { return now.Status == "created" })
}

// until reads a session until something has happened to it by itself.
func (run *planRun) until(s *planSession, is func(planListed) bool) {
	for {
		var now planListed
		if run.get("/agent/sessions/"+s.id, &now); is(now) {
			return
		}
		if !pause(run.ctx, 20*time.Millisecond) {
			run.fail("session %s is still %s: %v", s, now.Status, run.ctx.Err())
		}
	}
}

// lapse has the leases of a few sessions run out.
func (run *planRun) lapse() {
	m := run.m
	run.lapses = false
	var all []*planSession
	// First those that become dead letters, of which there are few.
	for _, last := range []bool{true, false} {
		for _, s := range m.sessions {
			// A heartbeat would end a session whose issue has come into a project with a budget that is used up.
			if s.leased && s.lapsesForGood() == last && m.overspent(s) == "" && len(all) < 6 {
				all = append(all, s)
			}
		}
	}
	for _, s := range all {
		run.session(run.holder(s), s, "heartbeat", object{"leaseSeconds": 10}, http.StatusOK)
	}
	for _, s := range all {
		held := s.status
		run.until(s, func(now planListed) bool { return now.Status != held })
	}
	m.apart = true
	m.request(func() {
		for _, s := range all {
			m.lapse(s)
		}
	})
	m.apart = false
	for _, s := range all {
		var now planListed
		run.get("/agent/sessions/"+s.id, &now)
		run.same(s, now.Status)
	}
}

// spawn makes a child of a session.
func (run *planRun) spawn() {
	p := run.some((*planSession).engaged)
	if p == nil || run.IntN(4) == 0 {
		p = run.some(func(*planSession) bool { return true })
	}
	if p == nil {
		return
	}
	s := &planSession{agent: choose(run, planAgents), provider: "external", parent: p, depth: p.depth + 1, retry: planRetry{max: 3, lapsed: true}}
	status := http.StatusCreated
	switch {
	case p.issue.gone:
		status = http.StatusNotFound
	case p.ended() || s.depth > 5:
		status = http.StatusBadRequest
	case run.m.active(p) >= planChildren:
		status = http.StatusTooManyRequests
	}
	a := run.want("POST", "/agent/sessions/"+p.id+"/children", object{"title": "Part", "agentId": s.agent}, status)
	if status != http.StatusCreated {
		return
	}
	var got struct {
		Session planMade
		Issue   struct{ ID, Status, Priority string }
	}
	run.read(a, status, &got)
	s.issue = &planIssue{id: got.Issue.ID, status: got.Issue.Status, priority: got.Issue.Priority, project: p.issue.project}
	run.m.issues = append(run.m.issues, s.issue)
	run.made(s, nil, got.Session)
}

// putCheckpoint stores a checkpoint, or tries to where nobody holds a claim.
func (run *planRun) putCheckpoint() {
	s := run.some(func(s *planSession) bool { return s.leased })
	if s == nil || run.IntN(8) == 0 {
		s = run.some(func(*planSession) bool { return true })
	}
	if s == nil {
		return
	}
	body, token, status := object{"step": run.asked}, run.holder(s), http.StatusConflict
	if s.leased {
		text, _ := json.Marshal(body)
		status, s.checkpoint = http.StatusNoContent, string(text)
	}
	if a, _ := run.as(token, "PUT", "/agent/sessions/"+s.id+"/checkpoint", body); a.Status != status {
		run.fail("a checkpoint of session %s: status %d, want %d: %s", s, a.Status, status, a.Body)
	}
}

// bury makes dead letters of a few sessions in their last attempt: otherwise there are few of them.
func (run *planRun) bury() {
	for range 2 + run.IntN(4) {
		s := run.some(func(s *planSession) bool { return s.leased && s.attempts >= s.retry.max })
		if s == nil {
			return
		}
		token := run.holder(s)
		if s.retry.failed && run.IntN(2) == 0 {
			body, status := object{"status": "failed", "failureReason": "tests_red"}, 0
			run.m.request(func() { status = run.reported(s, "failed", body) })
			run.session(token, s, "report", body, status)
			continue
		}
		run.m.deadLetter(s, "released")
		run.session(token, s, "release", object{"reason": "Gives up", "countAttempt": true}, http.StatusOK)
	}
}

// redrive retries dead letters, the newest first.
func (run *planRun) redrive() {
	run.bury()
	body, agent, most, n := object{}, "", 100, 0
	if run.IntN(3) == 0 {
		agent = choose(run, planAgents)
		body["agentId"] = agent
	}
	reason := run.IntN(3) == 0
	if reason {
		body["failureReason"] = "tests_red"
	}
	if run.IntN(2) == 0 {
		most = 1 + run.IntN(3)
		body["limit"] = most
	}
	for _, s := range slices.Backward(run.m.sessions) {
		if s.dead && !s.issue.gone && !run.m.crowded(s) && (agent == "" || s.agent == agent) && (!reason || s.reason == "tests_red") && n < most {
			s.revive()
			n++
		}
	}
	var got struct{ Redriven int }
	if run.read(run.want("POST", "/agent/sessions/redrive", body, http.StatusOK), http.StatusOK, &got); got.Redriven != n {
		run.fail("%d dead letters were retried, want %d", got.Redriven, n)
	}
}

// planTried is an attempt as answers show it.
type planTried struct {
	Number             int
	End, FailureReason *string
}

// compareTried holds an attempt against the plan.
func (run *planRun) compareTried(s *planSession, got *planTried, number int) {
	if want := s.claims[number-1]; got.Number != number || timeOf(got.End) != want.end || timeOf(got.FailureReason) != want.reason {
		run.fail("attempt %d of session %s is number %d and ended as %q for %q, want %+v", number, s, got.Number, timeOf(got.End), timeOf(got.FailureReason), want)
	}
}

// compareClaim holds what a claimer is told of the time before its claim against the plan.
func (run *planRun) compareClaim(s *planSession, c *planClaimed) {
	if want := s.checkpoint; string(c.Checkpoint) != want && (want != "" || string(c.Checkpoint) != "null") {
		run.fail("session %s was claimed with the checkpoint %s, want %q", s, c.Checkpoint, want)
	}
	switch {
	case c.LastAttempt != nil && len(s.claims) > 0:
		run.compareTried(s, c.LastAttempt, len(s.claims))
	case c.LastAttempt != nil || len(s.claims) > 0:
		run.fail("session %s was claimed after %+v, and has had %d attempts", s, c.LastAttempt, len(s.claims))
	}
	by := []string{}
	for _, w := range c.WokenBy {
		by = append(by, string(w.Condition))
	}
	want := slices.Clone(s.wokenBy)
	slices.Sort(by)
	slices.Sort(want)
	if s.wokenBy != nil && !slices.Equal(by, want) {
		run.fail("session %s was woken by %q, want %q", s, by, want)
	}
}

// compareTries holds the dead letters, and all that is told of a few sessions, against the
// plan.
func (run *planRun) compareTries() {
	m := run.m
	dead := run.list("&deadLettered=true")
	for _, s := range m.sessions {
		if _, is := dead[s.id]; is != s.dead {
			run.fail("session %s is a dead letter: %t, want %t", s, is, s.dead)
		}
	}
	for range min(3, len(m.sessions)) {
		s := choose(run, m.sessions)
		var got struct {
			FailureReason, DeadLetteredAt *string
			Usage                         struct{ InputTokens, OutputTokens, CostMicros int64 }
			Attempts                      []planTried
			Sessions                      []planListed
		}
		run.get("/agent/sessions/"+s.id, &got)
		if timeOf(got.FailureReason) != s.reason || (got.DeadLetteredAt != nil) != s.dead || (planUsage{got.Usage.CostMicros, got.Usage.InputTokens + got.Usage.OutputTokens}) != s.used {
			run.fail("session %s failed for %q, has used %+v and became a dead letter at %q; want %q, %+v and %t",
				s, timeOf(got.FailureReason), got.Usage, timeOf(got.DeadLetteredAt), s.reason, s.used, s.dead)
		}
		run.get("/agent/sessions/"+s.id+"/attempts", &got)
		if len(got.Attempts) != len(s.claims) {
			run.fail("session %s has had %d attempts, want %d", s, len(got.Attempts), len(s.claims))
		}
		for i := range got.Attempts {
			run.compareTried(s, &got.Attempts[i], i+1)
		}
		run.get("/agent/sessions/"+s.id+"/children?limit=100", &got)
		var ids, want []string
		for _, child := range got.Sessions {
			ids = append(ids, child.ID)
		}
		for _, child := range slices.Backward(m.children(s)) {
			want = append(want, child.id)
		}
		if !slices.Equal(ids, want) {
			run.fail("session %s has the children %q, want %q", s, ids, want)
		}
		a, _ := run.ask(run.c.Token, "GET", run.path+"/agent/sessions/"+s.id+"/checkpoint", nil)
		if s.checkpoint == "" && a.Status != http.StatusNotFound || s.checkpoint != "" && string(a.Body) != s.checkpoint {
			run.fail("the checkpoint of session %s is %d %s, want %q", s, a.Status, a.Body, s.checkpoint)
		}
	}
}

// compareEnds checks by the event log that each session has ended, and become a dead letter,
// as often as it should, and that its last end is the status that it has.
func (run *planRun) compareEnds() {
	ends, last := run.count("session.ended")
	dead, _ := run.count("session.dead_lettered")
	for _, s := range run.m.sessions {
		if ends[s.id] != s.ends || dead[s.id] != s.deaths || s.ended() && last[s.id] != s.status {
			run.fail("session %s has ended %d times, the last time as %q, and become a dead letter %d times; want %d and %d",
				s, ends[s.id], last[s.id], dead[s.id], s.ends, s.deaths)
		}
		delete(ends, s.id)
		delete(dead, s.id)
	}
	if len(ends)+len(dead) > 0 {
		run.fail("events tell of the end of sessions that are not there: %v", slices.Concat(slices.Collect(maps.Keys(ends)), slices.Collect(maps.Keys(dead))))
	}
}

// count counts the events of a type by their sessions, and returns the last status of each.
func (run *planRun) count(kind string) (times map[string]int, last map[string]string) {
	times, last = map[string]int{}, map[string]string{}
	for after := "0"; after != ""; {
		var page struct {
			Events []struct {
				Data struct{ ID, Status string }
			}
			NextCursor string
		}
		run.get(fmt.Sprintf("/events?types=%s&limit=100&after=%s", kind, after), &page)
		for _, e := range page.Events {
			times[e.Data.ID]++
			last[e.Data.ID] = e.Data.Status
		}
		after = page.NextCursor
	}
	return times, last
}
