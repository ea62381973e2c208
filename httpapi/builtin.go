package httpapi

import (
	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

var healthy = []byte(`{"status":"ok"}`)

// builtinPath is a path that needs no operation.
type builtinPath struct {
	path   string
	direct func(*exchange) error
}

// builtin are the paths that need no operation: health, readiness and the API's
// description. None asks for a credential (Decision 12).
func (s *Server) builtin(docs *site) []*route {
	description := &constantBody{plain: s.description}
	paths := []builtinPath{
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
			docs.respond(x, docs.page)
			return nil
		}},
	}
	for path, direct := range s.console.signInRoutes() {
		paths = append(paths, builtinPath{path, direct})
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
