package actors

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"switchyard/actors/tracker"
)

// TestWaiters_NothingIsLeftBesideOneThatCanUseIt has requests come, look, and leave in any
// order beside wake-ups for things of which one request each can have one, and of which kinds are
// suspended and resumed. When all have looked, no request that sleeps can use what is left.
func TestWaiters_NothingIsLeftBesideOneThatCanUseIt(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20_000) {
		random := rand.New(rand.NewPCG(seed, 0))
		m := newWaitModel()
		for range random.IntN(60) {
			switch n := random.IntN(26); {
			case n < 4:
				m.come(random.IntN(anyClass+1), 1+random.IntN(1<<kindsOfThings-1))
			case n < 6:
				m.offer(random.IntN(kindsOfThings))
			case n < 7: // something that concerns all of a class
				m.waiters.wake(m.workspace, []tracker.Wake{{Topics: [4]tracker.Topic{m.topic(0)}}})
			case n < 8 && len(m.things) > 0:
				m.show(random.IntN(len(m.things)))
			case n >= 24:
				kind := random.IntN(kindsOfThings)
				for range random.IntN(5) {
					m.offer(kind)
				}
				m.suspend(kind)
			case n >= 22:
				m.resume(random.IntN(kindsOfThings))
			case n >= 20:
				m.park(random.IntN(kindsOfThings))
			case len(m.clients) == 0:
			case n < 9:
				m.allow(random.Uint64(), random.IntN(kindsOfThings))
			case n < 11:
				m.leave(m.clients[random.IntN(len(m.clients))], false)
			default:
				m.step(m.clients[random.IntN(len(m.clients))])
			}
		}
		m.settle()
		m.check(t, seed)
		// All sleep now, and several may use the things of a kind from here on.
		m.allow(random.Uint64(), random.IntN(kindsOfThings))
		m.settle()
		m.check(t, seed)
	}
}

// Things are of kinds, which not every request can use, and of classes, which requests ask for: one of them,
// or any.
const (
	kindsOfThings = 4
	anyClass      = 2 // the number of classes
	// maxThingsPassedOver is the number of suspended things that one look passes over.
	maxThingsPassedOver = 1
	// thingsParkedAtOnce is the number of things that one write parks.
	thingsParkedAtOnce = 1
)

func classOf(kind int) int { return kind % anyClass }

// waitModel is a workspace with things, and the requests that want one of them.
type waitModel struct {
	waiters   waiters
	workspace [16]byte
	things    []int // the kinds of those that nobody has taken, and that are not parked
	clients   []*waitClient
	kinds     [kindsOfThings]struct {
		suspended bool // requests pass over the things of the kind
		parking   bool // a timer parks further ones
		parked    int
	}
}

// waitClient is a request: it looks, in two steps, and then sleeps or has what it wants.
type waitClient struct {
	class  int     // of the things that it asks for
	uses   int     // a bit for each kind of thing that it can have
	before uint64  // the wake-ups before its first look
	waiter *waiter // nil until it has joined
	looks  bool    // it is going to look, or looking
	saw    bool    // it has looked, and found nothing
	passes bool    // there was something of its class, but not for it
}

func newWaitModel() *waitModel {
	m := &waitModel{workspace: workspaceNumber(1)}
	m.waiters.limits = &Limits{Waiting: 1000, WorkspaceWaiting: 1000}
	return m
}

// topic returns the topic of the claims of a class.
func (m *waitModel) topic(n int) tracker.Topic { return tracker.Topic{0: 'c', 8: byte(n)} }

// offer adds a thing. Requests for its class and for any may have it.
func (m *waitModel) offer(kind int) {
	if m.kinds[kind].suspended {
		m.kinds[kind].parked++
		return
	}
	m.things = append(m.things, kind)
	m.wakeFor(kind)
}

func (m *waitModel) wakeFor(kind int) {
	m.waiters.wake(m.workspace, []tracker.Wake{{Topics: [4]tracker.Topic{m.topic(classOf(kind)), m.topic(anyClass)}, One: true}})
}

// show makes a thing one of another kind of its class: other requests can use it.
func (m *waitModel) show(i int) {
	kind := (m.things[i] + anyClass) % kindsOfThings
	m.things = slices.Delete(m.things, i, i+1)
	m.offer(kind)
}

// suspend begins to park the things of a kind, as the service does with the sessions of a scope.
func (m *waitModel) suspend(kind int) {
	k := &m.kinds[kind]
	if k.suspended {
		return
	}
	k.suspended = true
	k.parking = m.parkSome(kind)
}

