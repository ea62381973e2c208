package httpapi

import (
	"errors"
	"net/http"
	"runtime/debug"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

// workspaceParam is the path parameter that names the workspace, in every route
// that has one.
const workspaceParam = "organizationId"

// handle serves one request.
func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	x := s.acquire(ctx)
	if x.conn != nil && x.resumed == nil {
		x.conn.served++
	}
	s.guard(x)
	if x.parked {
		s.release(x)
		return
	}
	s.nameOwner(x)
	s.finish(x, nil)
	s.noteSlow(x)
	s.load.answer(x)
	s.load.took(x, s.now())
	s.endTrace(x)
	if x.unread() || x.ends || x.conn != nil && x.conn.refusal != nil {
		x.hangUp()
	} else if s.draining.Load() {
		ctx.SetConnectionClose()
	}
	if x.route != nil {
		x.route.observe(ctx.Response.StatusCode(), x.start)
	} else {
		s.metrics.unmatched.observe(ctx.Response.StatusCode(), x.start)
	}
	if x.conn != nil {
		s.answers.put(x.conn.answer) // of a request before, with which this one came; its answer is written
		x.conn.answered, x.conn.answer = true, x.answer
	}
	s.release(x)
}

// guard answers the request, with INTERNAL when that panics.
func (s *Server) guard(x *exchange) {
	defer func() {
		if v := recover(); v != nil {
			s.fail(x, &tracker.PanicError{Value: v, Stack: debug.Stack()})
		}
	}()
	if err := s.serve(x); err != nil {
		s.fail(x, err)
	}
}

// headersTooLarge reports whether a client's request line and headers together take more than they may. The server
// can read addedHeaders more: nodes add headers to requests that they forward, and to those that wait.
func (s *Server) headersTooLarge(x *exchange) bool {
	if x.resumed != nil || x.conn != nil && x.conn.peer {
		return false
	}
	h := &x.ctx.Request.Header
	return len(h.Method())+len(" ")+len(h.RequestURI())+len(" HTTP/1.1\r\n")+len(h.RawHeaders()) > s.cfg.MaxHeaderBytes
}

// addedHeaders bounds the headers that a node adds to a request, in bytes.
const addedHeaders = 1 << 10

func (s *Server) serve(x *exchange) error {
	if s.isPreflight(x) && (x.conn == nil || x.conn.refusal == nil) {
		x.identify(s.ids)
		s.respondPreflight(x)
		return nil
	}
	allow, err := s.find(x)
	x.identify(s.ids)
	switch {
	case s.headersTooLarge(x):
		return errHeadersTooLarge()
	case err != nil:
		return err
	case x.conn != nil && x.conn.refusal != nil && (x.route == nil || !x.route.health):
		return x.conn.refusal
	case x.route == nil:
		s.respondAllow(x, allow)
		return nil
	}
	if err := x.refuseBody(); err != nil {
		return err
	}
	if x.route.direct != nil {
		if !x.route.health {
			if err := s.direct(x); err != nil {
				return err
			}
		}
		return x.route.direct(x)
	}
	return s.operate(x)
}

// find looks up the route. Without one and without an error the request is
// OPTIONS, and allow is its answer.
func (s *Server) find(x *exchange) (allow string, err error) {
	header := &x.ctx.Request.Header
	uri, method := header.RequestURI(), header.Method()
	if len(uri) > s.cfg.MaxTargetBytes {
		return "", errTargetTooLong(s.cfg.MaxTargetBytes)
	}
	options := string(method) == fasthttp.MethodOptions
	if options && string(uri) == "*" {
		return s.router.all, nil
	}
	switch x.target.parse(uri) {
	case targetNowhere:
		return "", errNoRoute()
	case targetBroken:
		return "", errTarget()
	}
	if x.target.authority != nil {
		header.SetHostBytes(x.target.authority) // it replaces Host (RFC 9112, 3.2.2)
	}
	place := s.router.find(&x.target, &x.params, x.ctx)
	if place == nil {
		place = s.place(&x.target)
	}
	if place == nil {
		return "", x.dialect().noRoute(&x.target)
	}
	x.route = place.route(method)
	if x.route == nil && !options {
		return "", errMethod(place.allow)
	}
	return place.allow, nil
}

