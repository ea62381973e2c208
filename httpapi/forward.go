package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

// Placement tells which node serves a workspace and connects to it. Each workspace
// is served by one node at a time; any node answers any request, its own or, through
// this file, by asking the one that can.
type Placement interface {
	// Owner returns the node that serves a workspace, or the directory for the zero id.
	// here is set if it is this node. node is empty if no owner is known and reachable.
	// changed is closed when the answer may have changed.
	Owner(workspace [16]byte) (node string, here bool, changed <-chan struct{})
	// OwnerDue returns until when a request waits that has found no owner of its workspace
	// since missing, at the latest. All that came after the last sign of an owner wait until
	// the same time, so that a node that is cut off from the others keeps nobody waiting
	// (Decision 55).
	OwnerDue(workspace [16]byte, missing time.Time) time.Time
	// Dial connects to another node's Server.ServePeers. An error means that nothing
	// was sent.
	Dial(ctx context.Context, node string) (net.Conn, error)
}

// Headers between nodes. They mean something on connections of ServePeers only; a
// client's are dropped.
const (
	headerTimeLeft = "Switchyard-Time-Left" // milliseconds until the deadline of the answer
	headerMoved    = "Switchyard-Moved"     // nothing was done: another node serves the workspace
	// headerIntroduces asks whether the request would be admitted; its body is not sent,
	// and nothing is done.
	headerIntroduces = "Switchyard-Introduces"
	// headerLooked says that the operation may have run at another node before: see
	// tracker.Op.SinceFirstLook.
	headerLooked = "Switchyard-Looked"
	// headerUnadmitted says of the answer to a request with headerLooked that it was refused
	// at its admission: see tracker.Error.Unadmitted.
	headerUnadmitted = "Switchyard-Unadmitted"
)

const (
	// retryFirst and retryMost are the shortest and the longest wait before a request
	// asks again a node that refused it, without a sign that the owner has changed.
	retryFirst = 2 * time.Millisecond
	retryMost  = 100 * time.Millisecond
	// maxAnswer bounds another node's answer in bytes.
	maxAnswer = 64 << 20
)

// forward runs the request where its workspace is served: here, or on another node.
func (s *Server) forward(x *exchange, workspace [16]byte) error {
	if x.resumed != nil {
		// Its answer may be here, even if another node serves the workspace by now.
		if err := s.run(x, workspace); !hasMoved(err) {
			return x.finalError(err)
		}
		s.resumes.end(x.takeTurn()) // it waits for the other node
		x.looked = true
	}
	if x.conn != nil && x.conn.peer {
		return s.serveForwarded(x, workspace)
	}
	t := s.forwardings.Get().(*forwarding)
	defer t.reset()
	t.server, t.x, t.workspace, t.pause = s, x, workspace, retryFirst
	for {
		node, here, changed := s.cfg.Placement.Owner(workspace)
		switch {
		case here:
			err := s.run(x, workspace)
			if !hasMoved(err) {
				return t.x.finalError(err)
			}
			t.unserved(s.now())
		case node != "":
			if t.send(node) {
				return nil
			}
		default:
			t.unserved(s.now())
		}
		if err := t.wait(changed); err != nil {
			return err
		}
	}
}

// serveForwarded runs a request that another node has sent here, or says that this is not
// the node either: who sent it finds the way.
func (s *Server) serveForwarded(x *exchange, workspace [16]byte) error {
	_, here, _ := s.cfg.Placement.Owner(workspace)
	err := errNotHere()
	if here {
		err = s.run(x, workspace)
	}
	if hasMoved(err) {
		x.moved = true
	}
	return err
}

// timeLeft is how long the answer may take: for a request that another node sent,
// what that one has left of its own time.
func (x *exchange) timeLeft(most time.Duration) time.Duration {
	if x.conn == nil || !x.conn.peer {
		return most
	}
	ms, err := strconv.Atoi(string(x.ctx.Request.Header.Peek(headerTimeLeft)))
	if err != nil || ms <= 0 {
		return most
	}
	return min(most, time.Duration(ms)*time.Millisecond)
}

// lookedBefore reports whether the operation may have run before, when another node served the
// workspace or this one did.
func (x *exchange) lookedBefore() bool {
	return x.looked || x.conn != nil && x.conn.peer && len(x.ctx.Request.Header.Peek(headerLooked)) > 0
}

func errNotHere() error { return tracker.Moved("This node does not serve the workspace.") }

// hasMoved reports whether a request was certainly not carried out because this node
// does not serve the workspace, or not any more.
func hasMoved(err error) bool {
	var told *tracker.Error
	return errors.As(err, &told) && told.Moved
}

// forwarding is a request's way through the cluster. It belongs to the connection's
// goroutine.
type forwarding struct {
	server    *Server
	x         *exchange
	sent      fasthttp.Request // built when it is first needed
	workspace [16]byte         // zero: none
	built     bool
	// introduced says that the node of the workspace was asked about the credential.
	introduced bool

	due   time.Time     // until when the request waits for an owner; zero: there is one
	asked bool          // waits is known
	waits time.Duration // that the request asks for
	pause time.Duration
	again bool  // ask again without waiting
	final error // no further try may be made
}

