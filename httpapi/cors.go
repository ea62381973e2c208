package httpapi

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"
)

// Pages of the origins in Config.CORSOrigins may read answers in their visitors'
// browsers (Decision 73). A page needs a token of its own: cookies and other
// credentials that browsers add by themselves mean nothing to the service, and no
// answer allows them. The node that the client asked sets the headers.

var (
	headerAllowOrigin    = []byte("Access-Control-Allow-Origin")
	headerExposed        = []byte("Access-Control-Expose-Headers")
	headerAllowedMethods = []byte("Access-Control-Allow-Methods")
	headerAllowedHeaders = []byte("Access-Control-Allow-Headers")
	headerMaxAge         = []byte("Access-Control-Max-Age")
	headerRequestMethod  = []byte("Access-Control-Request-Method")
	headerOrigin         = []byte("Origin")

	valueExposed        = []byte("ETag, X-Request-Id, Retry-After, Idempotency-Replayed, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset")
	valueAllowedHeaders = []byte("Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, X-Request-Id")
	valueAllowedMethods = []byte("GET, HEAD, POST, PUT, PATCH, DELETE")
	valueMaxAge         = []byte("7200") // seconds, the most that browsers keep it

	headerVary         = []byte("Vary")
	valueVariesCoding  = []byte("Accept-Encoding")
	valueVariesOrigin  = []byte("Origin")
	valueVariesTwofold = []byte("Origin, Accept-Encoding")
)

// origins are the origins whose pages may read answers, as browsers name them. No
// origin is allowed by an empty set.
type origins map[string][]byte

// newOrigins reads a list of origins. It refuses those that no browser sends, because
// they would never match.
func newOrigins(list []string) (origins, error) {
	set := make(origins, len(list))
	for _, text := range list {
		if err := checkAllowedOrigin(text); err != nil {
			return nil, fmt.Errorf("origin %q: %w", text, err)
		}
		set[text] = []byte(text)
	}
	return set, nil
}

func checkAllowedOrigin(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme == "" || u.Hostname() == "" || u.Scheme+"://"+u.Host != text || strings.ToLower(text) != text || !isVisible([]byte(text)):
		return fmt.Errorf("want scheme://host or scheme://host:port in lower case, with nothing behind it, as browsers send it")
	case strings.ContainsAny(text, "*,"):
		return fmt.Errorf("origins are compared exactly: name each of them")
	case u.Scheme == "http" && u.Port() == "80" || u.Scheme == "https" && u.Port() == "443":
		return fmt.Errorf("browsers leave the scheme's own port out")
	}
	return nil
}

// CheckOrigins reports what is wrong with a list of Config.CORSOrigins.
func CheckOrigins(list []string) error {
	_, err := newOrigins(list)
	return err
}

// of returns the origin of the page that sent a request if it is allowed, or nil.
func (o origins) of(header *fasthttp.RequestHeader) []byte {
	if len(o) == 0 {
		return nil
	}
	return o[string(header.PeekCanonical(headerOrigin))]
}

// isPreflight reports whether a browser asks if a page of an allowed origin may send a
// request. The request itself comes later.
func (s *Server) isPreflight(x *exchange) bool {
	if len(s.origins) == 0 || x.conn != nil && x.conn.peer {
		return false
	}
	header := &x.ctx.Request.Header
	return string(header.Method()) == fasthttp.MethodOptions && len(header.PeekCanonical(headerRequestMethod)) > 0 && s.origins.of(header) != nil
}

// respondPreflight allows a page's request. The path is not looked at, so that the page
// can read the answer to a request that the service refuses.
func (s *Server) respondPreflight(x *exchange) {
	response := &x.ctx.Response
	response.SetStatusCode(fasthttp.StatusNoContent)
	response.Header.SetCanonical(headerRequestID, x.requestID())
	response.Header.SetCanonical(headerAllowedMethods, valueAllowedMethods)
	response.Header.SetCanonical(headerAllowedHeaders, valueAllowedHeaders)
	response.Header.SetCanonical(headerMaxAge, valueMaxAge)
	response.Header.SetCanonical(headerContentTypeOptions, valueNoSniff)
}

// finish encodes an answer, and sets the headers that caches and browsers go by. The
// node that the client asked does it for answers of other nodes too. from is the allowed
// origin of a request whose header fasthttp could not read; nil: none is known.
func (s *Server) finish(x *exchange, from []byte) {
	if x.conn != nil && x.conn.peer {
		return
	}
	encoded := s.encode(x)
	header := &x.ctx.Response.Header
	switch {
	case len(s.origins) > 0 && encoded:
		header.SetCanonical(headerVary, valueVariesTwofold)
	case len(s.origins) > 0:
		header.SetCanonical(headerVary, valueVariesOrigin)
	case encoded:
		header.SetCanonical(headerVary, valueVariesCoding)
	}
	if origin := s.origins.of(&x.ctx.Request.Header); origin != nil {
		from = origin
	}
	if from != nil {
		header.SetCanonical(headerAllowOrigin, from)
		header.SetCanonical(headerExposed, valueExposed)
	}
}

// appendSharing appends the headers of finish to the head of a stream.
func (s *Server) appendSharing(b []byte, x *exchange) []byte {
	encoded := encodable([]byte(x.streamMedia()))
	switch {
	case len(s.origins) > 0 && encoded:
		b = append(append(b, "\r\nVary: "...), valueVariesTwofold...)
	case len(s.origins) > 0:
		b = append(append(b, "\r\nVary: "...), valueVariesOrigin...)
	case encoded:
		b = append(append(b, "\r\nVary: "...), valueVariesCoding...)
	}
	if origin := s.origins.of(&x.ctx.Request.Header); origin != nil {
		b = append(append(b, "\r\nAccess-Control-Allow-Origin: "...), origin...)
		b = append(append(b, "\r\nAccess-Control-Expose-Headers: "...), valueExposed...)
	}
	return b
}
