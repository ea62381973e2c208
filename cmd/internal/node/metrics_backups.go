package node

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// backupCollector reports what this node knows of scheduled backups.
type backupCollector struct {
	s     *schedule
	age   *prometheus.Desc
	every *prometheus.Desc
	ended *prometheus.Desc
	gone  *prometheus.Desc
}

func (s *schedule) collector() prometheus.Collector {
	return &backupCollector{
		s:     s,
		age:   prometheus.NewDesc("switchyard_backup_age_seconds", "Age of the newest complete backup in --backup-to; +Inf if there is none.", nil, nil),
		every: prometheus.NewDesc("switchyard_backup_every_seconds", "Time between two scheduled backups.", nil, nil),
		ended: prometheus.NewDesc("switchyard_backups_total", "Scheduled backups that this node began and that ended, by outcome: complete or failed.", []string{"outcome"}, nil),
		gone:  prometheus.NewDesc("switchyard_backups_gone", "1 if there is no backup in --backup-to where this node has seen some, so that nothing is written there; else 0.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *backupCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.age, c.every, c.ended, c.gone} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *backupCollector) Collect(ch chan<- prometheus.Metric) {
	status := c.s.Status()
	if status.Known {
		ch <- prometheus.MustNewConstMetric(c.age, prometheus.GaugeValue, status.Age(time.Now()))
	}
	gone := 0.0
	if c.s.Refused() != nil {
		gone = 1
	}
	ch <- prometheus.MustNewConstMetric(c.gone, prometheus.GaugeValue, gone)
	ch <- prometheus.MustNewConstMetric(c.every, prometheus.GaugeValue, c.s.Every.Seconds())
	ch <- prometheus.MustNewConstMetric(c.ended, prometheus.CounterValue, float64(status.Taken), "complete")
	ch <- prometheus.MustNewConstMetric(c.ended, prometheus.CounterValue, float64(status.Failed), "failed")
}
