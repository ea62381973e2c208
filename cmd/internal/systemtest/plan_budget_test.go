package systemtest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// planUsage is what sessions have used. Tokens are those of input and of output.
type planUsage struct{ cost, tokens int64 }

func (u *planUsage) add(more planUsage) {
	u.cost += more.cost
	u.tokens += more.tokens
}

// planBudget has limits; nil is none.
type planBudget struct{ cost, tokens *int64 }

func (b *planBudget) exceededBy(u planUsage) bool {
	return b.cost != nil && u.cost > *b.cost || b.tokens != nil && u.tokens > *b.tokens
}

// scopes returns the scopes that count what a session uses.
func (s *planSession) scopes() []string {
	scopes := []string{"workspace", "agent:" + s.agent, "issue:" + s.issue.id}
	if s.issue.project != "" {
		scopes = append(scopes, "project:"+s.issue.project)
	}
	return scopes
}

func (m *plan) exceeded(scope string) bool {
	b := m.budgets[scope]
	return b != nil && b.exceededBy(m.used[scope])
}

// overspent returns a scope of a session whose budget is used up, or "".
func (m *plan) overspent(s *planSession) string {
	for _, scope := range s.scopes() {
		if m.exceeded(scope) {
			return scope
		}
	}
	return ""
}

// spend adds usage of a session to all that count it.
func (m *plan) spend(s *planSession, u planUsage) {
	s.used.add(u)
	for _, scope := range s.scopes() {
		sum := m.used[scope]
		sum.add(u)
		m.used[scope] = sum
	}
}

// endOverspent ends a session of which there was a report, if one of its budgets is used up,
// and all that run in the scopes that have been used up by it. before are those that were.
func (m *plan) endOverspent(of *planSession, before []string) {
	if m.overspent(of) != "" {
		m.endForBudget(of)
	}
	for _, scope := range of.scopes() {
		if m.exceeded(scope) && !slices.Contains(before, scope) {
			m.endScope(scope)
		}
	}
}

// usedUp returns the scopes whose budgets are used up.
func (m *plan) usedUp() (scopes []string) {
	for scope := range m.budgets {
		if m.exceeded(scope) {
			scopes = append(scopes, scope)
		}
	}
	slices.Sort(scopes) // since the order of a map differs from run to run
	return scopes
}

func (m *plan) endScope(scope string) {
	for _, s := range m.sessions {
		if slices.Contains(s.scopes(), scope) {
			m.endForBudget(s)
		}
	}
}

// endForBudget cancels a session that runs, and moves its issue to triage.
func (m *plan) endForBudget(s *planSession) {
	if s.status != "running" {
		return
	}
	s.issue.priority = map[string]string{"low": "medium", "medium": "high", "high": "urgent", "urgent": "urgent"}[s.issue.priority]
	m.setStatus(s.issue, "triage")
	s.reason = "budget"
	m.end(s, "canceled")
}

// planLeft is what a session may still use, as answers show it.
type planLeft struct {
	RemainingMicros, RemainingTokens *int64
	Stop                             bool
}

// left returns what a session may still use; nil without a budget.
func (m *plan) left(s *planSession) (left *planLeft) {
	for _, scope := range s.scopes() {
		b, u := m.budgets[scope], m.used[scope]
		if b == nil {
			continue
		}
		if left == nil {
			left = &planLeft{}
		}
		left.Stop = left.Stop || b.exceededBy(u)
		left.RemainingMicros = tightest(left.RemainingMicros, b.cost, u.cost)
		left.RemainingTokens = tightest(left.RemainingTokens, b.tokens, u.tokens)
	}
	return left
}

func tightest(left, limit *int64, used int64) *int64 {
	if limit == nil {
		return left
	}
	if rest := max(0, *limit-used); left == nil || rest < *left {
		return &rest
	}
	return left
}

// compareLeft holds what an answer says of the budgets of a session against the plan.
func (run *planRun) compareLeft(s *planSession, got *planLeft) {
	was, _ := json.Marshal(got)
	if is, _ := json.Marshal(run.m.left(s)); string(was) != string(is) {
		run.fail("session %s has a budget of %s, want %s", s, was, is)
	}
}

// usage returns usage at random, as the body of a request has it.
func (run *planRun) usage() (object, planUsage) {
	cost, input, output := run.Int64N(100), run.Int64N(50), run.Int64N(50)
	return object{"costMicros": cost, "inputTokens": input, "outputTokens": output, "cacheReadTokens": run.Int64N(1000)}, planUsage{cost, input + output}
}

