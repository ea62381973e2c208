package systemtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// planClaimed is an entry of the answer to a claim.
type planClaimed struct {
	Session     planMade
	LaneToken   string
	Attempt     int
	Checkpoint  json.RawMessage
	LastAttempt *planTried
	WokenBy     []struct{ Condition json.RawMessage }
	Budget      *planLeft
}

// claim claims for one agent or for any, and holds what was given out against the plan.
func (run *planRun) claim() {
	agent, provider, most := choose(run, append(planAgents, "")), "", 1
	body := object{"leaseSeconds": 3600}
	if agent != "" {
		body["agentId"] = agent
	}
	if run.IntN(4) == 0 {
		provider = choose(run, []string{"external", "p1", "p2"})
		body["provider"] = provider
	}
	if run.IntN(3) == 0 {
		most = choose(run, []int{2, 5, 50})
		body["limit"] = most
	}
	var got struct{ Sessions []planClaimed }
	run.read(run.want("POST", "/agent/sessions/claim", body, http.StatusOK), http.StatusOK, &got)
	run.claimed(agent, provider, most, got.Sessions)
}

// claimed puts the answer to a claim into the plan.
func (run *planRun) claimed(agent, provider string, most int, got []planClaimed) {
	m := run.m
	var last *planSession
	for _, c := range got {
		s := m.find(c.Session.ID)
		switch {
		case s == nil:
			run.fail("session %s was claimed and is not there", c.Session.ID)
		case agent != "" && s.agent != agent || provider != "" && s.provider != provider:
			run.fail("session %s was claimed by another", s)
		case m.obstacle(s) != "":
			run.fail("session %s was claimed, but: %s", s, m.obstacle(s))
		case last != nil && s.before(last):
			run.fail("session %s was claimed after %s", s, last)
		}
		run.compareClaim(s, &c)
		m.begin(s)
		s.attempts++
		s.claims, s.wokenBy, s.reason = append(s.claims, planAttempt{}), []string{}, ""
		s.leased, s.retried, s.lane, last = true, "", c.LaneToken, s
		if run.same(s, c.Session.Status); c.Attempt != s.attempts {
			run.fail("session %s was claimed for attempt %d, want %d", s, c.Attempt, s.attempts)
		}
		run.compareLeft(s, c.Budget)
	}
	if len(got) > most {
		run.fail("%d sessions were claimed, want at most %d", len(got), most)
	}
	for _, s := range m.sessions {
		if agent != "" && s.agent != agent || provider != "" && s.provider != provider || m.obstacle(s) != "" {
			continue
		}
		switch {
		case len(got) == most && (len(s.keys) > 0 || last.before(s)):
			// Its turn comes later, or a place is offered to another session.
		case len(s.keys) == 0 || !run.offeredToOther(s):
			run.fail("session %s can be claimed, and was not", s)
		}
	}
}

// offeredToOther reports whether the place of a session's key may be offered to another
// session, which can't take it because its agent is at another session of its issue.
func (run *planRun) offeredToOther(s *planSession) bool {
	return slices.ContainsFunc(run.m.sessions, func(o *planSession) bool {
		return o != s && o.status == "created" && o.agent == s.agent && o.provider == s.provider && run.m.atIssue(o) &&
			slices.ContainsFunc(o.keys, func(key string) bool { return slices.Contains(s.keys, key) })
	})
}

// holder returns a token to change a session with: its lane's, or the owner's, who has
// claimed it.
func (run *planRun) holder(s *planSession) string {
	if s.lane == "" || run.IntN(3) == 0 {
		return run.c.Token
	}
	return s.lane
}

// session sends a request about a session, wants a status, and compares that of the session
// with the plan's.
func (run *planRun) session(token string, s *planSession, verb string, body object, status int) {
	a, again := run.as(token, "POST", "/agent/sessions/"+s.id+"/"+verb, body)
	if again && token != run.c.Token && (a.Status == http.StatusConflict || a.Status == http.StatusUnauthorized) {
		// The first try was taken, and has ended the lane.
		var got planMade
		run.get("/agent/sessions/"+s.id, &got)
		run.same(s, got.Status)
		return
	}
	if a.Status != status {
		run.fail("%s of session %s: status %d, want %d: %s", verb, s, a.Status, status, a.Body)
	}
	var got struct {
		planMade
		Budget *planLeft
	}
	switch status {
	case http.StatusOK:
		run.read(a, status, &got)
		run.same(s, got.Status)
	case http.StatusCreated: // of a log
		run.read(a, status, &got)
	default:
		return
	}
	if !again && (verb == "report" || verb == "heartbeat" || verb == "log") {
		run.compareLeft(s, got.Budget)
	}
}

