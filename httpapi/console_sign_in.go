package httpapi

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
	"switchyard/console/signin"
)

// Signing in with the identity provider is two navigations of the browser: to the provider,
// and back from it. A failure leads back to the console, which says in words what the code in
// the address means.
const (
	signInPath   = "/console/sign-in"
	callbackPath = "/console/callback"
	consoleHome  = "/console/"
	// maxReturn bounds the path that a sign-in leads to, in bytes.
	maxReturn = 1024
)

// The codes in the address of a sign-in that has failed.
const (
	signInExpired     = "sign-in-expired"     // it took too long, or another one has replaced it
	signInRefused     = "sign-in-refused"     // the provider or the person said no
	signInUnknown     = "sign-in-unknown"     // no member has this identity
	signInSeveral     = "sign-in-several"     // the workspace has to be named
	signInOften       = "sign-in-often"       // too many attempts from one address
	signInUnavailable = "sign-in-unavailable" // the provider or the workspace did not answer
)

// signInRoutes are the paths of a sign-in with the identity provider.
func (c *consoleSite) signInRoutes() map[string]func(*exchange) error {
	if c == nil || c.signIn == nil {
		return nil
	}
	return map[string]func(*exchange) error{signInPath: c.beginSignIn, callbackPath: c.finishSignIn}
}

// beginSignIn sends the browser to the identity provider.
func (c *consoleSite) beginSignIn(x *exchange) error {
	to := returnPath(queryValue(x, "to"))
	if err := c.throttle(x); err != nil {
		c.failSignIn(x, to, signInOften)
		return nil
	}
	ctx, done, ok := c.turn()
	if !ok {
		c.failSignIn(x, to, signInUnavailable)
		return nil
	}
	defer done()
	begun, err := c.signIn.Begin(ctx, c.server.baseURL(x)+callbackPath, signin.Kept{To: to, Session: c.sessionOf(x)})
	if err != nil {
		c.server.cfg.Logger.Warn("begin a sign-in", "request", x.id, "error", err)
		c.failSignIn(x, to, signInUnavailable)
		return nil
	}
	redirect(x, begun.Address)
	c.ticket.set(&x.ctx.Response.Header, begun.Ticket, signin.TicketLife)
	return nil
}

// sessionOf returns the session that the browser has, if it is one that leave can end. The
// browser does not send its cookie with the provider's answer, which is a navigation from
// another site: so the ticket keeps it.
func (c *consoleSite) sessionOf(x *exchange) string {
	value := string(c.cookie.value(&x.ctx.Request.Header))
	if _, err := tracker.ParseCredential(value); err != nil {
		return "" // the operator's, or a text that could be too long for a ticket
	}
	return value
}

// finishSignIn takes the provider's answer, which the browser brings. The ticket in the
// browser's cookie proves that this browser began the sign-in: without it, an attacker's
// answer would sign the visitor in as the attacker.
func (c *consoleSite) finishSignIn(x *exchange) error {
	if err := c.throttle(x); err != nil {
		c.failSignIn(x, consoleHome, signInOften)
		return nil
	}
	ticket := string(c.ticket.value(&x.ctx.Request.Header))
	query, err := url.ParseQuery(string(x.target.query))
	if err != nil {
		query = url.Values{}
	}
	ctx, done, ok := c.turn()
	if !ok {
		c.failSignIn(x, consoleHome, signInUnavailable)
		return nil
	}
	defer done()
	who, kept, err := c.signIn.Finish(ctx, ticket, query)
	to := returnPath(kept.To)
	if err == nil {
		err = c.openFor(x, who, to, kept.Session)
	}
	if err == nil {
		return nil
	}
	code := signInCode(err)
	if code == signInUnavailable || code == signInRefused {
		c.server.cfg.Logger.Warn("finish a sign-in", "request", x.id, "error", err)
	}
	c.failSignIn(x, to, code)
	return nil
}

// openFor opens a session for a confirmed person, and leads to a path. It ends the browser's
// earlier session.
func (c *consoleSite) openFor(x *exchange, who signin.Identity, to, earlier string) error {
	s := c.server
	req := &tracker.Request{ID: x.id, Address: s.client(x), Deadline: s.now().Add(s.cfg.RequestTimeout)}
	opened, err := c.admitAndOpen(req, tracker.SignInConsole, &tracker.SignInConsoleIn{
		Slug: slugOf(to), Identity: tracker.Identity{Subject: who.Subject, Email: who.Email}, Life: c.life,
	})
	if err != nil {
		return err
	}
	redirect(x, to)
	c.cookie.set(&x.ctx.Response.Header, opened.Secret, s.now(), opened.ExpiresAt.Time())
	c.ticket.clear(&x.ctx.Response.Header)
	c.leave(req, []byte(earlier))
	return nil
}

// turn waits for one of the places of sign-ins. done gives it back.
func (c *consoleSite) turn() (ctx context.Context, done func(), ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), c.server.cfg.RequestTimeout)
	select {
	case c.turns <- struct{}{}:
		return ctx, func() { cancel(); <-c.turns }, true
	default:
		cancel()
		return nil, nil, false
	}
}

// signInCode returns the code of a failure.
func signInCode(err error) string {
	switch {
	case errors.Is(err, signin.ErrExpired):
		return signInExpired
	case errors.Is(err, signin.ErrRefused):
		return signInRefused
	}
	var told *tracker.Error
	if errors.As(err, &told) {
		switch told.Reason {
		case tracker.SignInUnknown:
			return signInUnknown
		case tracker.SignInSeveral:
			return signInSeveral
		}
	}
	return signInUnavailable
}

// failSignIn leads back to the console with a code.
func (c *consoleSite) failSignIn(x *exchange, to, code string) {
	path, _, _ := strings.Cut(to, "?")
	redirect(x, path+"?error="+code)
	c.ticket.clear(&x.ctx.Response.Header)
}

// redirect sends the browser to an address.
func redirect(x *exchange, to string) {
	response := &x.ctx.Response
	response.SetStatusCode(fasthttp.StatusSeeOther)
	response.Header.SetCanonical(headerRequestID, x.requestID())
	describeKeeping(&response.Header, valueNoStore)
	response.Header.SetCanonical(headerReferrer, valueNoReferrer)
	response.Header.SetCanonical(headerLocation, []byte(to))
}

// queryValue returns a parameter of the query; empty without one.
func queryValue(x *exchange, name string) string {
	var args fasthttp.Args
	args.ParseBytes(x.target.query)
	return string(args.Peek(name))
}

// returnPath returns a path of the console, and the console's first page in place of any
// other address: a link to the sign-in must not lead to another site (open redirect).
func returnPath(to string) string {
	if len(to) > maxReturn || !strings.HasPrefix(to, consoleHome) || !isVisible([]byte(to)) {
		return consoleHome
	}
	path, _, _ := strings.Cut(to, "?")
	if strings.ContainsAny(to, `\#`) || strings.Contains(path, "//") || strings.Contains(path, "..") || strings.Contains(path, "%") {
		return consoleHome
	}
	if path == signInPath || path == callbackPath {
		return consoleHome
	}
	if strings.Contains(to, "error=sign-in-") {
		return path // the failure of an earlier sign-in
	}
	return to
}

// slugOf returns the workspace that a path of the console names; empty for none.
func slugOf(path string) string {
	path, _, _ = strings.Cut(strings.TrimPrefix(path, consoleHome), "?")
	slug, rest, _ := strings.Cut(path, "/")
	if rest == "" {
		return "" // such as /console/cluster
	}
	return slug
}

// consoleLife is how long a session lasts if the operator sets nothing else.
const consoleLife = 12 * time.Hour
