package node

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"switchyard/cmd/internal/backup"
)

// logCollector reports what this node knows of archived logs.
type logCollector struct {
	a        *backup.LogArchiver
	age      *prometheus.Desc
	every    *prometheus.Desc
	gaps     *prometheus.Desc
	lost     *prometheus.Desc
	failed   *prometheus.Desc
	segments *prometheus.Desc
	bytes    *prometheus.Desc
}

func newLogCollector(a *backup.LogArchiver) *logCollector {
	return &logCollector{
		a:        a,
		age:      prometheus.NewDesc("switchyard_backup_log_age_seconds", "Age of the moment up to which the logs of all shards are archived; +Inf if none is.", nil, nil),
		every:    prometheus.NewDesc("switchyard_backup_log_every_seconds", "Time between two passes that archive the logs.", nil, nil),
		gaps:     prometheus.NewDesc("switchyard_backup_log_gaps", "Shards that can't be restored to a moment behind the newest backup.", nil, nil),
		lost:     prometheus.NewDesc("switchyard_backup_log_gaps_total", "Times that entries of a log were truncated before this node had archived them.", nil, nil),
		failed:   prometheus.NewDesc("switchyard_backup_log_failures_total", "Passes of this node that failed to archive the log of some shard.", nil, nil),
		segments: prometheus.NewDesc("switchyard_backup_log_segments_total", "Segments of logs that this node has archived.", nil, nil),
		bytes:    prometheus.NewDesc("switchyard_backup_log_bytes_total", "Bytes of log entries that this node has archived, before compression.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *logCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.age, c.every, c.gaps, c.lost, c.failed, c.segments, c.bytes} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *logCollector) Collect(ch chan<- prometheus.Metric) {
	status := c.a.Status()
	if status.Known {
		ch <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, status.Age(time.Now()))
		ch <- prometheus.MustNewConstMetric(c.gaps, prometheus.GaugeValue, float64(len(status.Gaps)))
	}
	ch <- prometheus.MustNewConstMetric(c.every, prometheus.GaugeValue, c.a.Every.Seconds())
	for desc, n := range map[*prometheus.Desc]uint64{c.lost: status.Lost, c.failed: status.Failed, c.segments: status.Segments, c.bytes: status.Bytes} {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n))
	}
}
