package node

import (
	"net/http"
	"net/http/pprof"
	"time"
)

// observationServer serves what an operator looks at, to few clients.
func (n *Node) observationServer() *http.Server {
	return &http.Server{Handler: n.observation(), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 3 * time.Minute, MaxHeaderBytes: 16 << 10}
}

// observation serves what an operator looks at: metrics and, with --pprof, profiles. Other paths are
// 404: a probe of /readyz, which the port for clients has, should not find 200 here.
func (n *Node) observation() http.Handler {
	mux, metrics := http.NewServeMux(), n.api.Metrics()
	mux.Handle("/{$}", metrics)
	mux.Handle("/metrics", metrics)
	if !n.cfg.Pprof {
		return mux
	}
	mux.HandleFunc("GET "+profilesPath, pprof.Index) // and each profile by its name
	mux.HandleFunc("GET "+profilesPath+"profile", pprof.Profile)
	mux.HandleFunc("GET "+profilesPath+"symbol", pprof.Symbol)
	mux.HandleFunc("GET "+profilesPath+"trace", pprof.Trace)
	// The command line may hold secrets, which a profile does not need.
	mux.Handle("GET "+profilesPath+"cmdline", http.NotFoundHandler())
	return mux
}

// profilesPath is where Go's tools look for profiles.
const profilesPath = "/debug/pprof/"