// report reports a status of a session, mostly of one that somebody works on.
func (run *planRun) report() {
	s := run.some((*planSession).engaged)
	if s == nil || run.IntN(8) == 0 {
		s = run.some(func(s *planSession) bool { return !s.ended() })
	}
	if s == nil {
		return
	}
	m, token := run.m, run.holder(s)
	to := choose(run, []string{"completed", "completed", "completed", "failed", "failed", "canceled", "running", "waiting"})
	body, status := object{"status": to}, http.StatusOK
	if to == "failed" {
		body["failureReason"] = "tests_red"
		if run.IntN(4) == 0 {
			body["retryable"] = false
		}
	}
	var u planUsage
	if run.IntN(4) == 0 {
		body["usage"], u = run.usage()
	}
	before := m.usedUp()
	m.request(func() {
		if status = run.reported(s, to, body); status == http.StatusOK {
			m.spend(s, u)
			m.endOverspent(s, before)
		}
	})
	run.session(token, s, "report", body, status)
}

// reported does what a report of a status does, and returns the status of the answer.
func (run *planRun) reported(s *planSession, to string, body object) (status int) {
	m, was := run.m, s.status
	_, final := body["retryable"]
	text, _ := json.Marshal(body)
	switch {
	case was == "created" && s.retried == string(text):
		return http.StatusConflict // the report that put it back is repeated
	case to == "running" && s.wait != nil, to == "waiting" && was == "created":
		return http.StatusConflict
	case to == "running" && !s.engaged() && (m.atIssue(s) || m.fullKey(s) || m.agentFull(s.agent)):
		return http.StatusConflict
	case to == "running" && was != "running":
		m.begin(s)
	case to == "waiting":
		// A session that waits already goes on with it.
		s.status = to
	case to == "failed":
		s.reason = "tests_red"
		switch tries := s.leased && !final && s.retry.failed; {
		case tries && s.attempts < s.retry.max:
			s.putBack("failed")
			s.putOff, s.retried = s.retry.backoff, string(text)
		case tries:
			m.deadLetter(s, "failed")
		default:
			m.end(s, to)
		}
	case to != "running":
		if to == "completed" {
			s.reason = ""
		}
		m.end(s, to)
	}
	return http.StatusOK
}

// reply answers a session that waits for one.
func (run *planRun) reply() {
	asks := func(c planCondition) bool { return c.reply }
	s := run.some(func(s *planSession) bool { return s.wait != nil && slices.ContainsFunc(s.wait.left, asks) })
	if s == nil {
		return
	}
	run.m.request(func() { s.meet(asks) })
	run.session(run.c.Token, s, "reply", object{"message": "Yes."}, http.StatusOK)
}

// release gives a session back, or tries to where nobody holds one.
func (run *planRun) release() {
	s := run.some(func(s *planSession) bool { return s.leased })
	if s == nil || run.IntN(6) == 0 {
		if s = run.some(func(s *planSession) bool { return !s.leased }); s != nil {
			run.session(run.c.Token, s, "release", object{"reason": "No claim"}, http.StatusConflict)
		}
		return
	}
	body, counted, putOff := object{"reason": "No quota"}, run.IntN(3) == 0, run.IntN(5) == 0
	if counted {
		body["countAttempt"] = true
	} else if s.attempts--; putOff {
		body["retryAfterSeconds"] = 86400
	}
	token := run.holder(s)
	if counted && s.attempts >= s.retry.max {
		run.m.deadLetter(s, "released")
	} else {
		s.putBack("released")
		s.putOff = putOff && !counted
	}
	run.session(token, s, "release", body, http.StatusOK)
}

