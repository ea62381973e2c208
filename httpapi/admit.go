package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

// admit lets a request in that is carried out here: it is one of a caller who may
// send it, within the caller's rate, on a connection that the caller may use.
func (s *Server) admit(x *exchange, req *tracker.Request) error {
	op := x.route.Op
	public := op.Needs.Level == tracker.Public
	if err := s.identify(x, req); err != nil {
		return s.denied(x, err)
	}
	// A public operation looks at nobody's credential.
	operator := req.Caller.Root || public && s.isOperator(req.Credential)
	known := !public || operator
	x.belongs(req, public, operator)
	if err := x.mayUse(known, operator); err != nil {
		return err
	}
	if known && x.conn != nil && !x.conn.known.Load() {
		x.conn.known.Store(true)
	}
	if !known {
		if err := s.throttle(x); err != nil {
			return err
		}
	}
	if !x.introduces() { // the request itself follows, and is counted then
		if err := s.limit(x, &req.Caller); err != nil {
			return err
		}
		if err := s.limitWorkspace(x, req); err != nil {
			return err
		}
	}
	if op.Kind == tracker.Query {
		return nil
	}
	return s.roomForAnswer(x)
}

// identify has the engine find out who sends a request, and measures that if slow
// operations are logged.
func (s *Server) identify(x *exchange, req *tracker.Request) error {
	if !s.measures() {
		return s.engineAdmits(req, x.route.Op)
	}
	began := time.Now()
	err := s.engineAdmits(req, x.route.Op)
	x.admission = time.Since(began)
	return err
}

// direct lets a request in that no operation answers. Nobody's credential is looked at.
func (s *Server) direct(x *exchange) error {
	if err := x.mayUse(false, false); err != nil {
		return err
	}
	return s.throttle(x)
}

// start builds a request that another node carries out, after the checks that this node
// can make. The other node checks the credential.
func (t *forwarding) start(node string) error {
	s, x := t.server, t.x
	credential := s.credential(x)
	public, operator := x.route.Op.Needs.Level == tracker.Public, s.isOperator(credential)
	if err := x.mayUse(credential != "" && !public, operator); err != nil {
		return err
	}
	switch {
	case operator:
		x.account = operatorAccount
		t.recognize(credential)
	case !public && credential != "" && s.known.has(credential, t.workspace):
		t.recognize(credential)
	case !public && credential != "" && x.mayBeCharged():
		t.introduce(node, credential)
	}
	if err := t.build(); err != nil {
		return err
	}
	t.deadline()
	if x.streams() || x.headsStream() {
		return s.share(x)
	}
	if t.waits == 0 {
		return nil
	}
	if err := s.share(x); err != nil {
		return err
	}
	return t.chargeWait(node)
}

// headerCopies is how often the headers of a request that waits at another node are in memory: as they came and
// parsed, the same in the request that was sent on, and as they were sent.
const headerCopies = 6

// chargeWait charges for a request that waits at another node, as that node does (park.go). All of it is kept here
// meanwhile, to be sent again if the workspace moves.
func (t *forwarding) chargeWait(node string) error {
	s, x := t.server, t.x
	h := &x.ctx.Request.Header
	headers := len(h.RequestURI()) + len(h.RawHeaders())
	if headers+len(x.body) <= parkedFree || x.conn == nil {
		return nil
	}
	if credential := t.checked(); credential != "" && x.account == anonymousAccount && !t.introduced {
		t.introduce(node, credential)
	}
	to, from := s.accountsOf(x)
	return s.budget.raise(x.conn, to, from, bodyPart, headerCopies*headers+cap(x.body), false)
}

// introduce asks the node that serves the workspace whether the request would be
// admitted. That happens before its large body is read here, or before it waits and is charged: strangers may have
// used up the bytes of callers without a valid credential. If the node gives no answer, the caller counts as
// one without.
func (t *forwarding) introduce(node, credential string) {
	s, x := t.server, t.x
	t.introduced = true
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	t.head(&request.Header)
	request.Header.SetContentLength(0)
	request.Header.Set(headerIntroduces, "1")
	deadline := x.clock.Add(s.cfg.RequestTimeout)
	request.Header.SetBytesV(headerTimeLeft, strconv.AppendInt(nil, max(1, time.Until(deadline).Milliseconds()), 10))
	conn, err := s.pools.get(node, deadline, true)
	if err != nil {
		return
	}
	if _, err := conn.ask(request, response, deadline); err != nil || response.Header.ConnectionClose() {
		conn.close()
	} else {
		s.pools.give(node, conn)
	}
	if response.StatusCode() == http.StatusNoContent {
		t.recognize(credential)
	}
}

// recognize notes that the credential is valid: the connection is that of a known caller, and
// the workspace is charged for the request if nobody else is.
func (t *forwarding) recognize(credential string) {
	x := t.x
	t.server.known.keep(credential, t.workspace)
	if x.conn != nil {
		x.conn.known.Store(true)
	}
	if x.account == anonymousAccount {
		x.account, x.charged = workspaceAccount, t.workspace
	}
}

// checked returns the credential that the other node checks; empty if there is none.
func (t *forwarding) checked() string {
	if t.x.route.Op.Needs.Level == tracker.Public {
		return ""
	}
	return t.server.credential(t.x)
}

// introduces reports whether another node only asks whether the request is admitted.
func (x *exchange) introduces() bool {
	return x.conn != nil && x.conn.peer && len(x.ctx.Request.Header.Peek(headerIntroduces)) > 0
}

// mayBeCharged reports whether the request's body may be so large that it is charged.
func (x *exchange) mayBeCharged() bool {
	length := x.ctx.Request.Header.ContentLength()
	return !x.read && (length > freeBytes || length == -1)
}

// arrived takes note of another node's answer, which says whether the credential is
// valid, and charges for it. An error is the answer instead.
func (t *forwarding) arrived() error {
	s, x := t.server, t.x
	response := &x.ctx.Response
	status := response.StatusCode()
	if credential := t.checked(); credential != "" && x.conn != nil {
		switch {
		case status == http.StatusUnauthorized:
			s.known.forget(credential, t.workspace)
			x.conn.known.Store(false)
			if x.conn.kept != keptForNobody {
				x.ends = true
			}
		case status < http.StatusBadRequest:
			t.recognize(credential)
		}
	}
	return s.chargeAnswer(x, response.Body(), !s.onlyReads(x))
}

// isOperator reports whether a credential is the operator's.
func (s *Server) isOperator(credential string) bool {
	if s.cfg.RootToken == "" || credential == "" {
		return false
	}
	given := sha256.Sum256([]byte(credential))
	return subtle.ConstantTimeCompare(given[:], s.rootHash[:]) == 1
}