// reset makes it ready for another request.
func (t *forwarding) reset() {
	s := t.server
	t.sent.SetBodyRaw(nil) // the exchange's
	t.sent.Reset()
	t.server, t.x, t.built, t.introduced, t.due, t.asked, t.waits = nil, nil, false, false, time.Time{}, false, 0
	t.again, t.final = false, nil
	s.forwardings.Put(t)
}

// unserved notes that nobody serves the workspace, or gave a sign of it, since missing.
func (t *forwarding) unserved(missing time.Time) {
	if t.due.IsZero() {
		t.due = t.server.cfg.Placement.OwnerDue(t.workspace, missing)
	}
}

// finalError is the final answer: once a try may have been applied, no later one can
// say that nothing was. It may have ended the credential, too, or the caller's right to it.
func (x *exchange) finalError(err error) error {
	var told *tracker.Error
	if x.maybe && errors.As(err, &told) && (told.Unadmitted || told.Code == tracker.CodeUnavailable || told.Code == tracker.CodeUnauthorized) {
		return errLost()
	}
	return err
}

// tellUnadmitted tells the node that repeats a request that it was refused at its admission.
func (x *exchange) tellUnadmitted(err error) {
	var told *tracker.Error
	if x.conn != nil && x.conn.peer && x.lookedBefore() && errors.As(err, &told) && told.Unadmitted {
		x.ctx.Response.Header.Set(headerUnadmitted, "1")
	}
}

func errLost() error {
	return tracker.OutcomeUnknown("The node that served the workspace did not answer.")
}

