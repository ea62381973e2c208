package httpapi

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// busyID returns the id of the n-th workspace; those of a stripe are busyStripes apart.
func busyID(n int) (id [16]byte) {
	id[0], id[6], id[13], id[14], id[15] = 1, 0x70, byte(n>>16), byte(n>>8), byte(n)
	return id
}

var busyStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestBusiest_ListsTheBusiestFirst(t *testing.T) {
	t.Parallel()
	b := newBusiest(busyStart)
	for n := 1; n <= 30; n++ {
		for range n {
			b.count(busyID(n), n%2 == 0, busyStart.Add(time.Second))
		}
	}
	list, within := b.list(busyStart.Add(4 * time.Second))
	if len(list) != busyShown+slowShown || within != 4*time.Second {
		t.Fatalf("%d workspaces within %s", len(list), within)
	}
	for i, w := range list[:busyShown] {
		n := 30 - i
		want := BusyWorkspace{OrganizationID: uuid.UUID(busyID(n)).String(), Reads: uint64(n)}
		if n%2 == 0 {
			want.Reads, want.Writes = 0, uint64(n)
		}
		if w != want {
			t.Errorf("place %d: %+v, want %+v", i, w, want)
		}
	}
}

// Behind the busiest workspaces come those with the slowest requests, each with the slowest of two windows.
func TestBusiest_ListsTheSlowestToo(t *testing.T) {
	t.Parallel()
	b := newBusiest(busyStart)
	for n := 1; n <= 40; n++ {
		for range n {
			b.count(busyID(n), false, busyStart.Add(time.Second))
		}
		b.took(busyID(n), time.Duration(n)*time.Millisecond, busyStart.Add(2*time.Second))
	}
	b.took(busyID(2), 3*time.Second, busyStart.Add(11*time.Second)) // counted in the window before
	b.took(busyID(2), time.Millisecond, busyStart.Add(12*time.Second))
	b.took(busyID(77), 25*time.Second, busyStart.Add(12*time.Second)) // counted in a window that is over
	list, _ := b.list(busyStart.Add(12 * time.Second))
	if len(list) != busyShown+slowShown || list[0].SlowestMs != 40 {
		t.Fatalf("%d workspaces, %+v", len(list), list[0])
	}
	if got, want := list[busyShown], (BusyWorkspace{OrganizationID: uuid.UUID(busyID(77)).String(), SlowestMs: 25_000}); got != want {
		t.Errorf("the slowest of the others is %+v, want %+v", got, want)
	}
	if got := list[busyShown+1]; got.OrganizationID != uuid.UUID(busyID(2)).String() || got.SlowestMs != 3000 {
		t.Errorf("the second is %+v", got)
	}
	if got := list[busyShown+2]; got.OrganizationID != uuid.UUID(busyID(20)).String() {
		t.Errorf("the next one is %+v", got)
	}
}

// A slow request is listed for as long as the window in which it ended, also if its workspace had no other
// request and many others came.
func TestBusiest_KeepsTheSlowest(t *testing.T) {
	t.Parallel()
	b := newBusiest(busyStart)
	slow := map[string]int64{}
	for n, ends := range []time.Duration{14 * time.Second, 11 * time.Second} {
		id := busyID((n + 1) * busyStripes) // all are of one stripe
		b.count(id, false, busyStart.Add(time.Second))
		b.took(id, ends-time.Second, busyStart.Add(ends))
		slow[uuid.UUID(id).String()] = (ends - time.Second).Milliseconds()
	}
	for n := 3; n < 300; n++ {
		for range 2 {
			b.count(busyID(n*busyStripes), false, busyStart.Add(15*time.Second))
		}
		b.took(busyID(n*busyStripes), time.Duration(n)*time.Millisecond, busyStart.Add(16*time.Second))
	}
	for _, after := range []time.Duration{17 * time.Second, 29 * time.Second} {
		list, _ := b.list(busyStart.Add(after))
		if len(list) != busyShown+slowShown {
			t.Fatalf("%d workspaces after %s", len(list), after)
		}
		for _, w := range list[busyShown : busyShown+2] {
			if w.SlowestMs != slow[w.OrganizationID] {
				t.Errorf("after %s %+v is among the slowest", after, w)
			}
		}
		// No counter is left of the first window, so they may have had as many requests as the smallest one has.
		if w := list[busyShown]; after > 20*time.Second && w.Uncounted == 0 {
			t.Errorf("after %s the slowest is %+v", after, w)
		}
	}
	if list, _ := b.list(busyStart.Add(31 * time.Second)); len(list) > 0 {
		t.Errorf("after two windows there are %+v", list)
	}
}

