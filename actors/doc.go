// Package actors is the runtime between the HTTP side and replication: it finds
// out who asks, runs queries where they are asked, commands on the actor of their
// workspace, and workflows as their steps.
//
// What does not live here: the operations and their rules (package tracker), how
// a batch gets replicated (whatever implements Replicator), and HTTP.
//
// # The life of a command
//
//	caller's goroutine            workspace's actor              replicator
//	------------------            -----------------              ----------
//	Admit: who, and may they
//	Do: count it in  --call-->    first of a batch? send
//	    (or 503)                  flush to itself
//	                              Ledger.Run: into the open
//	                              batch, or nothing of it
//	                              ... what else the mailbox
//	                              holds by now ...
//	                              flush: Seal  ---Propose--->    log, quorum,
//	                              what comes now waits, and      apply
//	                              forms the next batch
//	                              COMMIT POINT     <---done---
//	                              forget callers, wake timers
//	<------- answer --------      every command of the batch
//	                              wake whoever waits for what
//	                              happened, follows events, or
//	                              has them delivered
//	read barrier, if nothing
//	was committed for it
//
// A caller that has waited until its deadline withdraws a command the actor has
// not taken up (then nothing was changed) and leaves one it has (then nobody
// knows, and Idempotency-Key tells).
//
// If a batch's fate is unknown the actor forgets what it read and goes on only
// after an empty batch behind it was applied, since batches are applied in order.
//
// # Who owns which goroutine
//
//   - A workspace's actor runs on goroutines of the actor library, one at a time.
//     It exists while its shard is owned and it has been used in the last minute,
//     and is stopped from inside its gate only (see gate), so no command gets lost.
//   - The Engine owns the sweeper, which stops idle actors, and ends it in Close.
//   - Each owned shard has a scheduler with one goroutine for its loop and at most
//     Limits.Timers for the operations it runs. Lost and Close end them.
//   - So has each a dispatcher of webhook deliveries: one goroutine for its loop, at
//     most Limits.Deliveries for its lanes, and while there is something to record one
//     for each workspace's recorder.
//   - Queries and workflows run on their caller's goroutine. One that waits sleeps on
//     it (Do), or gives it back and is resumed on another (Begin).
//   - Whoever follows a workspace's events is served in rounds, one at a time, each on a
//     goroutine of its own; between them there is none (feed).
//
// # Locks
//
// shard.mu guards the handles of a shard; nothing waits while it is held. So it is with
// the mutexes of each part of the waiters and of the feeds, under which only notes are
// passed. All else shared is atomic: gates, counters, access generations, remembered
// callers. A dispatcher's news and a recorder's outcomes are each behind a mutex of
// their own, under which nothing waits either.
package actors
