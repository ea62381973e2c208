package httpapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

//go:embed docs.html
var docsPage []byte

var healthy = []byte(`{"status":"ok"}`)

// builtin are the paths that need no operation: health, readiness and the API's
// description. None asks for a credential (Decision 12).
func (s *Server) builtin() []*route {
	description, page := &constantBody{plain: s.description}, &constantBody{plain: docsPage}
	paths := []struct {
		path   string
		direct func(*exchange) error
	}{
		{"/healthz", func(x *exchange) error {
			x.respondBytes(string(valueJSON), healthy)
			return nil
		}},
		{"/readyz", func(x *exchange) error {
			if err := s.cfg.Ready(); err != nil {
				return tracker.NotApplied("The node is not ready: " + err.Error() + ".")
			}
			x.respondBytes(string(valueJSON), healthy)
			return nil
		}},
		{"/openapi.json", func(x *exchange) error {
			x.respondBytes(string(valueJSON), s.description)
			x.constant = description
			return nil
		}},
		{"/.well-known/oauth-authorization-server", func(x *exchange) error {
			body, err := encode(oauthMetadata(s.baseURL(x)))
			if err != nil {
				return err
			}
			x.respondBytes(string(valueJSON), body)
			return nil
		}},
		{"/docs", func(x *exchange) error {
			x.ctx.Response.Header.SetCanonical([]byte("Content-Security-Policy"), docsPolicy)
			x.ctx.Response.Header.SetCanonical([]byte("X-Content-Type-Options"), []byte("nosniff"))
			x.respondBytes("text/html; charset=utf-8", docsPage)
			x.constant = page
			return nil
		}},
	}
	routes := make([]*route, 0, len(paths))
	for _, p := range paths {
		routes = append(routes, &route{
			Route:       Route{Method: fasthttp.MethodGet, Path: p.path},
			observers:   s.metrics.observers(fasthttp.MethodGet, p.path),
			label:       fasthttp.MethodGet + " " + p.path,
			workspaceAt: -1,
			maxBody:     defaultMaxBody,
			direct:      p.direct,
			health:      p.path == "/healthz" || p.path == "/readyz",
		})
	}
	return routes
}

// oauthMetadata returns the metadata document for OAuth clients (RFC 8414).
func oauthMetadata(base string) doc {
	return doc{
		"issuer": base, "token_endpoint": base + "/oauth/token", "service_documentation": base + "/docs",
		"grant_types_supported": []string{"client_credentials"}, "response_types_supported": []string{},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post"},
		"scopes_supported":                      tracker.PermissionWords(),
	}
}

// docsPolicy isolates the page, because users type tokens into it: the page loads
// nothing, uses its own script and style alone, and sends requests to this service only.
var docsPolicy = []byte("default-src 'none'; style-src " + hashOf(docsPage, "style") + "; script-src " + hashOf(docsPage, "script") +
	"; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")

// hashOf names the text of the one element of a kind as a Content-Security-Policy
// does.
func hashOf(page []byte, element string) string {
	_, rest, _ := bytes.Cut(page, []byte("<"+element+">"))
	text, _, _ := bytes.Cut(rest, []byte("</"+element+">"))
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
