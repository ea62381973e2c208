package httpapi

import (
	"net/netip"
	"sync"
)

// waitingShares counts the waiting requests and event streams of each address.
type waitingShares struct {
	limit   int // 0 is no limit
	refused func(bound string)

	mu sync.Mutex
	by map[netip.Addr]int
}

func newWaitingShares(limit int, refused func(string)) *waitingShares {
	return &waitingShares{limit: limit, refused: refused, by: map[netip.Addr]int{}}
}

// enter counts one more of an address, which is a sharer; leave counts it off.
func (w *waitingShares) enter(addr netip.Addr) error {
	if w.limit <= 0 || !addr.IsValid() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by[addr] >= w.limit {
		w.refused(boundAddressWaiting)
		return errAddressWaiting(w.limit)
	}
	w.by[addr]++
	return nil
}

func (w *waitingShares) leave(addr netip.Addr) {
	if w.limit <= 0 || !addr.IsValid() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by[addr]--; w.by[addr] <= 0 {
		delete(w.by, addr)
	}
}
