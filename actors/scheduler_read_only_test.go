package actors

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// gatedTimer is a timer's workflow that stops once, before one of its two steps, until the test
// lets it go on. Its first step counts, its last one rings.
type gatedTimer struct {
	entered, leave chan struct{}
	op             *tracker.Op
}

func newGatedTimer(stop int) *gatedTimer {
	g := &gatedTimer{entered: make(chan struct{}), leave: make(chan struct{})}
	last := ring(nil)
	steps := 0
	step := func() {
		if steps++; steps == stop {
			close(g.entered)
			<-g.leave
		}
	}
	g.op = tracker.NewWorkflow[tracker.TimerIn, tracker.None]("Gated", "", tracker.Needs{}, func(f tracker.Flow, in *tracker.TimerIn) (tracker.Reply, error) {
		req := f.Request()
		step()
		if _, err := f.Command(req.Permit(), req.Workspace, countUp, &countIn{}); err != nil {
			return tracker.Reply{}, err
		}
		step()
		return f.Command(req.Permit(), req.Workspace, last, in)
	})
	return g
}

// operator has the operator carry out an operation.
func (b *testEngine) operator(workspace storage.ID, op *tracker.Op, in any) {
	b.t.Helper()
	if _, err := b.engine.Do(b.admitted(workspace, testRoot, op), op, in); err != nil {
		b.t.Fatalf("%s: %v", op.Name, err)
	}
}

// A timer that the scheduler has started when read-only mode begins changes nothing. It runs
// when the mode has ended, and is no failure meanwhile.
func TestScheduler_StartedTimersWaitInReadOnlyMode(t *testing.T) {
	t.Parallel()
	moves := tracker.ReadOnlyIn{Reason: "It moves."}
	for _, mode := range []struct {
		name         string
		begin, end   *tracker.Op
		begun, ended any // their inputs
		ofService    bool
	}{
		{"of the workspace", tracker.PutWorkspaceReadOnly, tracker.DeleteWorkspaceReadOnly, &tracker.BeginReadOnlyIn{ReadOnlyIn: moves}, &tracker.EndReadOnlyIn{}, false},
		{"of the service", tracker.PutReadOnly, tracker.DeleteReadOnly, &moves, &tracker.None{}, true},
	} {
		for before := range 2 { // steps before the mode
			t.Run(fmt.Sprintf("%s after %d steps", mode.name, before), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := setup(t, func(c *Config) { c.RootToken, c.OpenOnboarding = testRoot, true })
					home := b.onboard("home")
					g := newGatedTimer(before + 1)
					b.withTimers(map[string]*tracker.Op{"alarm": g.op, "copy.readOnly": tracker.TimerOps["copy.readOnly"]})
					var target storage.ID
					if !mode.ofService {
						target = home.id
					}
					b.alarm(home.id, "alarm", time.Now())
					<-g.entered
					b.operator(target, mode.begin, mode.begun)
					runs := b.engine.Stats().Timers
					close(g.leave)
					synctest.Wait()
					pass(time.Hour)
					if n, want := b.stored(home.id), strconv.Itoa(before); n != want {
						t.Errorf("counted to %s in read-only mode, want %s", n, want)
					}
					if got := b.rung(home.id); got != "" {
						t.Errorf("rang at %s in read-only mode", got)
					}
					if s := b.engine.Stats(); s.TimersFailed != 0 || s.Timers > runs+1 || strings.Contains(b.log.String(), "timer failed") {
						t.Errorf("%d failures and %d runs in read-only mode; logged: %s", s.TimersFailed, s.Timers-runs, b.log)
					}
					ended := time.Now()
					b.operator(target, mode.end, mode.ended)
					pass(time.Second)
					if got := b.rung(home.id); got < at(ended) || got > at(ended.Add(100*time.Millisecond)) {
						t.Errorf("rang at %q, want %s", got, at(ended))
					}
				})
			})
		}
	}
}
