package tracker

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchyard/storage"
)

// flowModel makes all that moves sessions happen in any order, beside claims that wait: dispatches, claims, reports,
// releases, retries, holds, budgets, concurrency keys, changes of issues, relations and rights, time, restarts, and a
// copy of the workspace. The place of each session is compared with the definitions of the decisions, which
// flowState repeats over all records. lifeModel has the moves of single sessions.
type flowModel struct {
	*agentFixture
	callers  []string // credentials: of the admin twice, of a member, of a guest, of the agent alpha
	memberID UserID
	agents   []string
	limited  string // the id of a registered agent with a limit
	issues   []IssueID
	projects []string
	core     TeamID
	secret   TeamID

	lanes    map[string]flowLane // by token
	waiters  []*flowWaiter       // in the order in which they began to wait
	began    int                 // the number of all waiters so far
	wakes    []flowWake          // those still to be carried out
	keys     int                 // the number of idempotency keys so far
	started  bool                // the model is set up
	imported bool                // made by an import, whose event log begins anew
	trail    []string            // for the message of a failure
}

// flowLane is the claim that a lane token came with.
type flowLane struct {
	session SessionID
	claim   int
}

// flowWaiter is a claim that waits.
type flowWaiter struct {
	number     int
	credential string
	in         ClaimSessionsIn
	topic      Topic
}

// flowWake is a wake-up for the first waiter behind a number.
type flowWake struct {
	why    Wake
	behind int
}

func newFlowModel(t *rapid.T) *flowModel {
	m := &flowModel{agentFixture: newAgentFixture(t), lanes: map[string]flowLane{}}
	m.testService.agents = AgentSettings{MaxActiveChildren: 3, SweepInterval: time.Hour}
	memberID, member := m.member(m.home, RoleMember, "write")
	_, guest := m.member(m.home, RoleGuest, "write")
	alpha := m.token(m.home, &CreateTokenIn{AgentID: "alpha", ActorType: ActorAgent, Permissions: words("write")})
	m.memberID, m.callers = memberID, []string{m.admin, m.admin, member, guest, alpha}
	m.core = m.home.Team.ID
	m.secret = decode[Team](t, m.run(m.admin, CreateTeam, &CreateTeamIn{Name: "Secret", Key: "SEC", IsPublic: Some(false)}).Body).ID
	for _, name := range []string{"P", "Q"} {
		m.projects = append(m.projects, string(decode[Project](t, m.run(m.admin, Projects.Create, &CreateProjectIn{Name: name}).Body).ID))
	}
	m.registerLimited()
	m.agents = []string{"alpha", m.limited, "x"}
	for range 4 {
		m.createOne(t)
	}
	m.note = func(_ storage.ID, l *WriteBuffer, _ []byte) {
		for _, w := range l.WakeUps() {
			m.wakes = append(m.wakes, flowWake{why: w})
		}
	}
	m.started = true
	return m
}

// pick draws one of several values.
func pick[T any](t *rapid.T, name string, from []T) T { return rapid.SampledFrom(from).Draw(t, name) }

// onceIn draws true once in n times.
func onceIn(t *rapid.T, n int, name string) bool { return rapid.IntRange(1, n).Draw(t, name) == 1 }

// After any operations in any order each session is where the definitions say, and no claim waits beside a session
// that it could get. Short tests make 80 checks, others 300, and -rapid.checks=1000 ten times as many.
func TestSessionFlow_Model(t *testing.T) {
	t.Parallel()
	rounds := 3
	if testing.Short() { // rapid makes a fifth of its checks
		rounds = 4
	}
	for range rounds {
		rapid.Check(t, func(t *rapid.T) {
			m := newFlowModel(t)
			for range 3 {
				t.Repeat(m.steps())
			}
			m.settle(t)
			if onceIn(t, 3, "copy") {
				m.compareCopy(t)
			}
			m.verify()
		})
	}
}

