package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"switchyard/actors/tracker"
)

// NodeLoad is the work that one node has. Counters begin at 0 with the process: the
// difference of two answers, divided by that of their uptimeMs, is a rate.
type NodeLoad struct {
	Node      string            `json:"node"`
	StartedAt tracker.Timestamp `json:"startedAt"`
	UptimeMs  int64             `json:"uptimeMs"`
	Requests  RequestLoad       `json:"requests"`
	// CPUs is the number of processors that the process may use, and CPUMs the time that
	// they have worked for it; null where the operating system does not tell it.
	CPUs  int    `json:"cpus"`
	CPUMs *int64 `json:"cpuMs"`
	// MemoryBytes are those that the process has from the operating system, and
	// MemoryBudgetBytes is --memory.
	MemoryBytes       uint64 `json:"memoryBytes"`
	MemoryBudgetBytes uint64 `json:"memoryBudgetBytes"`

	Disk     DiskLoad    `json:"disk"`
	Sessions SessionLoad `json:"sessions"`
	// PendingDeliveries are the webhook deliveries that have not ended.
	PendingDeliveries uint64 `json:"pendingDeliveries"`
	// ActiveWorkspaces have had work recently, and UnansweredCommands wait for their answer.
	ActiveWorkspaces   int64 `json:"activeWorkspaces"`
	UnansweredCommands int64 `json:"unansweredCommands"`
	// StuckShards wait for the node's disk, and the node's replicas of FailedShards can't
	// follow their logs.
	StuckShards  []int `json:"stuckShards"`
	FailedShards []int `json:"failedShards"`
	// Busiest lists the workspaces with most requests, the busiest first, and behind them those
	// of the others with the slowest requests. Its counts are those of the last BusiestMs.
	Busiest   []BusyWorkspace `json:"busiest"`
	BusiestMs int64           `json:"busiestMs"`
}

// RequestLoad counts requests. Reads and writes are counted by the node that carries them
// out, so the sum over all nodes counts each once.
type RequestLoad struct {
	Connections int64  `json:"connections"` // open ones of clients
	Answered    uint64 `json:"answered"`    // to clients, also with another node's answer
	Reads       uint64 `json:"reads"`
	Writes      uint64 `json:"writes"`
	Forwarded   uint64 `json:"forwarded"`   // answered by other nodes
	Unavailable uint64 `json:"unavailable"` // answered with 503
	Failed      uint64 `json:"failed"`      // answered with another status from 500 on
}

// DiskLoad is the disk of a node's data directory, in bytes.
type DiskLoad struct {
	LogBytes     uint64 `json:"logBytes"`
	StateBytes   uint64 `json:"stateBytes"`
	FreeBytes    uint64 `json:"freeBytes"`
	ReserveBytes uint64 `json:"reserveBytes"`
	// Full is set while changes are refused because less than the reserve is free.
	Full bool `json:"full"`
}

// SessionLoad counts the sessions of the workspaces that the node owns.
type SessionLoad struct {
	Created uint64 `json:"created"`
	Running uint64 `json:"running"`
	Waiting uint64 `json:"waiting"`
	// OldestCreatedSeconds is the age of the oldest session that is created; null if there
	// is none.
	OldestCreatedSeconds *int64 `json:"oldestCreatedSeconds"`
}

// opNodeLoad is carried out by the node that the path names; any node forwards to it.
var opNodeLoad = localOp[nodeIn, NodeLoad]("NodeLoad", "Show the load of a node", tracker.Query, tracker.Refuses(tracker.CodeNotFound))

// load counts the requests of a server.
type load struct {
	began                                    time.Time
	answered, forwarded, unavailable, failed atomic.Uint64
	reads, writes                            atomic.Uint64
	images                                   atomic.Uint64 // of shards, for backups: reads that are not among reads
	busiest                                  *busiest
}

func newLoad(now time.Time) *load { return &load{began: now, busiest: newBusiest(now)} }

// admitted counts a request that is carried out here: reads says that it changes nothing.
// Workspaces are counted for callers
// with a credential alone: anybody can write ids that no workspace has.
func (l *load) admitted(x *exchange, req *tracker.Request, reads bool) {
	switch {
	case x.route.image:
		l.images.Add(1)
	case reads:
		l.reads.Add(1)
	default:
		l.writes.Add(1)
	}
	if req.Workspace != ([16]byte{}) && x.route.Op.Needs.Level != tracker.Public && !x.route.here {
		l.busiest.count(req.Workspace, !reads, x.start)
		x.counted = req.Workspace
	}
}

// took notes how long a request took that was carried out here.
func (l *load) took(x *exchange, now time.Time) {
	if x.counted == ([16]byte{}) || x.waited || x.streams() {
		return
	}
	l.busiest.took(x.counted, now.Sub(x.start)-x.arrival, now)
}

// Requests returns the number of requests that were carried out here, those that other nodes
// forwarded included. Images of shards for backups do not count: a backup must not take its own
// requests for the work of the node.
func (s *Server) Requests() uint64 { return s.load.reads.Load() + s.load.writes.Load() }

// answer counts an answer to a client.
func (l *load) answer(x *exchange) {
	if x.conn != nil && x.conn.peer {
		return
	}
	l.answered.Add(1)
	switch status := x.ctx.Response.StatusCode(); {
	case status == http.StatusServiceUnavailable:
		l.unavailable.Add(1)
	case status >= http.StatusInternalServerError:
		l.failed.Add(1)
	}
}

// fillLoad adds the counters of the server.
func (s *Server) fillLoad(of *NodeLoad) {
	now, l := s.now(), s.load
	of.StartedAt, of.UptimeMs = tracker.At(l.began), now.Sub(l.began).Milliseconds()
	of.Requests = RequestLoad{
		Connections: int64(s.connections()), Answered: l.answered.Load(), Reads: l.reads.Load() + l.images.Load(), Writes: l.writes.Load(),
		Forwarded: l.forwarded.Load(), Unavailable: l.unavailable.Load(), Failed: l.failed.Load(),
	}
	var within time.Duration
	of.Busiest, within = l.busiest.list(now)
	of.BusiestMs = within.Milliseconds()
}

// loadRun answers for this node.
func (s *Server) loadRun(c Cluster) localRun {
	return func(ctx context.Context, _ *tracker.Request, in any) (tracker.Outcome, any, error) {
		of, err := c.Load(ctx, in.(*nodeIn).Name)
		if err != nil {
			return tracker.Done, nil, err
		}
		s.fillLoad(&of)
		return tracker.Done, of, nil
	}
}

// nodeTries bounds the tries to have a node answer: a connection that was idle may have
// been closed by it.
const nodeTries = 3

// askNode has the node answer that the request names. done is false if it is this node, or
// if there is no such node, which this one then says to the operator.
func (s *Server) askNode(x *exchange) (done bool, err error) {
	name := x.values[0]
	if s.cfg.Placement == nil || x.conn != nil && x.conn.peer || !s.cfg.Cluster.Elsewhere(name) {
		return false, nil
	}
	t := s.forwardings.Get().(*forwarding)
	defer t.reset()
	t.server, t.x, t.pause = s, x, retryFirst
	for try := 1; ; try++ {
		if t.send(name) {
			return true, nil
		}
		if t.final != nil {
			return true, t.final
		}
		if !t.again || try == nodeTries {
			return true, tracker.NotApplied(fmt.Sprintf("The node %q can't be reached.", name))
		}
		t.again = false
	}
}
