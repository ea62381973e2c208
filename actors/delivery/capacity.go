package delivery

import (
	"container/heap"
	"sync"
)

// capacity bounds the memory of the deliveries that a node makes at once, over all its shards,
// and so their number. A queue takes a slot before it runs, and more memory before it reads an
// event that is not small. A queue that gets none waits in the list of its workspace, and holds
// neither memory nor a goroutine meanwhile.
//
// Queues of healthy and of unhealthy webhooks are two classes. Each class has less than all, so
// the other one always has some. Within a class the waiting workspace that holds the least comes
// first, and a workspace that holds some may take no more than it leaves free.
type capacity struct {
	most int64

	mu       sync.Mutex // guards the fields below, those of shares, and Dispatcher.granted; never held while waiting
	classes  [classes]capacityClass
	arrivals uint64
}

// class is the kind of a queue that takes a slot.
type class uint8

const (
	healthyClass class = iota
	unhealthyClass
	classes
)

// capacityClass is the state of a class.
type capacityClass struct {
	most, used int64 // in bytes
	waiting    shareHeap
}

// share is the part of a workspace in a class.
type share struct {
	dispatcher *Dispatcher
	class      class

	// queues wait for a slot, in order. The dispatcher's loop owns them. While there are some,
	// the share is waiting or has been granted a slot.
	queues []*queue

	// Guarded by the mutex of the capacity.
	used    int64  // held by running queues and granted slots, in bytes
	need    int64  // of the first queue that waits
	arrived uint64 // orders shares that hold the same
	place   int    // index among the waiting shares, or -1
}

// slot is the memory of one running queue. The run owns it, and gives it back at its end.
type slot struct {
	of    *capacity
	share *share
	bytes int64
}

const (
	// slotBytes is the memory of a delivery with a small body, in bytes: its connection,
	// goroutines and buffers. A larger body counts as well.
	slotBytes = 32 << 10
	smallBody = 8 << 10
	// largestPart is the part of all memory that one delivery counts at most. Larger ones would
	// not be made at all, or keep all others waiting.
	largestPart = 8
)

func newCapacity(most int64) *capacity {
	most = max(most, largestPart*slotBytes)
	c := &capacity{most: most}
	c.classes[healthyClass].most, c.classes[unhealthyClass].most = most-most/8, most/2
	return c
}

// newShares returns the parts of a workspace.
func newShares(d *Dispatcher) (s [classes]share) {
	for i := range s {
		s[i] = share{dispatcher: d, class: class(i), place: -1}
	}
	return s
}

// cost returns the memory that a delivery with a body of a size counts.
func (c *capacity) cost(body int) int64 {
	if body <= smallBody {
		return slotBytes
	}
	return min(slotBytes+int64(body), c.most/largestPart)
}

// take returns a slot for the first queue of a share, with room for a body of a size. Without
// room it returns nil, and the share waits.
func (c *capacity) take(s *share, body int) *slot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.need = c.cost(body)
	if len(c.classes[s.class].waiting) == 0 && c.fits(s, 0, s.need) {
		return c.slot(s)
	}
	c.enqueue(s)
	return nil
}

// wait makes a share wait for the slot of its first queue. Once the dispatcher has the slot among
// those that were granted to it, it is woken.
func (c *capacity) wait(s *share, body int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.need = c.cost(body)
	c.enqueue(s)
}

// enqueue makes a share wait. The caller holds mu.
func (c *capacity) enqueue(s *share) {
	c.arrivals++
	s.arrived = c.arrivals
	heap.Push(&c.classes[s.class].waiting, s)
	c.grant() // those that wait may hold more than this one
}

// slot takes the memory that a share needs. The caller holds mu.
func (c *capacity) slot(s *share) *slot {
	c.change(s, s.need)
	return &slot{of: c, share: s, bytes: s.need}
}

