package httpapi

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"
)

// headerOwner names, on an answer that came from another node, the URL at which
// clients reach that node: the workspace's owner (Decision 90). The owner sets it on
// answers to other nodes alone, from its own --client-url, so that the URL is never
// older than the answer, and an answer to a direct request costs nothing.
const headerOwner = "Switchyard-Owner"

var headerOwnerName = []byte(headerOwner)

// maxClientURL bounds the URL of a node in bytes.
const maxClientURL = 255

// ParseClientURL checks the URL at which clients reach a node: a scheme, http or
// https, a host, and a port if it is not the scheme's own. An empty text is an empty
// URL, and clients get none.
func ParseClientURL(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	want := errors.New("want http://HOST:PORT or https://HOST:PORT, with nothing behind the port")
	if len(text) > maxClientURL {
		return "", fmt.Errorf("has %d bytes: at most %d", len(text), maxClientURL)
	}
	u, err := url.Parse(text)
	if err != nil || !isVisible([]byte(text)) {
		return "", want
	}
	bare := u.Scheme + "://" + u.Host
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.TrimSuffix(text, "/") != bare {
		return "", want
	}
	return bare, nil
}

// nameOwner tells the node that sent the request where clients reach this one, the
// owner. The header is set on refusals too.
func (s *Server) nameOwner(x *exchange) {
	if s.tellsOwner(x) {
		x.ctx.Response.Header.SetCanonical(headerOwnerName, s.clientURL)
	}
}

// tellsOwner reports whether the answer to the request names this node as the owner.
func (s *Server) tellsOwner(x *exchange) bool {
	return len(s.clientURL) > 0 && x.conn != nil && x.conn.peer && !x.moved && x.route != nil && x.route.workspaceAt >= 0
}

// checkOwner keeps clients from being sent to a URL that no node of this version
// would be given.
func checkOwner(header *fasthttp.ResponseHeader) {
	given := header.PeekAll(headerOwner)
	if len(given) == 0 {
		return
	}
	if bare, err := ParseClientURL(string(given[0])); err != nil || len(given) > 1 || bare != string(given[0]) {
		header.Del(headerOwner)
	}
}
