package node

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// newLogWrites returns the histogram of the times that writes to the logs of the shards take. An
// acknowledged change has waited for one of them on its owner, and for one on a majority of nodes.
func newLogWrites() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "switchyard_log_write_seconds",
		Help:    "Time of a write to the log of a shard, until it is on this node's disk.",
		Buckets: []float64{.0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 5},
	})
}

// observing returns a function that adds durations to a histogram, in seconds.
func observing(h prometheus.Histogram) func(time.Duration) {
	return func(took time.Duration) { h.Observe(took.Seconds()) }
}
