package httpapi

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// The busiest workspaces of a node are found with the space-saving algorithm (Metwally,
// Agrawal, El Abbadi, 2005): a fixed number of counters, of which the smallest one is given
// to a workspace that has none. Memory does not grow with the number of workspaces, and a
// workspace with more than its share of the requests always has a counter.
const (
	// busyWindow is how long requests are counted before the counters begin anew. An answer
	// has the last complete window and the one that has begun.
	busyWindow = 10 * time.Second
	// busyStripes spread the workspaces by their ids, each with a lock of its own.
	busyStripes = 16
	// busyCounters is the number of counters of a stripe and window. A workspace with more
	// than 1/32 of the requests of its stripe has one.
	busyCounters = 32
	// busyLate is how far behind the window the time of a request may be: its body may have
	// arrived slowly. A larger difference is a clock that was set back.
	busyLate = time.Minute
	// busyShown bounds the workspaces with most requests that an answer lists, and slowShown those with the
	// slowest request that it lists beside them.
	busyShown = 20
	slowShown = 10
)

// BusyWorkspace is a workspace with many or slow requests. Requests are counted by the workspace's
// owner, for callers with a valid credential.
type BusyWorkspace struct {
	OrganizationID string `json:"organizationId"`
	Reads          uint64 `json:"reads"`
	Writes         uint64 `json:"writes"`
	// Uncounted is the largest number of requests that may have been missed, because the
	// workspace had no counter then.
	Uncounted uint64 `json:"uncounted"`
	// SlowestMs is the time that the slowest request took that ended meanwhile, at the owner and without the
	// arrival of its body. Requests that asked to wait, and streams, don't count.
	SlowestMs int64 `json:"slowestMs"`
}

// busiest counts the requests of workspaces. Its methods may be called from any goroutine.
type busiest struct {
	began   time.Time
	stripes [busyStripes]busyStripe
}

// busyStripe counts those of a part of the workspaces.
type busyStripe struct {
	mu   sync.Mutex
	at   time.Time // when the window now began
	now  busyCounts
	last busyCounts // of the window before
}

// busyCounts are the counters of one window, of which the first used ones are taken, and its slowest requests.
type busyCounts struct {
	used int
	ids  [busyCounters][16]byte
	of   [busyCounters]busyCount
	slow slowRequests
}

func (c *busyCounts) forget() {
	c.used = 0
	c.slow.forget()
}

// busyCount counts the requests of one workspace since it took the counter. missed is the
// count that the counter had then.
type busyCount struct {
	reads, writes, missed uint64
	slowest               time.Duration
}

func (c *busyCount) add(n busyCount) {
	c.reads, c.writes, c.missed, c.slowest = c.reads+n.reads, c.writes+n.writes, c.missed+n.missed, max(c.slowest, n.slowest)
}

func (c *busyCount) total() uint64 { return c.reads + c.writes + c.missed }

func newBusiest(now time.Time) *busiest { return &busiest{began: now} }

// count counts a request.
func (b *busiest) count(workspace [16]byte, writes bool, now time.Time) {
	s := &b.stripes[workspace[15]%busyStripes] // the last bits of a UUIDv7 are random
	s.mu.Lock()
	s.turn(now)
	c := s.now.counter(workspace)
	if writes {
		c.writes++
	} else {
		c.reads++
	}
	s.mu.Unlock()
}

// took adds how long a request took that was counted when it began. Its workspace may have no counter any more.
func (b *busiest) took(workspace [16]byte, took time.Duration, now time.Time) {
	s := &b.stripes[workspace[15]%busyStripes]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn(now)
	s.now.slow.add(workspace, took)
	for _, window := range [...]*busyCounts{&s.now, &s.last} {
		for i := range window.used {
			if window.ids[i] == workspace {
				window.of[i].slowest = max(window.of[i].slowest, took)
				return
			}
		}
	}
}

// turn begins a new window if the time has come. Windows begin at multiples of their
// length, so that those of all stripes are the same.
func (s *busyStripe) turn(now time.Time) {
	behind := now.Sub(s.at)
	if behind < busyWindow && behind > -busyLate {
		return
	}
	if behind > 0 && behind < 2*busyWindow {
		s.last = s.now
	} else {
		s.last.forget()
	}
	s.now.forget()
	s.at = now.Truncate(busyWindow)
}

// counter returns the counter of a workspace, which takes the smallest one if it has none.
func (c *busyCounts) counter(workspace [16]byte) *busyCount {
	for i := range c.used {
		if c.ids[i] == workspace {
			return &c.of[i]
		}
	}
	at, missed := c.free()
	c.used = max(c.used, at+1)
	c.ids[at], c.of[at] = workspace, busyCount{missed: missed}
	return &c.of[at]
}

// free returns the counter for a workspace that has none, and the most requests that it may have had.
func (c *busyCounts) free() (at int, missed uint64) {
	if c.used < busyCounters {
		return c.used, 0
	}
	for i := range c.of {
		if c.of[i].total() < c.of[at].total() {
			at = i
		}
	}
	return at, c.of[at].total()
}

// workspaces returns the workspaces that the window knows, some of them twice.
func (c *busyCounts) workspaces() [][16]byte {
	ids := slices.Clone(c.ids[:c.used])
	for _, r := range c.slow.kept() {
		ids = append(ids, r.workspace)
	}
	return ids
}

// find returns what the window knows of a workspace. A workspace without a counter may have had requests as well.
func (c *busyCounts) find(workspace [16]byte) (n busyCount) {
	if at := slices.Index(c.ids[:c.used], workspace); at >= 0 {
		n = c.of[at]
	} else {
		_, n.missed = c.free()
	}
	for _, r := range c.slow.kept() {
		if r.workspace == workspace {
			n.slowest = max(n.slowest, r.took)
		}
	}
	return n
}

// list returns the workspaces with most requests, the busiest first, behind them others with the slowest ones,
// and the time in which these were made.
func (b *busiest) list(now time.Time) (list []BusyWorkspace, within time.Duration) {
	type entry struct {
		id [16]byte
		busyCount
	}
	var all []entry
	for i := range b.stripes {
		s := &b.stripes[i]
		s.mu.Lock()
		s.turn(now)
		first := len(all)
		windows := [...]*busyCounts{&s.now, &s.last}
		for _, window := range windows {
			for _, id := range window.workspaces() {
				if !slices.ContainsFunc(all[first:], func(e entry) bool { return e.id == id }) {
					all = append(all, entry{id: id})
				}
			}
		}
		for i := range all[first:] {
			e := &all[first+i]
			for _, window := range windows {
				e.add(window.find(e.id))
			}
		}
		s.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.reads+b.writes, a.reads+a.writes), bytes.Compare(a.id[:], b.id[:]))
	})
	if len(all) > busyShown {
		others := all[busyShown:]
		slices.SortStableFunc(others, func(a, b entry) int { return cmp.Compare(b.slowest, a.slowest) })
		all = all[:busyShown+min(len(others), slowShown)]
	}
	list = []BusyWorkspace{}
	for _, e := range all {
		list = append(list, BusyWorkspace{OrganizationID: uuid.UUID(e.id).String(), Reads: e.reads, Writes: e.writes, Uncounted: e.missed, SlowestMs: e.slowest.Milliseconds()})
	}
	within = now.Sub(now.Truncate(busyWindow)) + busyWindow
	return list, max(0, min(within, now.Sub(b.began)))
}
