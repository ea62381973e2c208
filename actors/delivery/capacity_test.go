package delivery

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// capacityFixture is a capacity of a number of slots, with a dispatcher that does not run.
type capacityFixture struct {
	*capacity
	dispatcher *Dispatcher
}

func setupCapacity(slots int64) *capacityFixture {
	return &capacityFixture{newCapacity(slots * slotBytes), &Dispatcher{wakeup: make(chan struct{}, 1)}}
}

// workspace returns the part of a new workspace in a class.
func (f *capacityFixture) workspace(c class) *share {
	s := newShares(f.dispatcher)
	return &s[c]
}

// fill takes slots for new workspaces of a class until there is no room, and returns them. The last
// workspace waits.
func (f *capacityFixture) fill(c class, body int) (list []*slot) {
	for {
		l := f.take(f.workspace(c), body)
		if l != nil {
			list = append(list, l)
			continue
		}
		granted := f.grants(f.dispatcher)
		if len(granted) == 0 {
			return list
		}
		list = append(list, granted...)
	}
}

func TestCapacity_EachClassHasSome(t *testing.T) {
	t.Parallel()
	f := setupCapacity(64)
	unhealthy := f.fill(unhealthyClass, 0)
	if len(unhealthy) != 32 {
		t.Errorf("%d slots for unhealthy webhooks", len(unhealthy))
	}
	if n := len(f.fill(healthyClass, 0)); n != 32 {
		t.Errorf("%d slots for healthy webhooks", n)
	}
	f = setupCapacity(64)
	if n := len(f.fill(healthyClass, 0)); n != 56 {
		t.Errorf("%d slots for healthy webhooks alone", n)
	}
	if n := len(f.fill(unhealthyClass, 0)); n != 8 {
		t.Errorf("%d slots for unhealthy webhooks beside them", n)
	}
}

// A workspace takes no more than it leaves free.
func TestCapacity_WorkspacesShareIt(t *testing.T) {
	t.Parallel()
	f := setupCapacity(64)
	take := func(s *share) (n int) {
		for f.take(s, 0) != nil {
			n++
		}
		return n
	}
	for _, want := range []int{16, 8, 4, 2, 1, 1, 0} {
		if n := take(f.workspace(unhealthyClass)); n != want {
			t.Errorf("%d slots for a workspace, want %d", n, want)
		}
		for i := range f.classes { // they wait no longer
			f.classes[i].waiting = nil
		}
	}
}

// Of the workspaces that wait, the one that holds the least is the first.
func TestCapacity_ServesThoseWithTheLeast(t *testing.T) {
	t.Parallel()
	f := setupCapacity(64)
	many := f.workspace(unhealthyClass)
	var held []*slot
	for l := f.take(many, 0); l != nil; l = f.take(many, 0) {
		held = append(held, l)
	}
	few := f.fill(unhealthyClass, 0) // the last one has none and waits behind the first
	held[0].give()
	granted := f.grants(f.dispatcher)
	if len(granted) != 1 || granted[0].share == many || granted[0].share.used != slotBytes {
		t.Fatalf("granted %+v", granted)
	}
	few[0].give()
	if granted = f.grants(f.dispatcher); len(granted) != 0 {
		t.Errorf("a workspace has more than it leaves free: %+v", granted)
	}
}

// A slot grows and shrinks with the bodies, not into the room of those that wait.
func TestCapacity_CountsBodies(t *testing.T) {
	t.Parallel()
	f := setupCapacity(64)
	s := f.workspace(healthyClass)
	l := f.take(s, 0)
	for body, want := range map[int]int64{0: slotBytes, smallBody: slotBytes, 100_000: slotBytes + 100_000, 10 << 20: 64 * slotBytes / largestPart} {
		if !l.grow(body) || l.bytes < want {
			t.Errorf("no room for %d bytes", body)
		}
		l.shrink(body)
		if used, _ := f.counts(); l.bytes != want || used != want || s.used != want {
			t.Errorf("a body of %d bytes counts %d, %d, %d, want %d", body, l.bytes, used, s.used, want)
		}
	}
	l.shrink(0)
	others := f.fill(healthyClass, 0)
	if l.grow(100_000) || l.bytes != slotBytes {
		t.Errorf("grew to %d bytes beside a workspace that waits", l.bytes)
	}
	for _, other := range others {
		other.give()
	}
	for _, other := range f.grants(f.dispatcher) {
		other.give()
	}
	l.give()
	if used, waiting := f.counts(); used != 0 || waiting != 0 {
		t.Errorf("%d bytes are taken, %d workspaces wait", used, waiting)
	}
}