// A busy workspace keeps its counter however many others come once, and memory is fixed.
func TestBusiest_KeepsABusyWorkspaceAmongMany(t *testing.T) {
	t.Parallel()
	b := newBusiest(busyStart)
	const others, requests = 20_000, 2000
	for n := 1; n <= others; n++ {
		b.count(busyID(n*busyStripes), false, busyStart) // all in its stripe
		if n%(others/requests) == 0 {
			b.count(busyID(0), true, busyStart)
		}
	}
	list, _ := b.list(busyStart)
	if len(list) != busyShown+slowShown || list[0].OrganizationID != uuid.UUID(busyID(0)).String() {
		t.Fatalf("the busiest of %d: %+v", len(list), list[0])
	}
	if got := list[0]; got.Writes > requests || got.Writes+got.Uncounted < requests {
		t.Errorf("%d and at most %d more, of %d", got.Writes, got.Uncounted, requests)
	}
}

// A workspace that lost its counter in the window before may have had requests there.
func TestBusiest_SaysWhatItMissed(t *testing.T) {
	t.Parallel()
	b := newBusiest(busyStart)
	for n := range busyCounters + 8 {
		for range 3 {
			b.count(busyID(n*busyStripes), false, busyStart.Add(time.Second)) // all are of one stripe
		}
	}
	for range 5 {
		b.count(busyID(0), false, busyStart.Add(11*time.Second))
	}
	list, _ := b.list(busyStart.Add(12 * time.Second))
	if w := list[0]; w.OrganizationID != uuid.UUID(busyID(0)).String() || w.Reads != 5 || w.Uncounted < 3 {
		t.Errorf("the busiest is %+v", w)
	}
}

func TestBusiest_ForgetsAfterTwoWindows(t *testing.T) {
	t.Parallel()
	b := newBusiest(busyStart)
	b.count(busyID(1), false, busyStart.Add(9*time.Second))
	b.count(busyID(1), false, busyStart.Add(11*time.Second))
	b.count(busyID(1), true, busyStart.Add(9*time.Second)) // began in the window before, and took long
	for _, row := range []struct {
		after         time.Duration
		reads, writes uint64
		within        time.Duration
		gone          bool
	}{
		{after: 12 * time.Second, reads: 2, writes: 1, within: 12 * time.Second},
		{after: 25 * time.Second, reads: 1, writes: 1, within: 15 * time.Second},
		{after: 31 * time.Second, within: 11 * time.Second, gone: true},
	} {
		list, within := b.list(busyStart.Add(row.after))
		if within != row.within || (len(list) == 0) != row.gone || !row.gone && (list[0].Reads != row.reads || list[0].Writes != row.writes) {
			t.Errorf("after %s: %+v within %s", row.after, list, within)
		}
	}
	b.count(busyID(2), false, busyStart.Add(-time.Hour)) // the clock was set back
	if list, within := b.list(busyStart.Add(-time.Hour)); len(list) != 1 || within != 0 {
		t.Errorf("after the clock was set back: %+v within %s", list, within)
	}
}

func TestBusiest_CountsFromManyGoroutines(t *testing.T) {
	t.Parallel()
	b := newBusiest(busyStart)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := range 1000 {
				b.count(busyID(n%10), false, busyStart)
				if n%100 == 0 {
					b.list(busyStart)
				}
			}
		})
	}
	all.Wait()
	list, _ := b.list(busyStart)
	for _, w := range list {
		if w.Reads != 800 {
			t.Errorf("%+v, want 800 reads", w)
		}
	}
}

func TestBusiest_CountAllocatesNothing(t *testing.T) {
	b := newBusiest(busyStart)
	n := 0
	if got := testing.AllocsPerRun(1000, func() { n++; b.count(busyID(n), false, busyStart) }); got != 0 {
		t.Errorf("%v allocations a request", got)
	}
}

func BenchmarkBusiest_Count(b *testing.B) {
	busy := newBusiest(busyStart)
	n := 0
	for b.Loop() {
		n++
		busy.count(busyID(n%4096), false, busyStart)
	}
}