// formerHolder has a holder that was presumed dead, or has given its session back, come
// back.
func (run *planRun) formerHolder() {
	s := run.some(func(s *planSession) bool { return len(s.formerLanes) > 0 })
	if s == nil {
		return
	}
	a, _ := run.as(choose(run, s.formerLanes), "POST", "/agent/sessions/"+s.id+"/report", object{"status": "completed", "result": "Too late"})
	if a.Status != http.StatusConflict && a.Status != http.StatusUnauthorized {
		run.fail("a former holder of session %s was answered %d: %s", s, a.Status, a.Body)
	}
}

func (run *planRun) cancel() {
	s := run.some(func(s *planSession) bool { return !s.ended() })
	if s == nil || run.IntN(8) == 0 {
		if s = run.some((*planSession).ended); s != nil {
			run.session(run.c.Token, s, "cancel", object{}, http.StatusConflict)
		}
		return
	}
	run.m.end(s, "canceled")
	run.session(run.c.Token, s, "cancel", object{}, http.StatusOK)
}

// retry puts a session that has ended back into the queue.
func (run *planRun) retry() {
	s := run.some((*planSession).ended)
	if s == nil {
		return
	}
	status := http.StatusConflict
	switch {
	case s.status == "completed" || s.issue.gone:
	case run.m.crowded(s):
		status = http.StatusTooManyRequests
	default:
		status = http.StatusOK
		s.revive()
	}
	run.session(run.c.Token, s, "retry", object{}, status)
}

// shortPause dispatches a session that can be claimed in a moment, and waits for that.
func (run *planRun) shortPause() {
	t := choose(run, run.m.issues)
	body, s := run.options(t)
	if body["whenReady"] != nil && run.m.blocked(t) {
		return // how long it waits for its issue is not known
	}
	s.putOff = false
	body["notBefore"] = time.Now().Add(100 * time.Millisecond).UTC().Format(time.RFC3339Nano)
	var got planMade
	run.read(run.want("POST", "/issues/"+t.id+"/dispatch", body, http.StatusCreated), http.StatusCreated, &got)
	run.made(s, nil, got)
	for {
		var now planListed
		run.get("/agent/sessions/"+s.id, &now)
		if now.WaitingFor == nil || now.WaitingFor.Reason != "not_before" {
			return
		}
		if !pause(run.ctx, 10*time.Millisecond) {
			run.fail("session %s is still put off: %v", s, run.ctx.Err())
		}
	}
}

// waitingClaim has a claim wait for a session that is dispatched, or released, meanwhile.
func (run *planRun) waitingClaim() {
	t := choose(run, run.m.issues)
	s := &planSession{issue: t, agent: "delta", provider: "external", whenReady: true, retry: planRetry{max: 3, lapsed: true}}
	if run.m.holds["workspace"] || run.m.held(s) || run.m.overspent(s) != "" || run.m.blocked(t) || run.some(func(o *planSession) bool { return o.agent == s.agent && !o.ended() }) != nil {
		return
	}
	const wait = 5 * time.Second
	began := time.Now()
	answers := make(chan Answer, 1)
	go func() { // ends with the answer, which the context bounds
		c := Client{URL: run.nodes.urls()[0], Token: run.c.Token, HTTP: run.c.HTTP}
		a, _ := c.Do(run.ctx, "POST", run.path+"/agent/sessions/claim", object{"agentId": "delta", "wait": wait / time.Second, "leaseSeconds": 3600})
		answers <- a
	}()
	made, again := run.do("POST", "/issues/"+t.id+"/dispatch", object{"agentId": "delta", "whenReady": true})
	again = again || time.Since(began) > wait // the claim may have been over before
	a := <-answers
	var got, now planMade
	var claimed struct{ Sessions []planClaimed }
	run.read(made, http.StatusCreated, &got)
	run.made(s, nil, got)
	if a.Status == http.StatusOK {
		run.read(a, http.StatusOK, &claimed)
	}
	if (again || a.Status != http.StatusOK) && len(claimed.Sessions) == 0 {
		// The node was killed, or was slow. It may have given the session out before.
		if run.get("/agent/sessions/"+s.id, &now); now.Status == "running" {
			run.m.begin(s)
		}
		run.m.end(s, "canceled")
		run.session(run.c.Token, s, "cancel", object{}, http.StatusOK)
		return
	}
	if len(claimed.Sessions) == 0 {
		run.fail("a claim that waited did not get session %s", s)
	}
	run.claimed("delta", "", 1, claimed.Sessions)
}
