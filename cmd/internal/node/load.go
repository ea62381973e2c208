package node

import (
	"context"
	"fmt"
	"runtime/metrics"
	"time"

	"switchyard/actors/tracker"
	"switchyard/httpapi"
	"switchyard/internal/processors"
	"switchyard/storage"
)

// Elsewhere implements httpapi.Cluster.
func (o operator) Elsewhere(name string) bool {
	return o.n.serving.Load() && name != o.n.groups.Name() && o.n.groups.IsMember(name)
}

// Load implements httpapi.Cluster.
func (o operator) Load(_ context.Context, name string) (httpapi.NodeLoad, error) {
	n := o.n
	if !n.serving.Load() {
		return httpapi.NodeLoad{}, errWaiting()
	}
	if name != n.groups.Name() {
		return httpapi.NodeLoad{}, errNoNode(name)
	}
	backlog, err := n.engine.Backlog()
	if err != nil {
		return httpapi.NodeLoad{}, fmt.Errorf("load of the node: %w", err)
	}
	counts, space := n.engine.Stats(), n.store.Space()
	logBytes, stateBytes := n.store.DiskUse()
	load := httpapi.NodeLoad{
		Node: name, CPUs: processors.Count(), MemoryBytes: memoryInUse(), MemoryBudgetBytes: n.cfg.memory(),
		Disk: httpapi.DiskLoad{
			LogBytes: logBytes, StateBytes: stateBytes,
			FreeBytes: space.Free(), ReserveBytes: space.Reserve(), Full: space.Full(),
		},
		Sessions:          n.sessionLoad(&backlog),
		PendingDeliveries: backlog.Deliveries, ActiveWorkspaces: counts.ActiveActors, UnansweredCommands: counts.UnansweredCommands,
		StuckShards: []int{}, FailedShards: []int{},
	}
	if spent, ok := processors.Used(); ok {
		ms := spent.Milliseconds()
		load.CPUMs = &ms
	}
	for i := range n.groups.Shards() + 1 {
		s := n.groups.ShardStats(storage.Shard(i))
		if s.Stuck {
			load.StuckShards = append(load.StuckShards, i)
		}
		if s.Failed != nil {
			load.FailedShards = append(load.FailedShards, i)
		}
	}
	return load, nil
}

// sessionLoad picks the sessions that have not ended out of the backlog.
func (n *Node) sessionLoad(b *tracker.Backlog) httpapi.SessionLoad {
	load := httpapi.SessionLoad{Created: b.Sessions[tracker.SessionCreated], Running: b.Sessions[tracker.SessionRunning], Waiting: b.Sessions[tracker.SessionWaiting]}
	if b.OldestCreated != "" {
		age := int64(max(0, time.Since(b.OldestCreated.Time()).Seconds()))
		load.OldestCreatedSeconds = &age
	}
	return load
}

// memoryInUse returns the bytes that the process has from the operating system.
func memoryInUse() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	if samples[0].Value.Kind() != metrics.KindUint64 || samples[1].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
