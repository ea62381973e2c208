package httpapi

import (
	_ "embed"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

//go:embed docs.html
var docsPage []byte

var healthy = []byte(`{"status":"ok"}`)

// builtin are the paths that need no operation: health, readiness and the API's
// description. None asks for a credential (Decision 12).
func (s *Server) builtin(description []byte) []*route {
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
			x.respondBytes(string(valueJSON), description)
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
			x.respondBytes("text/html; charset=utf-8", docsPage)
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

// oauthMetadata is what OAuth clients can find out by themselves (RFC 8414).
func oauthMetadata(base string) any {
	return doc{
		"issuer": base, "token_endpoint": base + "/oauth/token", "service_documentation": base + "/docs",
		"grant_types_supported": []string{"client_credentials"}, "response_types_supported": []string{},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post"},
		"scopes_supported":                      tracker.PermissionWords(),
	}
}

// docsPolicy keeps the page to itself: it loads nothing and talks to this service
// only, with whatever token is typed into it.
var docsPolicy = []byte("default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
