package httpapi

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// scrapesAtATime is how many requests for the metrics are answered at a time: each gathers all of them.
	scrapesAtATime = 4
	// scrapeTime is how long an answer with the metrics may take to be sent.
	scrapeTime = 30 * time.Second
)

// Metrics serves the registry's metrics, for a listener of their own. Of more than four requests at a time the others
// are 503, and an answer that nobody reads ends after half a minute.
func (s *Server) Metrics() http.Handler {
	scrape := promhttp.HandlerFor(s.cfg.Registry, promhttp.HandlerOpts{Registry: s.cfg.Registry, MaxRequestsInFlight: scrapesAtATime})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetWriteDeadline(s.now().Add(scrapeTime)); err != nil {
			s.cfg.Logger.Debug("no deadline for metrics", "error", err.Error())
		}
		scrape.ServeHTTP(w, r)
	})
}
