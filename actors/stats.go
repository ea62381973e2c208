package actors

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"switchyard/actors/delivery"
	"switchyard/actors/tracker"
)

// counters are the counters of the engine since its start.
type counters struct {
	queries, commands, workflows, panics, remote atomic.Uint64
	// Proposed batches, with their commands, keys and bytes.
	batches, batchCommands, batchOps, batchBytes atomic.Uint64
	callersFound, callersResolved                atomic.Uint64
	timers, timersFailed, timerRows              atomic.Uint64
	refused                                      [refusals]atomic.Uint64
	filtered                                     atomic.Uint64 // lists
	sets                                         [setsOutcomes]atomic.Uint64
	lapses, deadLetters                          atomic.Uint64
}

// The results of building filter sets.
const (
	setsBuilt = iota
	setsNoRoom
	setsFailed
	setsOutcomes
)

var setsNames = [setsOutcomes]string{"built", "no_room", "failed"}

// The reasons for UNAVAILABLE answers.
const (
	refusedWorkspaceFull = iota
	refusedShardFull
	refusedEngineFull
	refusedActors
	refusedNotOwner
	refusedBarrier
	refusedReplicator
	refusedLate
	refusedDiskFull
	refusedListeners
	refusedExports
	refusals
)

var refusalNames = [refusals]string{
	"workspace_full", "shard_full", "node_full", "actors_full",
	"not_owner", "no_read_barrier", "not_replicated", "deadline", "disk_full", "listeners_full", "exports_full",
}

// Counts are the values of the counters at one time.
type Counts struct {
	Queries, Commands, Workflows, Remote, Panics uint64
	Batches, BatchCommands, BatchOps, BatchBytes uint64
	CallersFound, CallersResolved                uint64
	Timers, TimersFailed, TimerRows              uint64
	Refused                                      map[string]uint64
	Deliveries                                   delivery.Counts
	ActiveActors, UnansweredCommands, Waiting    int64
	Listening                                    int64
	// Lists that were filtered with sets, how building them ended, how many workspaces
	// have some, and their bytes.
	Filtered              uint64
	SetsBuilds            map[string]uint64
	ListSets, ListSetsMem int64
	ChangeBytes           int64 // of memory for large changes
}

// Stats returns the values of the engine's counters.
func (e *Engine) Stats() Counts {
	s := &e.stats
	c := Counts{
		Queries: s.queries.Load(), Commands: s.commands.Load(), Workflows: s.workflows.Load(), Remote: s.remote.Load(), Panics: s.panics.Load(),
		Batches: s.batches.Load(), BatchCommands: s.batchCommands.Load(), BatchOps: s.batchOps.Load(), BatchBytes: s.batchBytes.Load(),
		CallersFound: s.callersFound.Load(), CallersResolved: s.callersResolved.Load(),
		Timers: s.timers.Load(), TimersFailed: s.timersFailed.Load(), TimerRows: s.timerRows.Load(),
		Refused: map[string]uint64{}, Deliveries: e.deliveries.Counts(),
		ActiveActors: e.active.Load(), UnansweredCommands: e.commands.Load(), Waiting: e.waits.count.Load(),
		Listening: e.feeds.listeners.Load(),
		Filtered:  s.filtered.Load(), SetsBuilds: map[string]uint64{}, ListSets: e.lists.built.Load(), ListSetsMem: e.lists.bytes.Load(),
		ChangeBytes: e.changes.used.Load(),
	}
	for i, name := range setsNames {
		c.SetsBuilds[name] = s.sets[i].Load()
	}
	for i, name := range refusalNames {
		c.Refused[name] = s.refused[i].Load()
	}
	return c
}

// Collector returns the engine's counters as metrics.
func (e *Engine) Collector() prometheus.Collector { return collector{e} }

type collector struct{ engine *Engine }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("switchyard_"+name, help, labels, nil)
}

