package httpapi

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/actors/tracker"
)

// The tools of a session over the Model Context Protocol (Decision 36). The official
// SDK speaks the protocol; this file connects it to requests, and mcp_tool.go to
// operations.
//
// Every check that may refuse a request happens before the SDK sees a byte: the checks of
// all requests, then OpenTools, then the check of the message. The server is stateless:
// messages are independent of each other, and any node may be asked.
//
// Goroutines: the SDK makes a connection of its own for each message it is given,
// with a goroutine that reads it and one that runs the tool; both have ended when
// speak returns. Since a tool does not run on the request's goroutine, it is handed a
// toolCall and never the exchange. A tool that waits is parked as any other request
// that waits, before the SDK is asked; its answer is then given to the SDK ready made.

// opSessionTools admits and describes requests to a session's tools. It is never run:
// each tool is an operation of its own.
var opSessionTools = tracker.NewWorkflow[sessionToolsIn, ToolAnswer]("SessionTools", "Use a session's tools over the Model Context Protocol",
	tracker.Needs{Level: tracker.Write, Resource: "sessions"}, nil, tracker.ForLanes, tracker.Answers(tracker.Done, tracker.Accepted))

type sessionToolsIn struct {
	ID tracker.SessionID `path:"id"`
}

// speakSlack is how long the SDK has to pass on an answer that a tool gave at the
// deadline.
const speakSlack = 2 * time.Second

// maxToolActivities bounds the activities that read_session shows, in bytes. The SDK copies its
// answer several times: see toolCopies.
const maxToolActivities = 1 << 20

// serveTools answers a message to the tools of a session. The request is admitted and
// its body is read.
func (s *Server) serveTools(x *exchange, req *tracker.Request, in *sessionToolsIn) error {
	scope, err := s.openTools(req, in)
	if err != nil {
		return err
	}
	m, refused := x.toolMessage()
	if scope.Ended && req.Caller.Lane != nil && (refused != nil || m.tool != toolReport) {
		return tracker.Unauthorized()
	}
	if refused != nil {
		return x.refuseMessage(refused)
	}
	if !m.asks() {
		// Nothing is kept between two messages, so there is nothing to note either.
		return x.acknowledge()
	}
	if !served[m.method] {
		return x.refuseMessage(m.unknownMethod(x.protocol()))
	}
	if result := s.tools.kept.find(x.keptKey(m)); result != nil {
		return s.respondKept(x, m, result)
	}
	c := &toolCall{server: s, req: req, session: string(in.ID), issue: string(scope.IssueID), route: x.route, arguments: m.arguments, charge: s.toolCharge(x)}
	if t := s.tools.byName[m.tool]; t != nil && t.op.LongPoll {
		if !s.await(x, c, t, m.arguments) {
			return nil
		}
	}
	return s.speak(x, c, m)
}

// openTools asks what the tools are about: a session that is not there, or not for
// this caller, ends the request here.
func (s *Server) openTools(req *tracker.Request, in *sessionToolsIn) (tracker.ToolScope, error) {
	open := &tracker.Request{ID: req.ID, Workspace: req.Workspace, Credential: req.Credential, Deadline: req.Deadline}
	if err := s.engineAdmits(open, tracker.OpenTools); err != nil {
		return tracker.ToolScope{}, err
	}
	reply, err := s.engine().Do(open, tracker.OpenTools, &tracker.OpenToolsIn{ID: in.ID})
	if err != nil {
		return tracker.ToolScope{}, err
	}
	return tracker.ReadToolScope(reply)
}

// await runs a tool that may wait, on the request's own goroutine; false when the
// request was parked and has no answer yet.
func (s *Server) await(x *exchange, c *toolCall, t *tool, arguments []byte) bool {
	req, in, err := c.prepare(t, arguments)
	ready := &toolAnswer{err: err}
	if err == nil {
		if waiter, ok := in.(tracker.Waiter); ok {
			// Waiting is added to the time that any answer may take (Decision 55).
			req.Deadline = x.start.Add(x.timeLeft(s.cfg.RequestTimeout + min(waiter.WaitFor(), tracker.MaxWait)))
		}
		req.Gone = x.conn.gone
		ready.reply, ready.err = s.begin(x, t.op, req, in)
	}
	c.ready = ready
	return !x.parked
}

// resumeTools continues a tool that waited.
func (s *Server) resumeTools(x *exchange) error {
	req := x.resumed.req
	reply, err := s.begin(x, nil, nil, nil)
	if x.parked {
		return nil
	}
	if read := s.readBody(x); read != nil {
		return read
	}
	m, refused := x.toolMessage()
	if refused != nil {
		return x.refuseMessage(refused)
	}
	return s.speak(x, &toolCall{server: s, req: req, route: x.route, ready: &toolAnswer{reply: reply, err: err}}, m)
}

