package httpapi

import (
	"bytes"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

// baseURL is where the client reaches the service: the public URL, or else the host
// that the request came to. It has no slash at its end.
func (s *Server) baseURL(x *exchange) string {
	if s.cfg.PublicURL != "" {
		return strings.TrimRight(s.cfg.PublicURL, "/")
	}
	return s.scheme() + x.host()
}

// host is the service's name in answers to this request. The request's Host is taken
// for it only where it names this machine: a client that makes one up, and a cache
// that keeps the answer, would otherwise lead others to a host of the client's choice
// (Decision 48). Another node has checked the Host of a request that it forwards.
func (x *exchange) host() string {
	host := x.ctx.Request.Header.Host()
	if x.conn != nil && x.conn.peer || isLoopbackName(host) {
		return string(host)
	}
	return x.ctx.LocalAddr().String()
}

// isLoopbackName reports whether a host, with or without a port, is one of this
// machine's own names for itself.
func isLoopbackName(host []byte) bool {
	name := string(host)
	if bare, port, err := net.SplitHostPort(name); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		name = bare
	} else {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	at, err := netip.ParseAddr(name)
	return err == nil && at.IsLoopback() && at.Zone() == ""
}

// originOf returns the Origin header that a browser sends for a page at the public URL;
// empty without one.
func originOf(publicURL string) (string, error) {
	public, err := url.Parse(publicURL)
	if err != nil || public.Host == "" {
		return "", err
	}
	return strings.ToLower(public.Scheme + "://" + public.Host), nil
}

// checkOrigin refuses a request to the tools that a page of another origin has its
// visitor's browser send. The service's own origins are that of the public URL and
// those of this machine's own names. Host is no proof of one: a page whose name leads
// to this machine (DNS rebinding) sends that name as Host, too. A browser names the
// page with every POST; programs that send neither Origin nor Sec-Fetch-Site are no
// browsers. The node that the client asked looks; other nodes have only its word.
func (s *Server) checkOrigin(x *exchange) error {
	if x.conn != nil && x.conn.peer {
		return nil
	}
	header := &x.ctx.Request.Header
	origin, site := header.Peek(fasthttp.HeaderOrigin), header.PeekCanonical(headerFetchSite)
	switch {
	case len(origin) > 0 && s.isOwnOrigin(x, origin):
		return nil
	case len(origin) == 0 && (len(site) == 0 || isOwnSite(site)):
		return nil
	}
	return errOtherOrigin()
}

// checkFounder refuses an onboarding that a page of another origin has its visitor's browser send. It
// needs no credential, and without a Content-Type the browser asks nobody before it sends it. Unlike
// checkOrigin it takes any name of the service for the service's own: the console makes workspaces
// also where nobody has set a public URL. A page whose name leads to this machine passes.
func (s *Server) checkFounder(x *exchange) error {
	if x.conn != nil && x.conn.peer {
		return nil
	}
	header := &x.ctx.Request.Header
	origin, site := header.Peek(fasthttp.HeaderOrigin), header.PeekCanonical(headerFetchSite)
	switch {
	case len(origin) > 0 && s.isOwnOrigin(x, origin), isConsolePage(header), isOwnSite(site):
		return nil
	case len(site) == 0 && (len(origin) == 0 || isHost(hostOf(origin), header)):
		return nil // a program, or a page that was loaded without TLS: browsers send no Sec-Fetch-Site there
	}
	return errOtherOrigin()
}

func errOtherOrigin() error {
	return tracker.Forbidden("The request comes from a page of another origin.", "Send it from the service's own origin, --public-url, from one of --cors-origins, or from a program other than a browser.")
}

// isOwnSite reports whether a browser says by Sec-Fetch-Site that a page of the same origin sends a
// request, or that no page does.
func isOwnSite(site []byte) bool { return string(site) == "same-origin" || string(site) == "none" }

func (s *Server) isOwnOrigin(x *exchange, origin []byte) bool {
	if public := s.publicOrigin; public != "" && strings.EqualFold(string(origin), public) || s.origins[string(origin)] != nil {
		return true
	}
	host := hostOf(origin)
	return isHost(host, &x.ctx.Request.Header) && (isLoopbackName(host) || string(host) == x.ctx.LocalAddr().String())
}

// isHost reports whether a host is the one that the request names.
func isHost(host []byte, header *fasthttp.RequestHeader) bool {
	return len(host) > 0 && bytes.EqualFold(host, header.Host())
}

// hostOf returns the host of an origin, with its port; nil if no web server has that origin.
func hostOf(origin []byte) []byte {
	host, ok := bytes.CutPrefix(origin, []byte("http://"))
	if !ok {
		host, ok = bytes.CutPrefix(origin, []byte("https://"))
	}
	if !ok {
		return nil
	}
	return host
}