// A large body gets room although small ones keep coming.
func TestCapacity_LargeBodiesAreServed(t *testing.T) {
	t.Parallel()
	f := setupCapacity(64)
	held := f.fill(unhealthyClass, 0)
	large := f.workspace(unhealthyClass)
	f.wait(large, 100_000) // behind one that waits for a small body
	for i, l := range held {
		if large.place < 0 {
			break
		}
		f.wait(f.workspace(unhealthyClass), 0)
		if l.give(); i > 10 {
			t.Fatal("the large body waits behind those that came later")
		}
	}
}

// The end of a dispatcher ends its waits and gives back what it was granted.
func TestCapacity_TheEndOfADispatcher(t *testing.T) {
	t.Parallel()
	f := setupCapacity(64)
	held := f.fill(healthyClass, 0)
	other := &Dispatcher{wakeup: make(chan struct{}, 1)}
	s := newShares(other)
	f.wait(&s[healthyClass], 0)
	held[0].give() // granted to the dispatcher that ends
	f.leave(f.dispatcher)
	if list := f.grants(other); len(list) != 1 || len(other.wakeup) != 1 {
		t.Errorf("granted to the other dispatcher: %d", len(list))
	}
	for _, l := range held[1:] {
		l.give()
	}
	if used, waiting := f.counts(); used != slotBytes || waiting != 0 {
		t.Errorf("%d bytes are taken, %d workspaces wait", used, waiting)
	}
}

// Dispatchers that take, hold and give back at random, and end at random, all get what they
// need. A lost wake-up is a deadlock of the bubble.
func TestCapacity_LosesNoWakeUp(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			c := newCapacity(12 * slotBytes)
			var all sync.WaitGroup
			for n := range uint64(8) {
				all.Go(func() { capacityUser(c, rand.New(rand.NewPCG(seed, n))) })
			}
			all.Wait()
			if used, waiting := c.counts(); used != 0 || waiting != 0 {
				t.Errorf("seed %d: %d bytes are taken, %d workspaces wait", seed, used, waiting)
			}
		})
	}
}

// capacityUser does what the loop of a dispatcher does: it runs some queues of some workspaces.
func capacityUser(c *capacity, random *rand.Rand) {
	d := &Dispatcher{wakeup: make(chan struct{}, 1)}
	defer c.leave(d)
	var running sync.WaitGroup
	defer running.Wait()
	body := func() int { return random.IntN(2) * random.IntN(4*slotBytes) }
	run := func(l *slot) {
		hold, grown := time.Duration(random.IntN(1000))*time.Microsecond, body()
		running.Go(func() {
			defer l.give()
			<-time.After(hold)
			l.grow(grown)
			<-time.After(hold)
			l.shrink(grown)
		})
	}
	waiting := 0
	for range 5 {
		for _, s := range newShares(d) {
			for range 1 + random.IntN(5) {
				s.queues = append(s.queues, &queue{body: body()})
			}
			waiting += len(s.queues)
			c.wait(&s, s.queues[0].body)
		}
	}
	last := random.IntN(4) // some end with queues that wait
	for waiting > last {
		<-d.wakeup
		for _, l := range c.grants(d) {
			s := l.share
			s.queues = s.queues[1:]
			waiting--
			run(l)
			if len(s.queues) > 0 {
				c.wait(s, s.queues[0].body)
			}
		}
	}
}
