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

// share counts a request among those of its address that wait, once. release counts it off, unless
// takeShare has passed the count on.
func (s *Server) share(x *exchange) error {
	if x.sharer.IsValid() {
		return nil
	}
	from := sharer(s.client(x))
	if err := s.waits.enter(from); err != nil {
		return err
	}
	x.sharer = from
	return nil
}

// takeShare returns the address that the request counts for. The caller counts it off.
func (x *exchange) takeShare() (from netip.Addr) {
	from, x.sharer = x.sharer, netip.Addr{}
	return from
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
