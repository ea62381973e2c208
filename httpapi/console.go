package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
	"switchyard/console"
	"switchyard/console/signin"
)

// The console's pages call the API with the cookie of a session (Decision 93). This file has
// the operations on sessions, which the node that was asked carries out.

// openConsoleIn is the credential that opens a session.
type openConsoleIn struct {
	// Page must be "1", which pages of other origins can't send; see isConsolePage.
	Page  string `header:"X-Switchyard-Console"`
	Token string `json:"token" rules:"required,min=1,max=512"`
}

// endConsoleIn says which sessions end.
type endConsoleIn struct {
	Everywhere bool `query:"everywhere"`
}

// ConsoleSession is the session of a browser.
type ConsoleSession struct {
	tracker.ConsoleSession
	SignIn ConsoleSignIn `json:"signIn"`
}

// ConsoleSignIn says how people sign in besides pasting a token.
type ConsoleSignIn struct {
	OIDC bool `json:"oidc"`
}

// consoleDetails are the details of a 401 on the session's path.
type consoleDetails struct {
	SignIn ConsoleSignIn `json:"signIn"`
}

var (
	opOpenConsole = tracker.NewWorkflow[openConsoleIn, ConsoleSession]("OpenConsoleSession", "Sign in to the console", tracker.Needs{Level: tracker.Public}, nil,
		tracker.BodyUpTo(4<<10), tracker.WithoutKey, tracker.Refuses(tracker.CodeUnauthorized, tracker.CodeForbidden, tracker.CodeConflict))
	opConsole    = tracker.NewWorkflow[tracker.None, ConsoleSession]("ConsoleSession", "Show the console's session", tracker.Needs{Level: tracker.Identified}, nil)
	opEndConsole = tracker.NewWorkflow[endConsoleIn, tracker.None]("EndConsoleSession", "Sign out of the console", tracker.Needs{Level: tracker.Identified}, nil,
		tracker.WithoutKey, tracker.WithSpaceEffect(tracker.FreesSpace), tracker.Refuses(tracker.CodeConflict))
)

// consoleRun carries an operation on sessions out.
type consoleRun func(x *exchange, req *tracker.Request, in any) error

// consoleSite is what a server needs for the console. A server without the console has none.
type consoleSite struct {
	server *Server
	life   time.Duration
	cookie sessionCookie
	ticket ticketCookie
	pages  *site
	signIn *signin.Provider // nil: there is no identity provider
	// turns bounds the sign-ins that wait for the identity provider.
	turns chan struct{}
	rates *rateLimits // of sign-ins by address; nil: there is no limit
}

// maxSignIns bounds the sign-ins that wait for the identity provider at once.
const maxSignIns = 32

func (s *Server) newConsole() (*consoleSite, error) {
	files, err := console.App()
	if err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	secure := s.cfg.Secure || strings.HasPrefix(s.cfg.PublicURL, "https://")
	c := &consoleSite{server: s, life: s.cfg.ConsoleSession, signIn: s.cfg.SignIn, turns: make(chan struct{}, maxSignIns)}
	if c.cookie, err = newSessionCookie(s.cfg.RootToken, secure); err != nil {
		return nil, err
	}
	c.ticket = newTicketCookie(secure)
	c.pages = newSite("/console", files, consolePolicy)
	if s.cfg.Limits.SignIns.Requests > 0 {
		c.rates = newAddressRates(s.cfg.Limits.SignIns)
	}
	return c, nil
}

// runs are the operations on sessions.
func (c *consoleSite) runs() map[*tracker.Op]consoleRun {
	if c == nil {
		return nil
	}
	return map[*tracker.Op]consoleRun{opOpenConsole: c.open, opConsole: c.show, opEndConsole: c.end}
}

// isConsole reports whether an operation is one of those above.
func isConsole(op *tracker.Op) bool {
	return op == opOpenConsole || op == opConsole || op == opEndConsole
}