// operate runs the request's operation where its workspace is served.
func (s *Server) operate(x *exchange) error {
	var workspace [16]byte
	if at := x.route.workspaceAt; at >= 0 {
		id, ok := parseWorkspace(x.params[at])
		if !ok {
			return x.route.Op.NoWorkspace()
		}
		workspace = id
	}
	if x.route.image {
		workspace = x.shardPlace()
	}
	switch {
	case x.route.tools:
		if err := s.checkOrigin(x); err != nil {
			return err
		}
	case x.route.Op.Onboarding:
		if err := s.checkFounder(x); err != nil {
			return err
		}
	}
	if x.route.ofNode {
		if done, err := s.askNode(x); done || err != nil {
			return err
		}
	}
	if s.cfg.Placement == nil || x.route.here || x.route.dialect != nil && x.route.dialect.anywhere {
		return s.run(x, workspace)
	}
	return s.forward(x, workspace)
}

// run admits the request here, binds its input, and runs its operation.
func (s *Server) run(x *exchange, workspace [16]byte) error {
	rt := x.route
	if x.resumed != nil && rt.tools {
		return s.resumeTools(x)
	}
	if x.resumed != nil {
		reply, err := s.begin(x, nil, nil, nil)
		return s.conclude(x, &reply, err)
	}
	req := &x.query
	if rt.Op.Kind != tracker.Query || rt.Op.LongPoll {
		// A command may outlive this request in a mailbox, and one that waits outlives
		// its exchange, so they get their own.
		req = new(tracker.Request)
	}
	req.ID, req.Address = x.id, s.client(x)
	if req.Credential = s.credential(x); req.Credential != "" {
		req.CredentialSum = x.credentialSum()
	}
	req.Deadline = x.clock.Add(x.timeLeft(s.cfg.RequestTimeout))
	if req.Workspace = workspace; rt.image {
		req.Workspace = [16]byte{} // it was the place of a shard
	}
	req.Final = (rt.Op.SinceFirstLook || rt.tools) && x.lookedBefore()
	req.Spent.On = s.measures()
	if err := s.admit(x, req); err != nil {
		return tracker.Unadmitted(err)
	}
	if x.introduces() {
		return s.respond(x, &tracker.Reply{Outcome: tracker.NoContent})
	}
	late := x.bodyUnderWay()
	if err := s.readBody(x); err != nil {
		return err
	}
	if late { // the client decides how long that takes, and its rights may have ended
		if err := s.identify(x, req); err != nil {
			return tracker.Unadmitted(s.denied(x, err))
		}
	}
	s.load.admitted(x, req, rt.Method == fasthttp.MethodGet || s.onlyReads(x))
	if late {
		req.Deadline = x.clock.Add(x.timeLeft(s.cfg.RequestTimeout)) // counted anew
	}
	in := rt.input()
	defer rt.giveBack(in)
	uncharge, err := s.chargeNames(x)
	if err != nil {
		return err
	}
	if err := s.bind(x, req, in); err != nil {
		return err
	}
	if !rt.tools { // whose arguments are not decoded yet
		uncharge()
	}
	x.dropBody(req)
	if err := s.throttleCreation(x, &req.Caller); err != nil {
		return tracker.Unadmitted(err)
	}
	if rt.here {
		return s.runHere(x, req, in)
	}
	if rt.Op.Lines && x.ctx.IsHead() {
		return s.headLines(x, req, in)
	}
	if x.headsStream() {
		return s.headStream(x, req, in)
	}
	if x.streams() && rt.Op.Lines {
		return s.sendLines(x, req, in)
	}
	if x.streams() {
		return s.listen(x, req, in)
	}
	if rt.tools {
		return s.serveTools(x, req, in.(*sessionToolsIn))
	}
	if rt.Op.Kind == tracker.Query {
		req.Charge = s.answerCharge(x)
	}
	if rt.Op.LongPoll {
		// Waiting is added to the time that any answer may take (Decision 55).
		if waiter, ok := in.(tracker.Waiter); ok {
			req.Deadline = x.clock.Add(x.timeLeft(s.cfg.RequestTimeout + min(waiter.WaitFor(), tracker.MaxWait)))
		}
		req.Gone = x.conn.gone
		reply, err := s.begin(x, rt.Op, req, in)
		return s.conclude(x, &reply, err)
	}
	if rt.Op.Kind == tracker.Query {
		req.Buf = s.lend(x)
	}
	reply, err := s.engine().Do(req, rt.Op, in)
	x.spent = req.Spent
	return s.conclude(x, &reply, err)
}

