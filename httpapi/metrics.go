package httpapi

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the server's own. Each route holds its observers by status, so that
// counting a request costs no look-up by labels.
type metrics struct {
	duration *prometheus.HistogramVec
	sent     *prometheus.CounterVec
	refusals *prometheus.CounterVec
	slow     prometheus.Counter
	// unmatched counts the requests that found no route.
	unmatched *observers
}

// latencyBuckets are in seconds, dense where requests of a healthy node are.
var latencyBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

func newMetrics(registry *prometheus.Registry, connections func() float64, budget *budget) (*metrics, error) {
	m := &metrics{duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "switchyard_http_request_duration_seconds",
		Help:    "Time from a request's headers to its response, by route and status.",
		Buckets: latencyBuckets,
	}, []string{"method", "route", "status"})}
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "switchyard_http_connections",
		Help: "Open client connections.",
	}, connections)
	m.sent = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "switchyard_http_forwarded_total",
		Help: "Tries to have another node answer a request, by outcome: answered, moved (not the node), not_sent, lost, abandoned (the client left while its request waited).",
	}, []string{"outcome"})
	m.refusals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "switchyard_http_refused_total",
		Help: "Requests refused and connections closed for a bound on what one caller may take, by the flag that sets it.",
	}, []string{"bound"})
	m.slow = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "switchyard_http_slow_operations_total",
		Help: "Operations that took longer than --slow-operations.",
	})
	inFlight := func(callers string, bytes *atomic.Int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "switchyard_http_bytes_in_flight",
			Help:        "Bytes of larger requests in hand and of answers not taken yet, of all callers and of those without a valid credential.",
			ConstLabels: prometheus.Labels{"callers": callers},
		}, func() float64 { return float64(bytes.Load()) })
	}
	for _, c := range [...]prometheus.Collector{m.duration, open, m.sent, m.refusals, m.slow, inFlight("all", &budget.all), inFlight("anonymous", &budget.anonymous)} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("httpapi: register metrics: %w", err)
		}
	}
	m.unmatched = m.observers("", "none")
	return m, nil
}

// observers are the histograms of one route, made when a status first occurs.
type observers struct {
	metrics       *metrics
	method, route string
	// byStatus has 40 places for each hundred.
	byStatus [240]atomic.Pointer[prometheus.Observer]
}

func (m *metrics) observers(method, route string) *observers {
	return &observers{metrics: m, method: method, route: route}
}

func (o *observers) observe(status int, start time.Time) {
	place := status/100*40 + status%100
	if status < 0 || status%100 >= 40 || place >= len(o.byStatus) {
		return
	}
	observer := o.byStatus[place].Load()
	if observer == nil {
		made := o.metrics.duration.WithLabelValues(o.method, o.route, strconv.Itoa(status))
		observer = &made
		o.byStatus[place].Store(observer)
	}
	(*observer).Observe(time.Since(start).Seconds())
}

// forwarded counts a try to have another node answer.
func (m *metrics) forwarded(outcome string) { m.sent.WithLabelValues(outcome).Inc() }

// refuse counts a refusal for a bound.
func (m *metrics) refuse(bound string) { m.refusals.WithLabelValues(bound).Inc() }
