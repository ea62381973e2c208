package tracker

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"switchyard/storage"
)

// In these tests a clock was ahead for a moment, and is right again: the newest id is of a time to
// come (Decision 95).

// aheadBy runs do while the clock is ahead.
func (w *testService) aheadBy(d time.Duration, do func()) {
	w.Helper()
	w.now = w.now.Add(d)
	do()
	w.now = w.now.Add(-d)
}

// wasAhead has the fleet's workspace make ids while the clock is ahead.
func (f *agentFixture) wasAhead(d time.Duration) {
	f.Helper()
	f.aheadBy(d, func() { f.work(PriorityLow) })
}

// Ids go on from the newest one. The time of a record is never behind the clock, and at most ten seconds ahead of it.
func TestClock_IDsGoOnAndTimesAreRight(t *testing.T) {
	t.Parallel()
	for ahead, follows := range map[time.Duration]bool{8 * time.Second: true, followsIDs: true, followsIDs + time.Second: false, time.Hour: false, 24 * 365 * time.Hour: false} {
		f := newAgentFixture(t)
		began := f.now
		var before Issue
		f.aheadBy(ahead, func() { before = f.work(PriorityLow) })
		after := f.work(PriorityLow)
		if after.ID <= before.ID {
			t.Errorf("%s ahead: the issue %s comes after %s", ahead, after.ID, before.ID)
		}
		want := At(began)
		if follows {
			want = At(began.Add(ahead))
		}
		if got := after.CreatedAt.Time().Sub(want.Time()); got < 0 || got > time.Second {
			t.Errorf("%s ahead: the next issue is of %s, want %s", ahead, after.CreatedAt, want)
		}
		f.verify()
	}
}

func TestClock_CreatesPerSecond(t *testing.T) {
	t.Parallel()
	const perSecond = 20
	for name, row := range map[string]struct {
		ahead time.Duration
		at    func(f *agentFixture) // before the clock is right
		pause time.Duration         // between creations
	}{
		"an hour":                {time.Hour, func(*agentFixture) {}, time.Second},
		"a hand-over within 10s": {8 * time.Second, func(*agentFixture) {}, 100 * time.Millisecond},
		"with none left": {time.Hour, func(f *agentFixture) {
			for range perSecond - 1 {
				f.work(PriorityLow)
			}
		}, time.Second},
	} {
		f := newAgentFixture(t)
		f.putLimits(f.home.Workspace.ID, LimitsIn{CreatesPerSecond: Some[int64](perSecond)})
		f.aheadBy(row.ahead, func() {
			f.work(PriorityLow)
			row.at(f)
		})
		if row.ahead < time.Minute {
			f.restart()
		}
		refused := 0
		for n := range 2 * perSecond {
			f.now = f.now.Add(row.pause)
			if _, err := f.try(f.admin, CreateIssue, &CreateIssueIn{Title: "One"}); err != nil && n > 0 {
				refused++
			}
		}
		if refused > 0 {
			t.Errorf("%s: %d creations are refused", name, refused)
		}
	}
}

func TestClock_LeasesAndMaxDurationEnd(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	leased := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a")})
	f.wasAhead(time.Hour)
	if got := f.claim(ClaimSessionsIn{AgentID: Some("a")}); len(got) != 1 {
		t.Fatalf("claimed %+v", got)
	}
	limited := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("b"), SessionOptions: SessionOptions{MaxDuration: Some[int64](1)}})
	f.pass(2 * time.Minute)
	if got := f.session(leased.ID); got.Status != SessionCreated {
		t.Errorf("after a lease of a minute the session of a silent claimer is %s", got.Status)
	}
	if got := f.session(limited.ID); got.Status != SessionCanceled {
		t.Errorf("after its maxDuration the session is %s", got.Status)
	}
	f.verify()
}

// A command that leaves work to the next batch leaves it for now, not for the hour to come.
func TestClock_ReleasesGoOn(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	first, work := f.work(PriorityLow), f.work(PriorityLow)
	f.block(first.ID, work.ID)
	const all = maxFollowers + 20
	for i := range all {
		f.dispatch(work.ID, DispatchIssueIn{AgentID: Some(fmt.Sprint(i)), SessionOptions: SessionOptions{WhenReady: true}})
	}
	f.wasAhead(time.Hour)
	f.close(first.ID)
	f.pass(time.Minute)
	got := 0
	for range all/50 + 1 {
		got += len(f.claim(ClaimSessionsIn{Limit: 50}))
	}
	if got != all {
		t.Errorf("%d of %d sessions can be claimed", got, all)
	}
	f.verify()
}