// open exchanges a pasted token for a session. A page of another origin must not sign its
// visitor in with the token of an attacker: hence the header, which such a page can't send.
func (c *consoleSite) open(x *exchange, req *tracker.Request, in any) error {
	s := c.server
	header := &x.ctx.Request.Header
	if !isConsolePage(header) {
		return errNotConsole()
	}
	if err := c.throttle(x); err != nil {
		return err
	}
	token := strings.TrimSpace(in.(*openConsoleIn).Token)
	earlier := c.cookie.value(header)
	if s.isOperator(token) {
		ends := s.now().Add(c.life)
		sealed, err := c.cookie.sealRoot(ends)
		if err != nil {
			return err
		}
		req.Credential, x.sessionEnds = token, ends
		if err := c.describe(x, req); err != nil {
			return err
		}
		c.cookie.set(&x.ctx.Response.Header, sealed, s.now(), ends)
		c.leave(req, earlier)
		return nil
	}
	opened, err := c.admitAndOpen(req, tracker.OpenConsole, &tracker.OpenConsoleIn{Token: token, Life: c.life})
	if err != nil {
		return c.explain(err)
	}
	req.Credential = opened.Secret
	if err := c.describe(x, req); err != nil {
		return c.explain(err)
	}
	c.cookie.set(&x.ctx.Response.Header, opened.Secret, s.now(), opened.ExpiresAt.Time())
	c.leave(req, earlier)
	return nil
}

// admitAndOpen runs an operation that opens a session.
func (c *consoleSite) admitAndOpen(req *tracker.Request, op *tracker.Op, in any) (opened tracker.OpenedConsole, err error) {
	s := c.server
	req.Credential, req.CredentialSum, req.Idempotency = "", nil, nil
	if err := s.engineAdmits(req, op); err != nil {
		return opened, err
	}
	reply, err := s.engine().Do(req, op, in)
	if err != nil {
		return opened, err
	}
	if err := json.Unmarshal(reply.Body, &opened); err != nil {
		return opened, fmt.Errorf("read a console session: %w", err)
	}
	return opened, nil
}

// leave ends the session that the browser had before. It ends by itself if that fails.
func (c *consoleSite) leave(req *tracker.Request, earlier []byte) {
	if len(earlier) == 0 || c.cookie.isRoot(earlier) {
		return
	}
	req.Credential, req.CredentialSum = string(earlier), nil
	if err := c.server.engineAdmits(req, tracker.EndConsole); err != nil {
		return
	}
	if _, err := c.server.engine().Do(req, tracker.EndConsole, &tracker.EndConsoleIn{}); err != nil {
		c.server.cfg.Logger.Debug("end an earlier console session", "request", req.ID, "error", err)
	}
}

// show describes the caller's session.
func (c *consoleSite) show(x *exchange, req *tracker.Request, _ any) error {
	return c.explain(c.describe(x, req))
}

// describe answers with the session of the request's credential.
func (c *consoleSite) describe(x *exchange, req *tracker.Request) error {
	s := c.server
	req.CredentialSum = nil
	if err := s.engineAdmits(req, tracker.DescribeConsole); err != nil {
		return err
	}
	reply, err := s.engine().Do(req, tracker.DescribeConsole, &tracker.None{})
	if err != nil {
		return err
	}
	session := ConsoleSession{SignIn: ConsoleSignIn{OIDC: c.signIn != nil}}
	if err := json.Unmarshal(reply.Body, &session.ConsoleSession); err != nil {
		return fmt.Errorf("read a console session: %w", err)
	}
	if session.ExpiresAt == nil && !x.sessionEnds.IsZero() {
		at := tracker.At(x.sessionEnds)
		session.ExpiresAt = &at
	}
	body, err := encode(&session)
	if err != nil {
		return fmt.Errorf("operation %s: %w", x.route.Op.Name, err)
	}
	if err := s.respond(x, &tracker.Reply{Body: body}); err != nil {
		return err
	}
	x.ctx.Response.Header.SetCanonical(headerCacheControl, valueNoStore)
	return nil
}

