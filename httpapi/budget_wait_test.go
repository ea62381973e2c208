package httpapi

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

// bodyLine has large bodies wait for their bytes, in a bubble.
type bodyLine struct {
	t      *testing.T
	budget *budget
	mu     sync.Mutex
	got    map[string]*heldBody // those who have their bytes
	err    map[string]error
}

func newBodyLine(t *testing.T, limits Limits) *bodyLine {
	return &bodyLine{t: t, budget: newBudget(&limits, func(string) {}), got: map[string]*heldBody{}, err: map[string]error{}}
}

// ask has a body of so many bytes wait for at most a minute.
func (l *bodyLine) ask(name string, workspace byte, size int, peer bool) {
	l.t.Helper()
	to := account{kind: workspaceAccount, workspace: [16]byte{workspace}}
	until := time.Now().Add(time.Minute)
	go func() {
		held, err := l.budget.await(to, account{}, size, peer, until)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.err[name] = err; err == nil {
			l.got[name] = held
		}
	}()
	synctest.Wait()
}

// answer returns what a body's wait ended with; false while it waits.
func (l *bodyLine) answer(name string) (*heldBody, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	err, ok := l.err[name]
	return l.got[name], ok, err
}

// giveUp ends a holder of a body.
func (l *bodyLine) giveUp(name string) {
	held, _, _ := l.answer(name)
	held.GiveUp()
	synctest.Wait()
}

// refused fails the test unless a body was refused for a bound.
func (l *bodyLine) refused(name, bound string) {
	l.t.Helper()
	_, _, err := l.answer(name)
	var told *tracker.Error
	if !errors.As(err, &told) || !strings.Contains(told.Message, bound) {
		l.t.Errorf("%s: %v, want a refusal that names %s", name, err, bound)
	}
}

// granted fails the test unless these, and nobody else, have had their bytes.
func (l *bodyLine) granted(names string) {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if got := strings.Join(slices.Sorted(maps.Keys(l.got)), " "); got != names {
		l.t.Errorf("%q have had their bytes, want %q", got, names)
	}
}

// empty fails the test if anything is charged or waits.
func (l *bodyLine) empty() {
	l.t.Helper()
	if n := l.budget.all.Load(); n != 0 || len(l.budget.by) != 0 || len(l.budget.waiting) != 0 {
		l.t.Errorf("%d bytes, %v, %d waiting", n, l.budget.by, len(l.budget.waiting))
	}
}

func TestBudget_LargeBodiesComeInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newBodyLine(t, Limits{Bytes: 10, WorkspaceBytes: 5})
		l.ask("a", 1, 4, false)
		l.ask("b", 1, 2, false) // over the bound of its workspace
		l.ask("c", 2, 4, false)
		l.granted("a c")
		l.ask("d", 3, 3, false)
		l.ask("e", 4, 2, false) // its bytes are free
		l.granted("a c e")
		l.giveUp("c")
		l.granted("a c d e")
		l.giveUp("a")
		l.granted("a b c d e")
		for _, name := range []string{"b", "d", "e"} {
			l.giveUp(name)
		}
		l.empty()
	})
}

// A caller with many large bodies does not keep one with few waiting, nor do smaller bodies a larger one: nobody
// passes the body whose turn it is.
func TestBudget_LargeBodiesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20 // of 100, clients get 75
		l := newBodyLine(t, Limits{Bytes: 100 * mib})
		l.ask("a1", 1, 20*mib, false)
		l.ask("b1", 2, 20*mib, false)
		l.ask("d1", 4, 25*mib, false)
		l.ask("a2", 1, 12*mib, false) // 10 are free
		l.ask("a3", 1, 8*mib, false)
		l.ask("b2", 2, 11*mib, false)
		l.ask("c1", 3, 15*mib, false)
		l.ask("d2", 4, 5*mib, false)
		l.granted("a1 b1 d1")
		l.giveUp("d1") // the turns are those of d, with 5, c, with 15, b, with 31, and a, with 32
		l.granted("a1 b1 b2 c1 d1 d2")
		l.giveUp("c1")
		l.granted("a1 a2 b1 b2 c1 d1 d2")
		l.giveUp("b1") // a may hold no more than would be left
		l.granted("a1 a2 a3 b1 b2 c1 d1 d2")
		for _, name := range []string{"a1", "a2", "a3", "b2", "d2"} {
			l.giveUp(name)
		}
		l.empty()
	})
}

// A body that has waited in vain does not keep the next ones waiting.
func TestBudget_LargeBodiesLeaveTheirLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const mib = 1 << 20
		l := newBodyLine(t, Limits{Bytes: 100 * mib})
		l.ask("a", 1, 40*mib, false)
		l.ask("b", 2, 20*mib, false)
		l.ask("c", 3, 18*mib, false) // 15 are free
		time.Sleep(time.Second)
		l.ask("d", 2, 10*mib, false)
		l.granted("a b")
		time.Sleep(59 * time.Second)
		synctest.Wait()
		l.refused("c", boundBytes)
		l.granted("a b d")
		for _, name := range []string{"a", "b", "d"} {
			l.giveUp(name)
		}
		l.empty()
	})
}