// Work that a command leaves to the next batch goes on at once after a fail-over, if the clock of the new owner is
// behind: the work that the owner before has left, and that which the new one leaves.
func TestClock_NextBatchIsAtOnce(t *testing.T) {
	t.Parallel()
	const all = maxFollowers + 20
	for _, ahead := range []time.Duration{8 * time.Second, time.Hour} {
		for leaver, leave := range map[string]func(f *agentFixture, first IssueID){
			"the owner before": func(f *agentFixture, first IssueID) { f.aheadBy(ahead, func() { f.close(first) }) },
			"the new owner": func(f *agentFixture, first IssueID) {
				f.wasAhead(ahead)
				f.close(first)
			},
		} {
			f := newAgentFixture(t)
			first, work := f.work(PriorityLow), f.work(PriorityLow)
			f.block(first.ID, work.ID)
			for i := range all {
				f.dispatch(work.ID, DispatchIssueIn{AgentID: Some(fmt.Sprint(i)), SessionOptions: SessionOptions{WhenReady: true}})
			}
			leave(f, first.ID)
			f.restart()
			f.pass(100 * time.Millisecond)
			got := 0
			for range all/50 + 1 {
				got += len(f.claim(ClaimSessionsIn{Limit: 50}))
			}
			if got != all {
				t.Errorf("left by %s, %s ahead: %d of %d sessions can be claimed", leaver, ahead, got, all)
			}
			f.verify()
		}
	}
}

func TestClock_TimesOfRequests(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	s := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	f.wasAhead(time.Hour)
	later := string(At(f.now.Add(30 * time.Minute)))
	if _, err := f.try(f.admin, CreateToken, &CreateTokenIn{Name: "x", ExpiresAt: Some(later)}); err != nil {
		t.Errorf("a token that ends in half an hour: %v", err)
	}
	got := f.claimOne()
	f.run(got.LaneToken, ReleaseSession, &ReleaseSessionIn{ID: s.ID, ReleaseFields: ReleaseFields{Reason: "later", NotBefore: Some(later)}})
	if again := f.claim(ClaimSessionsIn{}); len(again) != 0 {
		t.Error("a session that was released until half an hour later is claimed at once")
	}
	f.verify()
}

// The wait of a claim goes by the clock, also where other times follow the newest id.
func TestClock_ClaimWaits(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.wasAhead(8 * time.Second)
	began := f.now
	reply := f.run(f.admin, ClaimSessions, &ClaimSessionsIn{Wait: 5})
	if reply.Wait == nil {
		t.Fatalf("the claim does not wait: %s", reply.Body)
	}
	if until := reply.Wait.Until.Sub(began); until < 5*time.Second || until > 6*time.Second {
		t.Errorf("it waits for %s", until)
	}
}

func TestClock_WebhookRetry(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	hook := w.subscribe()
	w.now = w.now.Add(time.Hour)
	w.create(CreateIssueIn{})
	w.now = w.now.Add(-time.Hour)
	w.record(hook.ID, false, "no", w.outbox(hook.ID)...)
	raw, _ := storage.ParseID(hook.ID)
	v := storage.NewView(w.db, 1, w.workspace)
	list, next, err := ListRetries(&v, raw, w.now.Add(time.Minute), 10)
	if err != nil || len(list) != 1 {
		t.Errorf("a minute after the first failure %d deliveries are due; the next is due in %s, %v", len(list), next.Sub(w.now), err)
	}
}

// A session that began to wait while the clock was ahead is woken by something that happens afterwards.
func TestClock_WakesSessionsThatWaited(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	other := f.work(PriorityLow)
	s := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	f.aheadBy(time.Hour, func() { f.waits(anyOf(WaitCondition{Issue: string(other.ID)})) })
	f.close(other.ID)
	if got := f.session(s.ID); got.Status != SessionCreated {
		t.Errorf("it is %s", got.Status)
	}
	f.verify()
}

// More sessions than a batch carries began to wait for an issue while the clock was ahead. Its closing once the
// clock is right cancels all of them.
func TestClock_ClosingCancelsThoseThatWaited(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	first, work := f.work(PriorityLow), f.work(PriorityLow)
	f.block(first.ID, work.ID)
	before := f.dispatch(first.ID, DispatchIssueIn{AgentID: Some("before")})
	f.aheadBy(time.Hour, func() {
		for i := range maxUnblockedSessions + 20 {
			f.dispatch(work.ID, DispatchIssueIn{AgentID: Some(fmt.Sprint(i)), SessionOptions: SessionOptions{WhenReady: true, QueuedAfter: queuedBehind(string(before.ID))}})
		}
	})
	f.close(work.ID)
	f.pass(time.Minute)
	waiting := decode[SessionPage](t, f.run(f.admin, ListSessions, &ListSessionsIn{Status: Some(SessionWaiting), Limit: 100}).Body)
	if n := len(waiting.Sessions); n != 0 {
		t.Errorf("%d sessions of a closed issue go on waiting", n)
	}
	f.verify()
}