// speak has the SDK answer a message, and passes its answer on.
func (s *Server) speak(x *exchange, c *toolCall, m *message) error {
	if err := c.turn.begin(s, c.req); err != nil {
		return err
	}
	defer c.turn.leave()
	// The tool answers by its request's deadline; the SDK only passes that on. Should it
	// lose the answer, the request must still end.
	ctx, cancel := context.WithDeadline(context.WithValue(context.Background(), toolCallKey{}, c), c.req.Deadline.Add(speakSlack))
	defer cancel()
	out := &spoken{header: http.Header{}}
	s.tools.handler.ServeHTTP(out, x.toSDK(ctx, m.forSDK))
	if err := c.refusal.Load(); err != nil {
		return *err
	}
	if out.status == 0 && (m.method != methodCall || isReading(m.tool)) {
		return tracker.NotApplied("The tool did not answer in time.")
	}
	if out.status == 0 {
		return tracker.OutcomeUnknown("The tool did not answer in time.")
	}
	if out.status >= http.StatusBadRequest && !strings.HasPrefix(out.header.Get("Content-Type"), "application/json") {
		return x.refuseMessage(m.refused(out.status, strings.TrimSpace(out.body.String())))
	}
	if wrong := m.wrongParams(out.status, out.body.Bytes()); wrong != nil {
		return x.refuseMessage(wrong)
	}
	s.tools.kept.keep(x.keptKey(m), out.status, out.body.Bytes())
	if err := s.chargeMessage(x, out.body.Bytes(), m.method == methodCall && !isReading(m.tool)); err != nil {
		return err
	}
	if c.replayed.Load() {
		x.ctx.Response.Header.SetCanonical(headerReplayed, valueTrue)
	}
	x.respondMessage(out.status, out.body.Bytes())
	return nil
}

// toSDK returns the request for the SDK: the message, the protocol's own headers, and
// those that the SDK requires.
func (x *exchange) toSDK(ctx context.Context, message []byte) *http.Request {
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for name, value := range x.ctx.Request.Header.All() {
		if len(name) > len(mcpHeader) && strings.EqualFold(string(name[:len(mcpHeader)]), mcpHeader) {
			header.Add(string(name), string(value))
		}
	}
	return (&http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: "/"}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(message)), ContentLength: int64(len(message)),
	}).WithContext(ctx)
}

const (
	mcpHeader      = "Mcp-"
	headerProtocol = "Mcp-Protocol-Version"
)

// protocol is the protocol's version that the request names; empty for none.
func (x *exchange) protocol() string {
	return string(x.ctx.Request.Header.Peek(headerProtocol))
}

// acknowledge answers a message that asks for nothing.
func (x *exchange) acknowledge() error {
	response := &x.ctx.Response
	response.SetStatusCode(http.StatusAccepted)
	response.Header.SetCanonical(headerRequestID, x.requestID())
	x.describeRate()
	return nil
}

// respondMessage answers with a message of the protocol.
func (x *exchange) respondMessage(status int, body []byte) {
	response := &x.ctx.Response
	response.SetStatusCode(status)
	response.Header.SetCanonical(headerRequestID, x.requestID())
	describeKeeping(&response.Header, valueNoStore)
	response.Header.SetContentTypeBytes(valueJSON)
	x.describeRate()
	response.SetBodyRaw(body)
}

// toolMessage is the body, which has been read, as a message.
func (x *exchange) toolMessage() (*message, *rpcRefusal) {
	if x.message == nil && x.refused == nil {
		x.message, x.refused = parseMessage(x.body)
	}
	return x.message, x.refused
}

// toolsWait is how long a message to the tools asks its answer to wait.
func (s *Server) toolsWait(x *exchange) time.Duration {
	if s.readBody(x) != nil {
		return 0
	}
	m, refused := x.toolMessage()
	if refused != nil {
		return 0
	}
	return m.wait()
}

// onlyReads reports whether the request changes nothing, however it ends.
func (s *Server) onlyReads(x *exchange) bool {
	if !x.route.tools {
		return x.route.Op.Kind == tracker.Query
	}
	if s.readBody(x) != nil {
		return false
	}
	m, refused := x.toolMessage()
	return refused != nil || m.method != methodCall || isReading(m.tool)
}

// spoken collects the SDK's answer. The SDK writes to it from several goroutines, one
// at a time, and not after its handler has returned.
type spoken struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *spoken) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *spoken) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

// Write implements http.ResponseWriter.
func (w *spoken) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(b)
}

// toolCallKey is where a context has its toolCall.
type toolCallKey struct{}

// toolCall is one message on its way through the SDK.
type toolCall struct {
	server *Server
	route  *route
	// req is the request as it was admitted; each tool gets a copy.
	req            *tracker.Request
	session, issue string
	// arguments are those of the tool. The SDK does not get them.
	arguments []byte
	// charge charges for the answer of a query, with the SDK's copies; nil if nothing is charged.
	charge func(body []byte) error
	turn   messageTurn
	// ready is the answer of a tool that was run before the SDK was asked.
	ready *toolAnswer
	// refusal is the error to answer the whole request with, instead of the SDK's answer.
	refusal  atomic.Pointer[error]
	replayed atomic.Bool
}

// toolAnswer is the outcome of a tool's operation.
type toolAnswer struct {
	reply tracker.Reply
	err   error
}

// newToolHandler is the SDK's side, made once.
func newToolHandler(version string, tools []*tool) http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "switchyard", Title: "Switchyard", Version: version}, &mcp.ServerOptions{
		Instructions: toolInstructions,
		// The tools never change, so no client needs notice of changes.
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for _, t := range tools {
		server.AddTool(t.described, t.handle)
	}
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless:    true,
		JSONResponse: true,
		// The body was bounded when it was read. Requests from pages in browsers are
		// checked before, where the client's own connection is known.
		MaxRequestBodyBytes:        -1,
		DisableLocalhostProtection: true,
	})
}