// end signs the browser out. The operator's sessions are not stored, so they end one by one,
// or all with the root token.
func (c *consoleSite) end(x *exchange, req *tracker.Request, in any) error {
	everywhere := in.(*endConsoleIn).Everywhere
	if req.Caller.Root && everywhere {
		return tracker.Conflict("The operator's sessions can't be ended all at once.", "Sign out in each browser, or start the nodes with another root token: that ends them all.")
	}
	if !req.Caller.Root {
		if err := c.server.engineAdmits(req, tracker.EndConsole); err != nil {
			return err
		}
		if _, err := c.server.engine().Do(req, tracker.EndConsole, &tracker.EndConsoleIn{Everywhere: everywhere}); err != nil {
			return err
		}
	}
	if err := c.server.respond(x, &tracker.Reply{Outcome: tracker.NoContent}); err != nil {
		return err
	}
	c.cookie.clear(&x.ctx.Response.Header)
	return nil
}

// explain adds the ways to sign in to a 401.
func (c *consoleSite) explain(err error) error {
	if err == nil {
		return nil
	}
	f, known := asFailure(err)
	if !known || f.clientError.Code != tracker.CodeUnauthorized {
		return err
	}
	told := *f.clientError
	told.Details = consoleDetails{ConsoleSignIn{OIDC: c.signIn != nil}}
	return &told
}

// throttle counts a sign-in for the client's address.
func (c *consoleSite) throttle(x *exchange) error {
	from := c.server.client(x)
	if c.rates == nil || !from.IsValid() {
		return nil
	}
	v := c.rates.take(sharer(from).String(), x.start)
	if v.retry == 0 {
		return nil
	}
	return &tracker.Error{
		Code: tracker.CodeTooManyRequests, Message: "The client's address has tried to sign in too often (" + boundSignIns + ").",
		Hint: "Wait as long as Retry-After says.", RetryAfter: v.retry,
	}
}

func errNotConsole() error {
	return tracker.Forbidden("The request does not come from a page of the console.", "Send "+string(headerConsole)+": 1, from the service's own origin. Programs send their token in Authorization and need no session.")
}

// credential returns the request's bearer token, or the credential of the console's session;
// empty if it has neither.
func (s *Server) credential(x *exchange) string {
	token := bearer(x.ctx.Request.Header.PeekCanonical(headerAuthorization))
	if len(token) == 0 && s.console != nil {
		token = s.console.credential(x)
	}
	return x.keepCredential(token)
}

// credential returns the credential of the session whose cookie the request carries, or nil.
// Another node sends the credential in Authorization, never a cookie.
func (c *consoleSite) credential(x *exchange) []byte {
	header := &x.ctx.Request.Header
	if !isConsolePage(header) || x.conn != nil && x.conn.peer || len(header.PeekCanonical(headerAuthorization)) > 0 {
		return nil
	}
	value := c.cookie.value(header)
	if len(value) == 0 {
		return nil
	}
	if c.cookie.isRoot(value) {
		ends, valid := c.cookie.openRoot(value, c.server.now())
		if !valid {
			return nil
		}
		x.session, x.sessionEnds = true, ends
		return []byte(c.server.cfg.RootToken)
	}
	x.session = true
	return value
}

var (
	headerConsole   = []byte("X-Switchyard-Console")
	headerFetchSite = []byte("Sec-Fetch-Site")
)

// isConsolePage reports whether a request comes from a page of the console. Pages of other
// origins can't send the header: browsers ask first, and the service does not allow it.
func isConsolePage(header *fasthttp.RequestHeader) bool {
	if string(header.PeekCanonical(headerConsole)) != "1" {
		return false
	}
	site := header.PeekCanonical(headerFetchSite)
	return len(site) == 0 || string(site) == "same-origin"
}