var (
	commandsDesc      = describe("commands_total", "Commands begun, with those in workflows.")
	queriesDesc       = describe("queries_total", "Queries begun, with those in workflows.")
	workflowsDesc     = describe("workflows_total", "Workflows begun.")
	remoteDesc        = describe("remote_steps_total", "Steps that other nodes were asked to carry out.")
	panicsDesc        = describe("panics_total", "Operations and actors that panicked.")
	batchesDesc       = describe("batches_total", "Batches proposed for replication.")
	batchCommandsDesc = describe("batch_commands_total", "Commands in proposed batches.")
	batchOpsDesc      = describe("batch_ops_total", "Keys written by proposed batches.")
	batchBytesDesc    = describe("batch_bytes_total", "Bytes of proposed batches.")
	callersDesc       = describe("callers_total", "Callers identified, by whether they were remembered.", "remembered")
	timersDesc        = describe("timers_total", "Timers run.")
	timersFailedDesc  = describe("timers_failed_total", "Timers whose operation failed and is tried again.")
	timerRowsDesc     = describe("timer_rows_read_total", "Entries of due timers read to find those to run.")
	refusedDesc       = describe("refused_total", "Requests answered as unavailable, by reason.", "reason")
	deliveriesDesc    = describe("webhook_deliveries_total", "Tries of webhook deliveries, by outcome; dropped ones ended without a try.", "outcome")
	heldDesc          = describe("webhook_deliveries_held_total", "Times that a webhook delivery had to wait for the rate of its workspace or host.")
	recordsDesc       = describe("webhook_records_total", "Commands that recorded outcomes of webhook deliveries.")
	recordsFailedDesc = describe("webhook_records_failed_total", "Commands that failed to record outcomes of webhook deliveries, and are tried again.")
	deliveringDesc    = describe("webhook_deliveries_in_flight", "Webhook deliveries being made.")
	deliveryBytesDesc = describe("webhook_deliveries_bytes", "Bytes of memory that webhook deliveries take while they are made.")
	deliveryWaitsDesc = describe("webhook_deliveries_waiting_workspaces", "Workspaces with webhook deliveries that wait for memory of the node.")
	actorsDesc        = describe("active_actors", "Workspaces that are active.")
	waitingDesc       = describe("waiting_requests", "Requests that wait for something to happen.")
	listeningDesc     = describe("event_listeners", "Streams of events.")
	filteredDesc      = describe("filtered_lists_total", "Lists of issues that were filtered with sets kept in memory.")
	setsBuildsDesc    = describe("list_sets_builds_total", "Times that such sets of a workspace were built, by outcome.", "outcome")
	listSetsDesc      = describe("list_sets", "Workspaces that have such sets.")
	listSetsMemDesc   = describe("list_sets_bytes", "Bytes of such sets.")
	changeBytesDesc   = describe("change_bytes", "Bytes of memory that large changes take until they are committed.")
	unansweredDesc    = describe("unanswered_commands", "Commands that wait for their answer.")
)

func (c collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

func (c collector) Collect(ch chan<- prometheus.Metric) {
	s := c.engine.Stats()
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	count(commandsDesc, s.Commands)
	count(queriesDesc, s.Queries)
	count(workflowsDesc, s.Workflows)
	count(remoteDesc, s.Remote)
	count(panicsDesc, s.Panics)
	count(batchesDesc, s.Batches)
	count(batchCommandsDesc, s.BatchCommands)
	count(batchOpsDesc, s.BatchOps)
	count(batchBytesDesc, s.BatchBytes)
	count(callersDesc, s.CallersFound, "yes")
	count(callersDesc, s.CallersResolved, "no")
	count(timersDesc, s.Timers)
	count(timersFailedDesc, s.TimersFailed)
	count(timerRowsDesc, s.TimerRows)
	for reason, n := range s.Refused {
		count(refusedDesc, n, reason)
	}
	for outcome, n := range s.Deliveries.Outcomes {
		count(deliveriesDesc, n, outcome)
	}
	count(heldDesc, s.Deliveries.Held)
	count(recordsDesc, s.Deliveries.Records)
	count(recordsFailedDesc, s.Deliveries.RecordsFailed)
	ch <- prometheus.MustNewConstMetric(deliveringDesc, prometheus.GaugeValue, float64(s.Deliveries.InFlight))
	ch <- prometheus.MustNewConstMetric(deliveryBytesDesc, prometheus.GaugeValue, float64(s.Deliveries.Bytes))
	ch <- prometheus.MustNewConstMetric(deliveryWaitsDesc, prometheus.GaugeValue, float64(s.Deliveries.Waiting))
	ch <- prometheus.MustNewConstMetric(actorsDesc, prometheus.GaugeValue, float64(s.ActiveActors))
	ch <- prometheus.MustNewConstMetric(waitingDesc, prometheus.GaugeValue, float64(s.Waiting))
	ch <- prometheus.MustNewConstMetric(listeningDesc, prometheus.GaugeValue, float64(s.Listening))
	count(filteredDesc, s.Filtered)
	for outcome, n := range s.SetsBuilds {
		count(setsBuildsDesc, n, outcome)
	}
	ch <- prometheus.MustNewConstMetric(listSetsDesc, prometheus.GaugeValue, float64(s.ListSets))
	ch <- prometheus.MustNewConstMetric(listSetsMemDesc, prometheus.GaugeValue, float64(s.ListSetsMem))
	ch <- prometheus.MustNewConstMetric(changeBytesDesc, prometheus.GaugeValue, float64(s.ChangeBytes))
	ch <- prometheus.MustNewConstMetric(unansweredDesc, prometheus.GaugeValue, float64(s.UnansweredCommands))
	c.collectSessions(ch)
}

// Tails returns the memory used for issues that no search index has yet.
func (e *Engine) Tails() tracker.TailsUse { return e.tails.Use() }