// steps are the operations of the model. After some of them everything is compared.
func (m *flowModel) steps() map[string]func(*rapid.T) {
	steps := map[string]func(*rapid.T){
		"dispatch": m.dispatchOne, "dispatch 2": m.dispatchOne, "dispatch 3": m.dispatchOne, "claim": m.claimSome, "claim 2": m.claimSome,
		"wait": m.claimWaits, "wait 2": m.claimWaits, "leave": m.waiterLeaves, "lane": m.useLane, "lane 2": m.useLane,
		"report": m.reportOne, "report 2": m.reportOne, "beat": m.beatOne, "release": m.releaseOne, "reply": m.replyToOne, "cancel": m.cancelOne,
		"retry": m.retrySome, "hold": m.holdOne, "limit": m.limitOne, "budget": m.budgetOne, "patch": m.patchSome, "patch 2": m.patchSome,
		"relate": m.relateOne, "delete": m.deleteOne, "access": m.changeAccess, "team": m.changeTeam, "agent": m.changeAgent,
		"register": m.registerOne, "spawn": m.spawnOne, "bulk": m.createSome, "time": m.timePasses, "retain": m.retainSome, "unarchive": m.unarchiveOne,
		"restart": func(*rapid.T) { m.restart() },
	}
	for name, do := range steps {
		steps[name] = func(t *rapid.T) {
			do(t)
			if onceIn(t, 3, "settle") {
				m.settle(t)
			}
			if onceIn(t, 20, "verify") {
				m.verify()
			}
		}
	}
	return steps
}

// exec runs an operation, and everything that it wakes. Some operations run first in a batch that is lost, and some
// have a key, with which they are repeated.
func (m *flowModel) exec(t *rapid.T, credential string, op *Op, in any) (Reply, error) {
	m.Helper()
	m.trace("%s %+v", op.Name, in)
	if m.started && op.Kind == Command && op != ClaimSessions && onceIn(t, 12, "lost") {
		req := &Request{Workspace: m.home.Workspace.ID.raw(), Credential: credential}
		if m.admit(req, op) == nil {
			_, _ = m.bufferOf(req.Workspace).Run(op, req, in, m.now)
			m.bufferOf(req.Workspace).Discard()
		}
	}
	var key []string
	if m.started && onceIn(t, 6, "key") {
		m.keys++
		key = []string{fmt.Sprint("key ", m.keys)}
	}
	reply, err := m.ask(credential, m.home.Workspace.ID, op, in, key...)
	if err != nil {
		if refused := (*Error)(nil); !errors.As(err, &refused) {
			t.Fatalf("%s: %v", op.Name, err)
		}
		m.trace("  %v", err)
		m.drain(t)
		return reply, err
	}
	if op == ClaimSessions && reply.Wait == nil {
		m.checkClaim(t, reply)
	}
	m.drain(t)
	if len(key) > 0 && reply.Wait == nil {
		m.repeat(t, credential, op, in, key[0], string(reply.Body))
	}
	return reply, nil
}

// repeat checks that the repeat of a request with a key gets the first answer and does nothing.
func (m *flowModel) repeat(t *rapid.T, credential string, op *Op, in any, key, body string) {
	if claim, ok := in.(*ClaimSessionsIn); ok && claim.Wait > 0 && body == `{"sessions":[]}` {
		return // it is not kept
	}
	before := len(m.events())
	reply, err := m.ask(credential, m.home.Workspace.ID, op, in, key)
	if refused := (*Error)(nil); errors.As(err, &refused) && slices.Contains([]Code{CodeNotFound, CodeForbidden, CodeUnauthorized}, refused.Code) {
		return // the caller's rights have changed
	}
	if after := len(m.events()); err != nil || !reply.Replayed || string(reply.Body) != body || after != before || len(m.wakes) > 0 {
		m.fail(t, "the repeat of %s: %v, replayed: %t, %d events, %d wake-ups\n%s\n%s", op.Name, err, reply.Replayed, after-before, len(m.wakes), reply.Body, body)
	}
}

// checkClaim notes the lanes of a claim, and checks that it keeps the limits.
func (m *flowModel) checkClaim(t *rapid.T, reply Reply) {
	for _, c := range decode[ClaimedSessions](m, reply.Body).Sessions {
		s := m.state(t)
		claimed := s.of[c.Session.ID]
		m.lanes[c.LaneToken] = flowLane{claimed.ID, claimed.Inner.Claims}
		engaged, same := 0, 0
		for _, o := range s.all {
			if o.engaged() && o.AgentID == claimed.AgentID {
				engaged++
				if o.IssueID == claimed.IssueID {
					same++
				}
			}
		}
		if same > 1 {
			m.fail(t, "agent %s works on %d sessions of an issue", claimed.AgentID, same)
		}
		agent, err := s.view.agent(claimed.AgentID)
		if err != nil {
			t.Fatal(err)
		}
		if agent != nil && agent.Value.MaxConcurrentSessions != nil && int64(engaged) > *agent.Value.MaxConcurrentSessions {
			m.fail(t, "agent %s works on %d sessions", claimed.AgentID, engaged)
		}
		for _, key := range claimed.ConcurrencyKeys {
			if s.free(key) < 0 {
				m.fail(t, "%d sessions hold %s", s.held[key], key)
			}
		}
	}
}

