package actors

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// homeNode stands for the node that serves a credential's home.
type homeNode struct {
	principal []byte
	slow      time.Duration
	gone      bool
	calls     atomic.Int32
	due       time.Time // until when requests wait for an owner of the credential's home; zero: for three seconds
}

func (h *homeNode) Call(context.Context, storage.Shard, []byte) ([]byte, error) {
	pass(h.slow)
	h.calls.Add(1)
	if h.gone {
		return nil, errors.New("connection refused")
	}
	return json.Marshal(stepAnswer{Reply: &tracker.Reply{Body: h.principal}})
}

func (h *homeNode) OwnerDue(_ storage.Shard, missing time.Time) time.Time {
	if h.due.IsZero() {
		return missing.Add(3 * time.Second)
	}
	return h.due
}

// visitedWorkspace is a workspace with a member whose credential another node stores.
type visitedWorkspace struct {
	*testEngine
	hall, visitor onboarded
}

func visit(t *testing.T, home *homeNode) *visitedWorkspace {
	t.Helper()
	v := &visitedWorkspace{}
	v.testEngine = setup(t, func(c *Config) { c.Remote, c.OpenOnboarding = home, true })
	v.hall, v.visitor = v.onboard("hall"), v.onboard("visitor")
	for n := 'a'; v.engine.shardOf(v.visitor.id) == v.engine.shardOf(v.hall.id); n++ {
		v.visitor = v.onboard("visitor-" + string(n))
	}
	if _, err := v.engine.Do(v.admitted(v.hall.id, v.hall.credential, tracker.AddMember), tracker.AddMember,
		&tracker.AddMemberIn{UserID: tracker.Some(tracker.UserID(v.visitor.user)), Role: tracker.RoleAdmin}); err != nil {
		t.Fatal(err)
	}
	credential, err := tracker.ParseCredential(v.visitor.credential)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := v.engine.Do(request(v.visitor.id), tracker.AuthenticateOp, &credential)
	if err != nil {
		t.Fatal(err)
	}
	home.principal = reply.Body
	v.local.lose(v.engine, v.engine.shardOf(v.visitor.id).number)
	return v
}

// listen starts a stream for the visitor, after an event.
func (v *visitedWorkspace) listen(after int64) *recordingListener {
	v.t.Helper()
	req := v.admitted(v.hall.id, v.visitor.credential, tracker.ListEvents)
	s, err := v.engine.Listen(req, tracker.ListEvents, &tracker.ListEventsIn{After: tracker.Some(after)})
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(s.Leave)
	a := &recordingListener{}
	s.Start(a)
	return a
}

// happen emits events.
func (v *visitedWorkspace) happen(n int) {
	v.t.Helper()
	for range n {
		if _, err := v.engine.Do(v.admitted(v.hall.id, v.hall.credential, tracker.CreateIssue), tracker.CreateIssue, &tracker.CreateIssueIn{Title: "Told"}); err != nil {
			v.t.Fatal(err)
		}
	}
}

// A caller is remembered whose home this node served. When the home moves to another
// node, that node is asked, and the remembered caller is no reason to refuse.
func TestAdmit_RemembersNobodyWhoseHomeMoved(t *testing.T) {
	t.Parallel()
	home := &homeNode{}
	v := visit(t, home)
	v.local.gain(t, v.engine)
	op := needing(tracker.Read, "")
	v.admitted(v.hall.id, v.visitor.credential, op) // as this node serves both
	v.local.lose(v.engine, v.engine.shardOf(v.visitor.id).number)
	for range 2 {
		req := v.admitted(v.hall.id, v.visitor.credential, op)
		if req.Caller.ID != v.visitor.user {
			t.Errorf("the caller is %+v", req.Caller)
		}
	}
	home.gone = true
	_, err := v.admit(v.hall.id, v.visitor.credential, op)
	wantOutcome(t, err, "not_applied")
}

// After a long round the next one comes so late that another node's answer about a
// credential is older than a second. It must be used once all the same, and listeners
// at every position of the log must be served, however little of it a round reads.
func TestFeed_SlowRoundsServeVisitorsToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, &homeNode{slow: 50 * time.Millisecond})
		v.happen(5)
		slow := func() { pass(150 * time.Millisecond) } // each check of the shard's owner takes this time
		v.local.onBarrier.Store(&slow)
		var all []*recordingListener
		for _, after := range []int64{0, 3, 1} {
			all = append(all, v.listen(after))
		}
		v.happen(1)
		pass(9 * time.Second)
		v.local.onBarrier.Store(nil)
		synctest.Wait()
		for i, want := range []string{"1 2 3 4 5 6 ", "4 5 6 ", "2 3 4 5 6 "} {
			if got := all[i].heard(); got != want {
				t.Errorf("visitor %d has heard %q, want %q", i, got, want)
			}
			if all[i].ended > 0 {
				t.Errorf("the stream of visitor %d was ended", i)
			}
		}
	})
}

// A credential that could not be checked is checked again soon, also without events.
func TestFeed_AsksAgainAboutAVisitor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := visit(t, &homeNode{slow: 10 * time.Millisecond})
		v.happen(1)
		a := v.listen(0)
		pass(time.Millisecond)
		synctest.Wait() // the question is sent
		busy := error(notApplied{errors.New("no proof that this node still leads")})
		v.local.barrier.Store(&busy)
		pass(500 * time.Millisecond)
		v.local.barrier.Store(nil)
		pass(3 * time.Second)
		synctest.Wait()
		if got := a.heard(); got != "1 " {
			t.Errorf("the visitor has heard %q", got)
		}
	})
}

func TestInTurn_EverybodyIsFirstOnce(t *testing.T) {
	t.Parallel()
	const n = 7
	all := make([]*eventStream, n)
	for i := range all {
		all[i] = &eventStream{after: uint64(100 * (i % 3))}
	}
	for round := range n {
		first := rotate(append([]*eventStream(nil), all...))[0]
		if first.looked != 0 {
			t.Errorf("in round %d one is first again", round)
		}
		first.looked, first.after = round+1, first.after+uint64(round*37%11)
	}
}

// TestAdmit_FailsAtOnceWithoutAnOwner admits a caller whose credential's home lost its
// owner long ago: requests must not each wait for a successor that others did not find.
func TestAdmit_FailsAtOnceWithoutAnOwner(t *testing.T) {
	t.Parallel()
	home := &homeNode{}
	v := visit(t, home)
	home.gone, home.due = true, time.Now()
	req := request(v.hall.id)
	req.Credential, req.Deadline = v.visitor.credential, time.Now().Add(time.Minute)
	before := home.calls.Load()
	err := v.engine.Admit(req, tracker.ListIssues)
	var told *tracker.Error
	if !errors.As(err, &told) || told.Code != tracker.CodeUnavailable {
		t.Errorf("%v", err)
	}
	if n := home.calls.Load() - before; n != 1 {
		t.Errorf("asked %d times", n)
	}
}
