package actors

import (
	"slices"
	"sync"
	"time"

	"switchyard/storage"
)

const (
	// exportHeld is the time for which an export keeps its place in any case, counted from its first block.
	exportHeld = 30 * time.Second
	// exportPace is the speed from which on it keeps its place until it ends, in bytes a second before compression.
	exportPace = 1 << 20
	// exportWindow is the time over which the speed is measured. The time in which this node makes a block does
	// not count.
	exportWindow = 10 * time.Second
)

// exports has the exports of this node, without the operator's. Each holds a snapshot, which keeps on the disk what
// is overwritten and deleted meanwhile.
type exports struct {
	mu    sync.Mutex // guards the slots, too; nothing waits while it is held
	slots []*exportSlot
}

// exportSlot is the place of an export.
type exportSlot struct {
	workspace storage.ID
	begun     time.Time     // was the first block sent
	sending   time.Time     // is the last block being sent since; zero while the next one is made
	block     int           // bytes of the last block
	sent      int           // bytes of the blocks before, in this window
	took      time.Duration // did the client need for these
	pace      int           // of the window before
	end       func()        // ends the export
}

// enter returns a place for an export of a workspace; nil if there is none. A workspace may have half of them, and
// one in any case, but a further one only if that leaves a place for others. If all places are taken, a workspace
// that has none gets that of the slowest export, whose function to end it is returned.
func (x *exports) enter(workspace storage.ID, most int, now time.Time) (slot *exportSlot, end func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	own := 0
	for _, s := range x.slots {
		if s.workspace == workspace {
			own++
		}
	}
	slot = &exportSlot{workspace: workspace, pace: exportPace}
	switch {
	case own >= max(1, most/2):
		return nil, nil
	case len(x.slots)+min(own, 1) < most:
		x.slots = append(x.slots, slot)
		return slot, nil
	case own > 0:
		return nil, nil
	}
	at := x.slowest(now)
	if at < 0 {
		return nil, nil
	}
	end = x.slots[at].end
	x.slots[at] = slot
	return slot, end
}

// slowest returns the index of the slowest export that may be ended; -1 for none.
func (x *exports) slowest(now time.Time) int {
	at, least := -1, exportPace
	for i, s := range x.slots {
		if s.end == nil || s.begun.IsZero() || now.Sub(s.begun) < exportHeld {
			continue
		}
		pace, took := s.pace, s.took
		if !s.sending.IsZero() {
			took += now.Sub(s.sending)
		}
		if took >= exportWindow {
			pace = perSecond(s.sent, took)
		}
		if pace < least {
			at, least = i, pace
		}
	}
	return at
}

// sends notes that a block is being sent.
func (x *exports) sends(slot *exportSlot, bytes int, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if slot.begun.IsZero() {
		slot.begun = now
	}
	slot.sending, slot.block = now, bytes
}

// taken notes that the connection has taken the last block.
func (x *exports) taken(slot *exportSlot, now time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if slot.sending.IsZero() {
		return
	}
	slot.took += now.Sub(slot.sending)
	slot.sent += slot.block
	slot.sending = time.Time{}
	if slot.took >= exportWindow {
		slot.pace, slot.sent, slot.took = perSecond(slot.sent, slot.took), 0, 0
	}
}

// onEnd sets the function that ends an export.
func (x *exports) onEnd(slot *exportSlot, end func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	slot.end = end
}

// leave gives a place back, unless another export has it.
func (x *exports) leave(slot *exportSlot) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if at := slices.Index(x.slots, slot); at >= 0 {
		x.slots = slices.Delete(x.slots, at, at+1)
	}
}

func perSecond(bytes int, passed time.Duration) int {
	return int(float64(bytes) / passed.Seconds())
}
