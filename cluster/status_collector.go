package cluster

import (
	"context"
	"time"

	"switchyard/cluster/placement"
)

// statusMaxAge is the age up to which an answer is reused, so that many requests at once cost the
// members one report.
const statusMaxAge = 500 * time.Millisecond

// statusCollector collects the status of the cluster, on any of its nodes.
type statusCollector struct {
	collector    reportCollector
	members      memberSource
	replaceAfter time.Duration

	slot        chan struct{} // capacity 1: guards collecting and the fields below
	latest      Topology
	collectedAt time.Time
}

func newStatusCollector(cfg rebalancerConfig) *statusCollector {
	return &statusCollector{
		collector:    reportCollector{self: cfg.Self, own: cfg.Own, peers: cfg.Peers},
		members:      cfg.Members,
		replaceAfter: cfg.ReplaceAfter,
		slot:         make(chan struct{}, 1),
	}
}

// status returns the cluster as this node sees it, at most a second old. A member that does not
// answer within a second is shown as the others know it. A node that is cut off from all others
// shows what it knows itself. The result is shared and must not be changed.
func (v *statusCollector) status(ctx context.Context) Topology {
	select {
	case v.slot <- struct{}{}:
		defer func() { <-v.slot }()
	case <-ctx.Done():
		r, _ := v.members.membersView()
		return v.assemble(r, map[string][]placement.GroupReport{v.collector.self: v.collector.own.report()}, time.Now())
	}
	if !v.collectedAt.IsZero() && time.Since(v.collectedAt) < statusMaxAge {
		return v.latest
	}
	r, _ := v.members.membersView()
	// Other requests wait for this result, so it does not end with this request's context.
	reports, full := v.collector.collect(context.WithoutCancel(ctx), r, nil)
	hang, _ := new(hangingDisks).update(r.members, reports, time.Now(), v.replaceAfter)
	r.members = markNodes(r.members, full, hang, nil)
	v.latest, v.collectedAt = v.assemble(r, reports, time.Now()), time.Now()
	return v.latest
}

// assemble combines members and reports.
func (v *statusCollector) assemble(r clusterView, reports map[string][]placement.GroupReport, now time.Time) Topology {
	t := placement.State{
		Shards: r.shards, EverThree: r.everThree, ReplaceAfter: v.replaceAfter,
		Members: r.members, Reports: reports,
	}.Topology(r.clusterID, now)
	t.Format = int(r.format)
	return t
}
