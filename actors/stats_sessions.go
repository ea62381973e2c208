package actors

import (
	"github.com/prometheus/client_golang/prometheus"

	"switchyard/actors/tracker"
)

var (
	sessionsDesc      = describe("sessions", "Sessions of the workspaces that the node owns, by status.", "status")
	oldestCreatedDesc = describe("sessions_oldest_created_age_seconds", "Age of the oldest of these sessions that is created, which nobody has claimed; 0 for none.")
	lapsesDesc        = describe("session_lapses_total", "Leases of claimed sessions that ran out.")
	deadLettersDesc   = describe("session_dead_letters_total", "Sessions that failed because their attempts were used up.")
	pendingDesc       = describe("webhook_deliveries_pending", "Webhook deliveries that have not ended, of the workspaces that the node owns.")
)

// newClaimWaits returns the histogram of the times that claimed sessions have waited.
func newClaimWaits() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "switchyard_session_claim_wait_seconds",
		Help:    "Time from when a claimed session was dispatched, was put back into the queue or reached its notBefore, to its claim.",
		Buckets: prometheus.ExponentialBuckets(0.05, 4, 11), // to 15 hours
	})
}

// worked counts what a committed batch did with sessions.
func (e *Engine) worked(w *tracker.SessionWork) {
	for _, wait := range w.ClaimWaits {
		e.claimWaits.Observe(wait)
	}
	if w.Lapses > 0 {
		e.stats.lapses.Add(uint64(w.Lapses))
	}
	if w.DeadLetters > 0 {
		e.stats.deadLetters.Add(uint64(w.DeadLetters))
	}
}

func (c collector) collectSessions(ch chan<- prometheus.Metric) {
	e := c.engine
	e.claimWaits.Collect(ch)
	ch <- prometheus.MustNewConstMetric(lapsesDesc, prometheus.CounterValue, float64(e.stats.lapses.Load()))
	ch <- prometheus.MustNewConstMetric(deadLettersDesc, prometheus.CounterValue, float64(e.stats.deadLetters.Load()))
	b, err := e.backlog()
	if err != nil {
		e.log.Error("count sessions and deliveries for the metrics", "error", err)
		return
	}
	for status, n := range b.Sessions {
		ch <- prometheus.MustNewConstMetric(sessionsDesc, prometheus.GaugeValue, float64(n), string(status))
	}
	age := 0.0
	if b.OldestCreated != "" {
		age = max(0, e.cfg.Clock().Sub(b.OldestCreated.Time()).Seconds())
	}
	ch <- prometheus.MustNewConstMetric(oldestCreatedDesc, prometheus.GaugeValue, age)
	ch <- prometheus.MustNewConstMetric(pendingDesc, prometheus.GaugeValue, float64(b.Deliveries))
}