// wait lets time pass before the next try, until something has changed; its error
// is the request's answer, when there will be no further try.
func (t *forwarding) wait(changed <-chan struct{}) error {
	if t.final != nil {
		return t.final
	}
	if t.again {
		t.again = false
		return nil
	}
	now := t.server.now()
	last := t.deadline()
	if !t.due.IsZero() {
		last = earlier(last, t.due)
	}
	pause := min(t.pause, last.Sub(now))
	if pause <= 0 {
		return t.x.finalError(tracker.NotApplied("No node that can be reached serves the workspace right now."))
	}
	t.pause = min(2*t.pause, retryMost)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	defer func() { t.x.ownerless += t.server.now().Sub(now) }()
	select {
	case <-changed:
		t.pause = retryFirst
	case <-timer.C:
	}
	if t.waits > 0 && t.x.conn.gone() {
		return t.x.finalError(tracker.NotApplied("The client has closed the connection."))
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// deadline is when the answer is due: later, by as long, for a request that asks to
// wait.
func (t *forwarding) deadline() time.Time {
	if !t.asked {
		t.asked, t.waits = true, t.server.waitAsked(t.x)
	}
	return t.x.clock.Add(t.server.cfg.RequestTimeout + t.waits)
}

// waitAsked returns how long a request asks its answer to wait. It looks at the query and
// the body without binding them.
func (s *Server) waitAsked(x *exchange) time.Duration {
	if x.route.tools {
		return s.toolsWait(x)
	}
	if !x.route.Op.LongPoll {
		return 0
	}
	seconds := 0
	if x.route.plan.body == nil {
		var args fasthttp.Args
		args.ParseBytes(x.target.query)
		seconds, _ = args.GetUint("wait")
	} else if s.readBody(x) == nil && len(x.body) > 0 {
		var asked struct {
			Wait float64 `json:"wait"`
		}
		if json.Unmarshal(x.body, &asked) == nil {
			seconds = int(asked.Wait)
		}
	}
	return min(time.Duration(max(0, seconds))*time.Second, tracker.MaxWait)
}

// send asks a node; true when its answer is the request's.
func (t *forwarding) send(node string) bool {
	s, x := t.server, t.x
	if !t.built {
		if t.final = x.finalError(tracker.Unadmitted(t.start(node))); t.final != nil {
			return false
		}
	}
	if t.final = t.refuseWait(); t.final != nil {
		return false
	}
	dialed := s.now()
	conn, err := s.pools.get(node, t.deadline(), t.repeats())
	if err != nil {
		s.metrics.forwarded("not_sent")
		t.unserved(dialed) // a node that is paused takes the connection, and says nothing on it
		return false
	}
	kept := !conn.used.IsZero()
	left := max(1, time.Until(t.deadline()).Milliseconds())
	t.sent.Header.SetBytesV(headerTimeLeft, strconv.AppendInt(nil, left, 10))
	if x.looked {
		t.sent.Header.Set(headerLooked, "1")
	}
	var began, streams bool
	span := t.beginForward(node)
	asked := s.now()
	switch {
	case x.streams():
		began, streams, err = conn.askStream(&t.sent, &x.ctx.Response, x.streamMedia(), t.deadline())
	case t.waits > 0 && x.conn != nil:
		began, err = t.askWaiting(conn)
	default:
		x.ctx.Response.SwapBody(s.lend(x))
		began, err = conn.ask(&t.sent, &x.ctx.Response, t.deadline())
	}
	if body := x.ctx.Response.SwapBody(nil); err == nil && len(body) > 0 {
		s.sendLent(x, body)
	}
	took := s.now().Sub(asked)
	x.forwarded += took
	if took > retryMost { // the node served the workspace: another one says at once that it does not
		t.due = time.Time{}
	}
	endForward(span, err)
	x.waited = t.waits > 0
	if err != nil {
		conn.close()
		x.ctx.Response.Reset()
		if !began {
			s.metrics.forwarded("not_sent")
			t.unserved(s.now())
			t.again = kept
			return false
		}
		if errors.Is(err, errAbandoned) {
			s.metrics.forwarded("abandoned")
			t.final = t.abandoned()
			return false
		}
		x.looked = true
		s.metrics.forwarded("lost")
		t.lost(kept)
		return false
	}
	if streams {
		t.relay(conn)
		s.metrics.forwarded("answered")
		s.load.forwarded.Add(1)
		return true
	}
	header := &x.ctx.Response.Header
	if header.ConnectionClose() {
		header.ResetConnectionClose()
		conn.close()
	} else {
		s.pools.give(node, conn)
	}
	if moved := header.Peek(headerMoved); len(moved) > 0 {
		x.ctx.Response.Reset()
		x.looked = true
		s.metrics.forwarded("moved")
		t.unserved(s.now())
		return false
	}
	unadmitted := len(header.Peek(headerUnadmitted)) > 0
	header.Del(headerUnadmitted)
	if status := x.ctx.Response.StatusCode(); x.maybe && (unadmitted || status == http.StatusServiceUnavailable || status == http.StatusUnauthorized) {
		x.ctx.Response.Reset()
		t.final = errLost()
		return false
	}
	if t.final = t.arrived(); t.final != nil {
		x.ctx.Response.Reset()
		return false
	}
	header.Del(fasthttp.HeaderDate) // the server sets its own
	checkOwner(header)
	s.metrics.forwarded("answered")
	s.load.forwarded.Add(1)
	return true
}

// lost follows a try that may have been applied: what is safe to repeat is
// repeated, anything else is answered now. A kept connection may have ended long ago. If it has,
// a read is repeated at once; if a new one ends, or the time is up, the node is in trouble and gets a pause.
func (t *forwarding) lost(kept bool) {
	t.unserved(t.server.now())
	switch {
	case t.server.onlyReads(t.x):
		t.again = kept && t.server.now().Add(deadlineSlack).Before(t.deadline())
	case t.repeats():
		t.x.maybe = true
	default:
		t.x.maybe, t.final = true, errLost()
	}
}

// repeats reports whether the request may be carried out twice: it changes nothing,
// or its key sees to that.
func (t *forwarding) repeats() bool {
	if t.server.onlyReads(t.x) {
		return true
	}
	if !t.x.route.changes {
		return false // it takes no key
	}
	key, wrong := t.x.idempotency()
	return key != nil && wrong == ""
}

// build makes the request as other nodes get it: the client's own, with a body of
// known length.
func (t *forwarding) build() error {
	x := t.x
	if err := t.server.readBody(x); err != nil {
		return err
	}
	t.head(&t.sent.Header)
	t.sent.SetBodyRaw(x.body)
	t.built = true
	return nil
}

// head makes the request's header as other nodes get it.
func (t *forwarding) head(to *fasthttp.RequestHeader) {
	x := t.x
	x.ctx.Request.Header.CopyTo(to)
	// Trailer goes too: fasthttp writes none of the headers that it names, also none of this node.
	for _, name := range [...]string{fasthttp.HeaderConnection, fasthttp.HeaderExpect, fasthttp.HeaderTransferEncoding, fasthttp.HeaderTrailer, "Keep-Alive", headerTimeLeft, headerMoved, headerIntroduces, headerLooked, headerClient, headerCoding, headerTraceparent, headerTracestate, string(markOversize)} {
		to.Del(name)
	}
	if coding := x.linesCoding(); coding != codingNone {
		to.SetBytesV(headerCoding, codingNames[coding])
	}
	if addr := t.server.client(x); addr.IsValid() {
		var text [64]byte
		to.SetBytesV(headerClient, addr.AppendTo(text[:0]))
	}
	if x.session { // the credential goes on in the usual header, and the cookie stays here
		to.DelAllCookies()
		to.SetBytesV(fasthttp.HeaderAuthorization, append([]byte("Bearer "), t.server.credential(x)...))
	}
	to.ResetConnectionClose()
	to.SetNoDefaultContentType(true)
	if !x.route.Op.Lines || x.ctx.Request.Header.IsHTTP11() {
		to.SetProtocol("HTTP/1.1")
	} // else the lines are passed on as they come, and the client knows no chunks
	to.SetHost(x.host())
	if x.target.authority != nil { // it would replace the host that was checked
		to.SetRequestURIBytes(x.target.relative())
	}
	to.SetCanonical(headerRequestID, x.requestID())
}