// Days that are recorded while the clock is ahead are not in the way of the present one.
func TestClock_Burndown(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{IssueFields: IssueFields{CycleID: Some("c")}})
	status := func(s IssueStatus) {
		w.patch(issue.ID, IssuePatch{IssueFields: IssueFields{Status: Some(s)}})
	}
	w.now = w.now.AddDate(0, 0, 3)
	status(StatusDone)
	w.now = w.now.AddDate(0, 0, 1)
	status(StatusTodo)
	w.now = w.now.AddDate(0, 0, -3)
	status(StatusDone)
	if got := fmt.Sprint(w.burndown("c").Series); got != "[{2026-11-20 1 1} {2026-11-21 1 0}]" {
		t.Error(got)
	}
	w.verify()
}

// The audit is in the order of ids. An entry of a time to come hides none of those around it.
func TestClock_AuditFromATime(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	token := func(name string) {
		f.run(f.admin, CreateToken, &CreateTokenIn{Name: name})
	}
	from := func(at time.Time) (names []string) {
		in := &ListAuditIn{Action: Some("token.created"), From: Some(string(At(at)))}
		for _, e := range f.audit(f.admin, f.home.Workspace.ID, in).Entries {
			names = append(names, string(e.Changes["name"].To))
		}
		return names
	}
	f.aheadBy(time.Hour, func() { token("ahead") })
	token("early")
	f.now = f.now.Add(time.Minute)
	at := f.now
	token("late")
	if got := from(at); !slices.Equal(got, []string{`"late"`, `"ahead"`}) {
		t.Errorf("from the last one on: %s", got)
	}
	if got := from(at.Add(30 * time.Minute)); !slices.Equal(got, []string{`"ahead"`}) {
		t.Errorf("from half an hour later on: %s", got)
	}
}

// An export has each record behind those that it refers to, whatever the clock said: a copy takes them.
func TestClock_ExportCanBeCopied(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	var first, work Issue
	var team Team
	var s DispatchedSession
	f.aheadBy(time.Hour, func() {
		team = f.team(f.admin, f.home.Workspace.ID, &CreateTeamIn{Name: "New", Key: "NEW"})
		first, work = f.work(PriorityLow), f.work(PriorityLow)
		s = f.dispatch(work.ID, DispatchIssueIn{AgentID: Some("a")})
	})
	f.block(first.ID, work.ID)
	f.run(f.admin, CreateShare, &CreateShareIn{ID: string(work.ID)})
	member, _ := f.member(f.home, RoleMember, "write")
	f.run(f.admin, PutTeamMember, &TeamMemberIn{ID: team.ID, UserID: member})
	for range 2 { // the attempt before the last one has a row
		got := f.claimOne()
		f.run(got.LaneToken, ReleaseSession, &ReleaseSessionIn{ID: s.ID, ReleaseFields: ReleaseFields{Reason: "again"}})
	}
	to := f.copiedIn(f.exportedLines(), 1, time.Hour, func(*agentFixture) {})
	to.verify()
	if got := to.issueNow(work.ID); got.Title != work.Title {
		t.Errorf("the copy has %+v", got)
	}
}

// A workspace arrives from a cluster whose clock is ahead, with an id clock that is.
func TestClock_ArrivalFromAClockAhead(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{8 * time.Second, time.Minute, time.Hour} {
		from := newTestService(t)
		from.random = rand.NewChaCha8([32]byte{2})
		from.now = from.now.Add(ahead)
		d := &departing{from: from, home: from.onboard("leaving")}
		d.blocks = from.blocks(d.home.Workspace.ID, 2000)
		to := newTestService(t)
		to.onboard("here")
		end := &EndArrivalIn{ID: d.arrive(to)}
		if _, err := to.ask("root", d.home.Workspace.ID, EndArrival, end); err != nil {
			t.Errorf("%s ahead: the end is refused: %v", ahead, err)
		}
		to.verify()
	}
}

// An import moves the id clock, and the bound of its next ids is by the owner's clock all the same.
func TestClock_ImportCreepsNoFurther(t *testing.T) {
	t.Parallel()
	im := newLineImport(t)
	label := func(ahead time.Duration) error {
		var id storage.ID
		binary.BigEndian.PutUint64(id[:], uint64(im.now.Add(ahead).UnixMilli())<<16|0x7000)
		id[8] = 0x80
		return im.line("label", fmt.Sprintf(`{"id":%q,"name":"L","createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}`, id))
	}
	for _, ahead := range []time.Duration{9 * time.Second, 59 * time.Second} {
		if err := label(ahead); err != nil {
			t.Errorf("%s ahead: %v", ahead, err)
		}
		for _, further := range []time.Duration{65 * time.Second, 110 * time.Second} {
			wantLineFault(t, label(further), "data.id is of a time to come.")
		}
	}
}