// fits reports whether a share may take more memory for a slot that holds some of it, or none
// yet. The caller holds mu.
func (c *capacity) fits(s *share, held, more int64) bool {
	own := &c.classes[s.class]
	free := min(c.most-c.used(), own.most-own.used)
	return more <= free && (s.used == held || s.used+more <= free)
}

// used returns the memory that is taken. The caller holds mu.
func (c *capacity) used() int64 {
	return c.classes[healthyClass].used + c.classes[unhealthyClass].used
}

// change adds to the memory that a share holds. The caller holds mu.
func (c *capacity) change(s *share, bytes int64) {
	own := &c.classes[s.class]
	s.used += bytes
	own.used += bytes
	if s.place >= 0 {
		heap.Fix(&own.waiting, s.place)
	}
}

// grant takes slots for the shares that wait, as far as there is room. The caller holds mu.
func (c *capacity) grant() {
	for i := range c.classes {
		for waiting := &c.classes[i].waiting; len(*waiting) > 0; {
			s := (*waiting)[0]
			if !c.fits(s, 0, s.need) {
				break // the next ones may be smaller, and would pass it again and again
			}
			heap.Pop(waiting)
			s.dispatcher.granted = append(s.dispatcher.granted, c.slot(s))
			s.dispatcher.wake()
		}
	}
}

// grow makes a slot large enough for a body of a size, and reports whether there is room. It never
// waits.
func (l *slot) grow(body int) bool {
	c := l.of
	more := c.cost(body) - l.bytes
	if more <= 0 {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.classes[l.share.class].waiting) > 0 || !c.fits(l.share, l.bytes, more) {
		return false
	}
	l.bytes += more
	c.change(l.share, more)
	return true
}

// shrink makes a slot no larger than it has to be for a body of a size.
func (l *slot) shrink(body int) {
	c := l.of
	less := l.bytes - c.cost(body)
	if less <= 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l.bytes -= less
	c.change(l.share, -less)
	c.grant()
}

// give gives a slot back.
func (l *slot) give() {
	c := l.of
	c.mu.Lock()
	defer c.mu.Unlock()
	c.change(l.share, -l.bytes)
	l.bytes = 0
	c.grant()
}

// grants returns the slots that were granted to a dispatcher since the last call.
func (c *capacity) grants(d *Dispatcher) (list []*slot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list, d.granted = d.granted, nil
	return list
}

// leave ends the waits of a dispatcher and gives back the slots that it was granted. It is called
// by the loop of the dispatcher when that ends.
func (c *capacity) leave(d *Dispatcher) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.classes {
		waiting := &c.classes[i].waiting
		kept := (*waiting)[:0]
		for _, s := range *waiting {
			if s.place = -1; s.dispatcher != d {
				s.place = len(kept)
				kept = append(kept, s)
			}
		}
		clear((*waiting)[len(kept):])
		*waiting = kept
		heap.Init(waiting)
	}
	for _, l := range d.granted {
		c.change(l.share, -l.bytes)
	}
	d.granted = nil
	c.grant()
}

// counts returns the memory that is taken, and the number of shares that wait.
func (c *capacity) counts() (used int64, waiting int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.classes {
		waiting += len(c.classes[i].waiting)
	}
	return c.used(), waiting
}

// shareHeap are the waiting shares of a class, the one that holds the least first.
type shareHeap []*share

func (h shareHeap) Len() int { return len(h) }

func (h shareHeap) Less(i, j int) bool {
	if h[i].used != h[j].used {
		return h[i].used < h[j].used
	}
	return h[i].arrived < h[j].arrived
}

func (h shareHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *shareHeap) Push(x any) {
	s := x.(*share) //nolint:forcetypeassert // the heap has nothing else
	s.place = len(*h)
	*h = append(*h, s)
}

// Pop implements heap.Interface.
func (h *shareHeap) Pop() any {
	old := *h
	last := len(old) - 1
	s := old[last]
	old[last] = nil
	s.place = -1
	*h = old[:last]
	return s
}
