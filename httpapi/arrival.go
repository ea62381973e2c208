package httpapi

import (
	"errors"
	"os"
	"time"
)

// A request has Config.ReadTimeout from its first byte to arrive, and its body so much longer as its
// bytes take at leastRate. So a slow line is served, a client that stalls is cut off as before, and no
// request can arrive for longer than a body of the size that its route takes. A body that holds charged
// bytes for which others wait has less time: see budget.spare.

const (
	// leastRate is the speed, in bytes a second, at which a body may always arrive.
	leastRate = 64 << 10
	// spareAfter is how long a body may arrive, from when it has its bytes, although others wait for
	// these. It is less than the time for which they wait.
	spareAfter = 5 * time.Second
	// spareEvery is the time between two looks for others that wait.
	spareEvery = time.Second
)

// arrival is the arrival of a request on a connection. Owned by the connection's goroutine.
type arrival struct {
	// due is when the request must be there if none of its body has come.
	due time.Time
	// on is set while the body is read. bytes is what has come of it meanwhile.
	on    bool
	bytes int64
	// spare is when the body may be cut off for others; zero: never. held has the bytes of a body
	// that waited for them, and spared is set when it was cut off.
	spare  time.Time
	held   *heldBody
	spared bool
}

// SetReadDeadline sets when the request must have arrived. fasthttp calls it at the request's first byte.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.arrival.due = t
	return c.Conn.SetReadDeadline(t)
}

// receive begins the arrival of a request's body, which has its bytes by now. With renewed, its time begins anew.
func (c *conn) receive(x *exchange, renewed bool) {
	a, s := &c.arrival, c.owner.server
	now := time.Now()
	a.on, a.bytes, a.held, a.spare, a.spared = true, 0, x.held, time.Time{}, false
	if renewed {
		a.due = now.Add(s.cfg.ReadTimeout)
	}
	if length := x.ctx.Request.Header.ContentLength(); !c.peer && x.account != operatorAccount && (length > freeBytes || length == -1) {
		a.spare = now.Add(spareAfter)
	}
	if renewed || !a.spare.IsZero() {
		c.wait(a.next(now))
	}
}

// received ends the arrival of a body.
func (c *conn) received() { c.arrival.on, c.arrival.held = false, nil }

// next returns until when the connection waits for bytes.
func (a *arrival) next(now time.Time) time.Time {
	due := a.due.Add(time.Duration(a.bytes) * time.Second / leastRate)
	switch {
	case a.spare.IsZero():
		return due
	case now.Before(a.spare):
		return earlier(due, a.spare)
	}
	return earlier(due, now.Add(spareEvery))
}

// wait has reads of the connection wait until then, or no longer if Shutdown has ended the arrival of requests.
func (c *conn) wait(until time.Time) {
	_ = c.Conn.SetReadDeadline(until) // an error says that it is closed, as the next read does
	if c.late.Load() {
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// waitsOn reports whether a read that failed is to be tried again, because the body has more time.
func (c *conn) waitsOn(err error) bool {
	a := &c.arrival
	if !a.on || !errors.Is(err, os.ErrDeadlineExceeded) || c.late.Load() {
		return false
	}
	now := time.Now()
	next := a.next(now)
	if !now.Before(next) {
		return false
	}
	if !a.spare.IsZero() && !now.Before(a.spare) && c.owner.server.budget.spare(c, a.held) {
		a.spared = true
		return false
	}
	c.wait(next)
	return true
}