// The bytes are charged until the last holder gives the body up.
func TestBudget_LargeBodiesOfSeveralHolders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newBodyLine(t, Limits{Bytes: 10})
		l.ask("a", 1, 6, false)
		held, _, _ := l.answer("a")
		held.Hold()
		l.ask("b", 2, 6, false)
		l.giveUp("a")
		l.granted("a")
		l.giveUp("a")
		l.granted("a b")
		l.giveUp("b")
		l.empty()
	})
}

func TestBudget_LargeBodiesWaitForSoLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newBodyLine(t, Limits{Bytes: 10, WorkspaceBytes: 8})
		l.ask("a", 1, 6, false)
		l.ask("b", 2, 6, false)
		// No wait can make room for these.
		l.ask("c", 3, 9, false)
		l.refused("c", boundWorkspaceBytes)
		l.ask("d", 3, 11, false)
		l.refused("d", boundBytes)
		time.Sleep(time.Minute - time.Nanosecond)
		synctest.Wait()
		if _, ok, err := l.answer("b"); ok {
			t.Fatalf("it has an answer before its time: %v", err)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		l.refused("b", boundBytes)
		l.granted("a")
		l.giveUp("a")
		l.empty()
	})
}

// Bodies of clients leave room for those that other nodes forward, which need none of
// another node's bytes: otherwise two nodes could wait for each other.
func TestBudget_LargeBodiesOfPeers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newBodyLine(t, Limits{Bytes: 3 * peerRoom})
		l.ask("a", 1, peerRoom, false)
		l.ask("b", 2, peerRoom, false)
		l.ask("c", 3, 1, false)
		l.ask("d", 4, peerRoom, true)
		l.granted("a b d")
		l.giveUp("a")
		l.granted("a b d")
		l.giveUp("b")
		l.granted("a b c d")
		l.giveUp("c")
		l.giveUp("d")
		l.empty()
	})
}

// Large bodies beyond the bytes in flight are read when those before them are done.
func TestLargeBody_WaitsForItsBytes(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) {
		c.RequestTimeout = time.Minute
		// Three bodies of 1.5 MiB. A workspace may hold two: no more than it leaves free.
		c.Limits = Limits{Bytes: 15 << 20}
	})
	began, end := make(chan struct{}, 5), make(chan struct{})
	b.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		began <- struct{}{}
		<-end
		return tracker.Reply{Outcome: tracker.Created, Body: []byte(`{}`)}, nil
	})
	body := largeBody()
	answers := make(chan *answer, 5)
	for range 5 {
		c, r := dial(t, b.addr)
		go func() { _, _ = io.WriteString(c, largeHead(body)+body) }()
		go func() {
			if a, err := readAnswer(r, "POST"); err == nil {
				answers <- a
			}
		}()
	}
	for range 2 {
		<-began
	}
	testkit.Eventually(t, "three to wait", func() bool {
		b.budget.mu.Lock()
		defer b.budget.mu.Unlock()
		n := 0
		for _, bodies := range b.budget.waiting {
			n += len(bodies)
		}
		return n == 3
	})
	if n := b.budget.all.Load(); n > 10<<20 || len(began) > 0 {
		t.Errorf("%d bytes in flight, and %d more requests", n, len(began))
	}
	close(end)
	for range 5 {
		if a := <-answers; a.StatusCode != 201 {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	}
	testkit.Eventually(t, "nothing in flight", func() bool { return b.budget.all.Load() == 0 })
}

// A body waits no longer than an answer may take. It is refused then, and not read.
func TestLargeBody_WaitsNoLongerThanAnAnswerMayTake(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) {
		c.RequestTimeout = 50 * time.Millisecond
		c.Limits = Limits{Bytes: 5 << 20}
	})
	held, err := b.budget.await(account{kind: workspaceAccount}, account{}, 4<<20, false, time.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer held.GiveUp()
	body := largeBody()
	c, r := dial(t, b.addr)
	if _, err := io.WriteString(c, largeHead(body)+body[:prefetched]); err != nil { // the rest never comes
		t.Fatal(err)
	}
	got, err := readAnswer(r, "POST")
	if err != nil {
		t.Fatal(err)
	}
	refusedWith(t, got, boundBytes)
}

// The content of a command is charged for as long as the engine holds it, also when its caller
// has left at the deadline.
func TestLargeBody_ChargedWhileTheEngineHoldsIt(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.Limits = Limits{Bytes: 10 << 20} })
	left := make(chan tracker.Memory, 1)
	b.engine.set(func(req *tracker.Request, _ *tracker.Op, _ any) (tracker.Reply, error) {
		req.Memory.Hold()
		left <- req.Memory
		return tracker.Reply{}, tracker.OutcomeUnknown("The change was not confirmed in time.")
	})
	if got := b.do(t, "POST", largePath, largeBody()); got.StatusCode != 503 {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
	if n := b.budget.all.Load(); n < 4<<20 {
		t.Errorf("%d bytes in flight", n)
	}
	(<-left).GiveUp()
	testkit.Eventually(t, "nothing in flight", func() bool { return b.budget.all.Load() == 0 })
}