// conclude answers with the result of an operation, unless it waits.
func (s *Server) conclude(x *exchange, reply *tracker.Reply, err error) error {
	if err != nil || x.parked {
		return err
	}
	return s.respond(x, reply)
}

// bind fills the input, and the request's idempotency key.
func (s *Server) bind(x *exchange, req *tracker.Request, in any) error {
	rt := x.route
	src := source{names: rt.boundNames, params: x.values[:len(rt.bound)], query: x.target.query, header: x, body: x.body, caller: &req.Caller, now: s.now}
	src.form, src.object = rt.dialect != nil && rt.dialect.forms, rt.checksBody()
	if len(rt.plan.service) > 0 {
		src.base = s.baseURL(x)
	}
	if rt.plan.refused != nil {
		src.refused = rt.plan.refuseRaw(&x.ctx.Request.Header)
	}
	if !rt.changes {
		return x.binder.bind(rt.plan, in, &src)
	}
	req.Idempotency, src.wrongKey = x.idempotency()
	return x.binder.bind(rt.plan, in, &src)
}

// parseWorkspace reads the canonical text of a UUIDv7, the form of every workspace's
// id. Ids of other versions are the service's own key ranges and must not be reached by a
// path.
func parseWorkspace(text []byte) (id [16]byte, ok bool) {
	if len(text) != 36 || text[14] != '7' {
		return id, false
	}
	n := 0
	for i, c := range text {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return id, false
			}
			continue
		}
		if 'A' <= c && c <= 'F' || unhex(c) > 15 {
			return id, false
		}
		id[n/2] = id[n/2]<<4 | unhex(c)
		n++
	}
	return id, true
}

// broken answers what fasthttp could not read as a request.
func (s *Server) broken(ctx *fasthttp.RequestCtx, err error) {
	x := s.acquire(ctx)
	x.start, x.clock = s.now(), s.now()
	x.identify(s.ids)
	s.fail(x, x.readError(err))
	var origin []byte
	if x.conn != nil {
		origin = x.conn.framing.origin
	}
	s.finish(x, origin)
	s.metrics.unmatched.observe(ctx.Response.StatusCode(), x.start)
	s.release(x)
}

// expect decides whether a client that waits for 100 Continue may send its body.
func (s *Server) expect(ctx *fasthttp.RequestCtx) int {
	x := s.acquire(ctx)
	defer s.release(x)
	_, err := s.find(x)
	if err == nil && x.route != nil {
		err = x.refuseBody()
	}
	if err == nil {
		return http.StatusContinue
	}
	x.identify(s.ids)
	s.fail(x, err)
	s.finish(x, nil)
	return ctx.Response.StatusCode()
}

// fail answers with an error, and logs an error whose text the caller does not get.
func (s *Server) fail(x *exchange, err error) {
	if x.route != nil && x.route.console != nil {
		err = s.console.explain(err)
	}
	f, known := asFailure(err)
	if !known {
		s.logFailure(x, err)
	}
	s.respondFailure(x, f)
	if x.moved {
		x.ctx.Response.Header.Set(headerMoved, "1")
	}
	x.tellUnadmitted(err)
	if f.unframed {
		x.hangUp()
	}
}

func (s *Server) logFailure(x *exchange, err error) {
	attrs := []any{"request", x.id, "error", describe(err)}
	if x.route != nil {
		attrs = append(attrs, "route", x.route.label)
	}
	if s.traced(x) {
		attrs = append(attrs, "trace", x.trace.span.SpanContext().TraceID().String())
	}
	var panicked *tracker.PanicError
	if errors.As(err, &panicked) {
		attrs = append(attrs, "stack", string(panicked.Stack))
	}
	s.cfg.Logger.Error("request failed", attrs...)
}