// park continues to park the things of a kind. Looks may have passed over as many of them as they may,
// and have met no others.
func (m *waitModel) park(kind int) {
	k := &m.kinds[kind]
	if !k.parking {
		return
	}
	if k.parking = m.parkSome(kind); !k.parking {
		m.waiters.wake(m.workspace, []tracker.Wake{{Each: true}})
	}
}

// parkSome parks things of a kind and reports whether some are left.
func (m *waitModel) parkSome(kind int) (more bool) {
	for range thingsParkedAtOnce {
		i := slices.Index(m.things, kind)
		if i < 0 {
			return false
		}
		m.things = slices.Delete(m.things, i, i+1)
		m.kinds[kind].parked++
	}
	return slices.Contains(m.things, kind)
}

// resume makes the things of a kind usable again. Those that were not parked yet wake nobody by themselves.
func (m *waitModel) resume(kind int) {
	k := m.kinds[kind]
	m.kinds[kind].suspended, m.kinds[kind].parking, m.kinds[kind].parked = false, false, 0
	if k.parking {
		m.waiters.wake(m.workspace, []tracker.Wake{{Each: true}})
	}
	for range k.parked {
		m.offer(kind)
	}
}

// allow lets requests use things of one more kind; which has a bit for each of them.
func (m *waitModel) allow(which uint64, kind int) {
	for i, c := range m.clients {
		c.uses |= int(which>>i&1) << kind
	}
	why := tracker.Wake{Each: true}
	if which>>63 == 1 { // the claims of one agent, which are all that there are
		why.Topics[0], _ = m.topic(0).Group()
	}
	m.waiters.wake(m.workspace, []tracker.Wake{why})
}

// come begins a request with its first look.
func (m *waitModel) come(class, uses int) {
	c := &waitClient{class: class, uses: uses, before: m.waiters.wakes(m.workspace)}
	if i, _ := m.usable(c); i >= 0 {
		m.things = slices.Delete(m.things, i, i+1)
		return
	}
	m.clients = append(m.clients, c)
}

// asks reports whether a request asks for things of a kind.
func (c *waitClient) asks(kind int) bool { return c.class == anyClass || c.class == classOf(kind) }

// usable returns the place of a thing that a request can have, or -1, and whether it has met others of its
// class. The newest comes first, which may not be the one that it was woken for.
func (m *waitModel) usable(c *waitClient) (at int, others bool) {
	passed := 0
	for i, kind := range slices.Backward(m.things) {
		switch {
		case m.kinds[kind].suspended:
			if passed++; passed > maxThingsPassedOver {
				return -1, others
			}
		case c.asks(kind) && c.uses&(1<<kind) != 0:
			return i, others
		default:
			others = others || c.asks(kind)
		}
	}
	return -1, others
}

// step has a request do the next thing that it has to do, and reports whether there was one.
func (m *waitModel) step(c *waitClient) bool {
	switch {
	case c.waiter == nil:
		c.waiter = m.waiters.join(m.workspace, m.topic(c.class))
		c.looks = m.waiters.missed(c.waiter, c.before)
	case c.looks && !c.saw:
		i, others := m.usable(c)
		if i >= 0 {
			var took []tracker.Topic
			if c.class == anyClass {
				took = []tracker.Topic{m.topic(classOf(m.things[i]))}
			}
			m.things = slices.Delete(m.things, i, i+1)
			m.leave(c, m.waiters.served(c.waiter, took))
			return true
		}
		c.saw, c.passes = true, others
	case c.looks:
		c.looks, c.saw = m.waiters.rest(c.waiter, c.passes), false
	default:
		c.looks = m.waiters.woken(c.waiter)
		return c.looks
	}
	return true
}

func (m *waitModel) leave(c *waitClient, used bool) {
	if c.waiter != nil {
		m.waiters.leave(c.waiter, used)
	}
	m.clients = slices.DeleteFunc(m.clients, func(o *waitClient) bool { return o == c })
}

func (m *waitModel) check(t *testing.T, seed uint64) {
	t.Helper()
	for _, c := range m.clients {
		if i, _ := m.usable(c); i >= 0 {
			t.Fatalf("seed %d: a request that uses %b sleeps beside a thing of the kind %d", seed, c.uses, m.things[i])
		}
	}
}

// settle has the timers park all that is to be parked, and lets all requests go on until all sleep.
func (m *waitModel) settle() {
	for kind := range m.kinds {
		for m.kinds[kind].parking {
			m.park(kind)
		}
	}
	for range 10_000 {
		if !slices.ContainsFunc(slices.Clone(m.clients), m.step) {
			return
		}
	}
	panic(fmt.Sprintf("%d requests never come to rest", len(m.clients)))
}