// drain wakes the claims that wait, as the engine does.
func (m *flowModel) drain(t *rapid.T) {
	for steps := 0; len(m.wakes) > 0; steps++ {
		if steps > 10_000 {
			t.Fatal("the wake-ups never come to rest")
		}
		w := m.wakes[0]
		m.wakes = m.wakes[1:]
		switch {
		case w.why.One:
			m.wakeFirst(t, &w)
		case w.why.Each:
			m.wakeEach(&w.why)
		}
	}
}

// wakeEach wakes the first waiter of each topic.
func (m *flowModel) wakeEach(why *Wake) {
	all := why.Topics == [4]Topic{}
	var topics []Topic
	for _, w := range m.waiters {
		if group, _ := w.topic.Group(); !slices.Contains(topics, w.topic) && (all || slices.Contains(why.Topics[:], group)) {
			topics = append(topics, w.topic)
		}
	}
	for _, topic := range topics {
		m.wakes = append(m.wakes, flowWake{why: Wake{One: true, Each: true, Topics: [4]Topic{topic}}})
	}
}

func (m *flowModel) wakeFirst(t *rapid.T, wake *flowWake) {
	i := slices.IndexFunc(m.waiters, func(w *flowWaiter) bool {
		return w.number > wake.behind && slices.Contains(wake.why.Topics[:], w.topic)
	})
	if i < 0 {
		return
	}
	w := m.waiters[i]
	switch reply, took := m.look(t, w); {
	case !took && reply.Wait.Pass:
		m.wakes = append(m.wakes, flowWake{wake.why, w.number})
	case took && (wake.why.Each || reply.Took != nil && !slices.Contains(reply.Took, wake.why.Topics[0])):
		m.wakes = append(m.wakes, flowWake{why: wake.why})
	}
}

// look has a claim that waits look once.
func (m *flowModel) look(t *rapid.T, w *flowWaiter) (reply Reply, took bool) {
	in := w.in
	reply, err := m.try(w.credential, ClaimSessions, &in)
	if err != nil {
		t.Fatalf("a claim that waits: %v", err)
	}
	if reply.Wait != nil {
		return reply, false
	}
	got := decode[ClaimedSessions](m, reply.Body).Sessions
	if len(got) == 0 {
		t.Fatal("a claim that waits has an empty answer")
	}
	m.trace("  waiter %d got %s", w.number, claimedIDs(got))
	m.checkClaim(t, reply)
	m.waiters = slices.DeleteFunc(m.waiters, func(o *flowWaiter) bool { return o == w })
	return reply, true
}

// passing lets time pass as pass does, and carries the wake-ups of each timer out.
func (m *flowModel) passing(t *rapid.T, d time.Duration) {
	end := m.now.Add(d)
	for range 100_000 {
		at, due := m.nextTimer()
		if due == nil || at.After(end) {
			m.now = end
			return
		}
		if at.After(m.now) {
			m.now = at
		}
		m.trace("timer %s %s", due.Kind, due.Subject)
		if _, err := m.do(TimerRequest(due.Kind, due.Workspace), TimerOps[due.Kind], &TimerIn{due.Kind, due.Subject}); err != nil {
			t.Fatalf("timer %s of %s: %v", due.Kind, due.Subject, err)
		}
		m.drain(t)
	}
	t.Fatal("the timers never come to rest")
}

// settle runs the timers that are due at once and compares everything. No claim that waits could get a session.
func (m *flowModel) settle(t *rapid.T) {
	m.passing(t, 50*time.Millisecond)
	m.compare(t)
	for _, w := range slices.Clone(m.waiters) {
		if !slices.Contains(m.waiters, w) {
			continue
		}
		if reply, took := m.look(t, w); took {
			m.fail(t, "claim %d of %+v waited beside the session %s", w.number, w.in, reply.Body)
		}
		m.drain(t)
	}
}

func (m *flowModel) trace(format string, args ...any) {
	m.trail = append(m.trail, fmt.Sprintf(format, args...))
}

// fail fails the test with the last operations.
func (m *flowModel) fail(t *rapid.T, format string, args ...any) {
	for _, line := range m.trail[max(0, len(m.trail)-60):] {
		t.Log(line)
	}
	t.Fatalf(format, args...)
}