// use reports usage of a session.
func (run *planRun) use() {
	s := run.some((*planSession).engaged)
	if s == nil || run.IntN(8) == 0 {
		s = run.some(func(s *planSession) bool { return !s.ended() })
	}
	if s == nil {
		return
	}
	given, u := run.usage()
	token, verb, body, status := run.holder(s), "heartbeat", object{"usage": given}, http.StatusOK
	if run.IntN(2) == 0 {
		verb, status = "log", http.StatusCreated
		if run.IntN(2) == 0 {
			body["message"] = "Worked"
		}
	}
	before := run.m.usedUp()
	run.m.request(func() {
		run.m.spend(s, u)
		run.m.endOverspent(s, before)
	})
	run.session(token, s, verb, body, status)
}

// budget sets a budget, or removes one, mostly one that is used up.
func (run *planRun) budget() {
	m := run.m
	scope := choose(run, []string{"workspace", "agent:alpha", "agent:gamma", "project:" + m.projects[0], "project:" + m.projects[1], "issue:" + choose(run, m.issues).id})
	up := m.usedUp()
	if len(up) > 0 && run.IntN(3) > 0 {
		scope = choose(run, up)
	}
	path := "/budgets/" + url.PathEscape(scope)
	if m.exceeded(scope) && run.IntN(2) == 0 || run.IntN(4) == 0 {
		status := http.StatusNotFound
		if m.budgets[scope] != nil {
			status = http.StatusNoContent
			delete(m.budgets, scope)
		}
		run.want("DELETE", path, nil, status)
		return
	}
	b, body := &planBudget{}, object{"period": "total"}
	if now := time.Now().UTC(); now.Add(time.Hour).Month() == now.Month() && run.IntN(2) == 0 {
		body["period"] = "month"
	}
	// From a little below what was used to well above it.
	if most := max(0, m.used[scope].cost-20+run.Int64N(200)); run.IntN(3) > 0 {
		b.cost, body["costMicros"] = &most, most
	}
	if most := max(0, m.used[scope].tokens-20+run.Int64N(200)); run.IntN(3) == 0 {
		b.tokens, body["tokens"] = &most, most
	}
	m.request(func() {
		if m.budgets[scope] = b; m.exceeded(scope) {
			m.endScope(scope)
		}
	})
	run.want("PUT", path, body, http.StatusOK)
}

// compareBudgets holds the budgets, and the sums of what was used, against the plan.
func (run *planRun) compareBudgets() {
	m := run.m
	var got struct {
		Budgets []struct {
			Scope                    string
			CostMicros, Tokens       *int64
			SpentMicros, SpentTokens int64
		}
	}
	run.get("/budgets", &got)
	for _, b := range got.Budgets {
		want := m.budgets[b.Scope]
		if want == nil || valueOf(b.CostMicros) != valueOf(want.cost) || valueOf(b.Tokens) != valueOf(want.tokens) {
			run.fail("the budget of %s is %d and %d, want %+v", b.Scope, valueOf(b.CostMicros), valueOf(b.Tokens), want)
		}
		if spent := (planUsage{b.SpentMicros, b.SpentTokens}); spent != m.used[b.Scope] {
			run.fail("%+v was spent of the budget of %s, want %+v", spent, b.Scope, m.used[b.Scope])
		}
	}
	if len(got.Budgets) != len(m.budgets) {
		run.fail("there are %d budgets, want %d", len(got.Budgets), len(m.budgets))
	}
	for _, by := range []string{"agent", "project", "issue", "session"} {
		sums := map[string]planUsage{}
		for _, s := range m.sessions {
			if s.used != (planUsage{}) && by == "session" {
				sums[s.id] = s.used
			}
		}
		for scope, u := range m.used {
			if kind, of, found := strings.Cut(scope, ":"); found && kind == by && u != (planUsage{}) {
				sums[of] = u
			}
		}
		run.compareUsage(by, sums)
	}
}

// compareUsage holds the answer about usage by one of its origins against the plan.
func (run *planRun) compareUsage(by string, want map[string]planUsage) {
	var usage struct {
		Groups []struct {
			Group                                 *string
			InputTokens, OutputTokens, CostMicros int64
		}
	}
	run.get("/usage?groupBy="+by, &usage)
	for _, g := range usage.Groups {
		if by == "project" && g.Group == nil {
			continue // that of issues without a project
		}
		if u := (planUsage{g.CostMicros, g.InputTokens + g.OutputTokens}); u != want[timeOf(g.Group)] && u != (planUsage{}) {
			run.fail("%s %s has used %+v, want %+v", by, timeOf(g.Group), u, want[timeOf(g.Group)])
		}
		delete(want, timeOf(g.Group))
	}
	if len(want) > 0 {
		run.fail("usage by %s lacks %v", by, want)
	}
}

func valueOf(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}
