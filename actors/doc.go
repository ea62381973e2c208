// Package actors is the runtime between the HTTP server and replication. It identifies
// callers, and runs queries on the caller's goroutine, commands on the actor of their
// workspace, and workflows step by step.
//
// The operations and their rules are in package tracker. An implementation of Replicator
// replicates the batches. HTTP is in package httpapi, and webhook deliveries are made by
// package delivery, which the engine gives its rows, its actors and its goroutines' count
// (deliveries.go).
//
// # The life of a command
//
//	caller's goroutine            workspace's actor              replicator
//	------------------            -----------------              ----------
//	Admit: caller and rights
//	Do: count it in  --call-->    first of a batch? send
//	    (or 503)                  flush to itself
//	                              WriteBuffer.Run: write to the
//	                              open batch, or roll back
//	                              ... other commands of the
//	                              mailbox ...
//	                              flush: run waiting claims for
//	                              what the batch brings
//	                              Seal  ------Propose------->    log, quorum,
//	                              later commands wait and        apply
//	                              form the next batch
//	                              COMMIT POINT     <---done---
//	                              drop cached callers, wake
//	                              timers
//	<------- answer --------      every command of the batch
//	                              wake waiting requests,
//	                              followers of events and the
//	                              dispatcher
//	read barrier, if nothing
//	was committed for it
//
// A caller whose deadline has passed withdraws its command if the actor has not started
// it: then nothing was changed. Otherwise the caller leaves, and the outcome is unknown; a
// repeat with the same Idempotency-Key finds it.
//
// If the outcome of a batch is unknown, the actor drops everything that it has read, and
// continues only after an empty batch behind it was applied: batches are applied in order.
//
// # Who owns which goroutine
//
//   - A workspace's actor runs on one goroutine at a time, of those that the engine keeps (workers).
//     It exists while this node owns its shard and it was used in the last minute. It
//     is stopped only while its passivationLatch is shut, so no command is lost.
//   - The Engine owns the sweeper, which stops idle actors, and ends it in Close.
//   - Each owned shard has a scheduler with one goroutine for its loop and at most
//     Limits.Timers for the operations it runs. Lost and Close end them.
//   - Each owned shard has a dispatcher of webhook deliveries, whose goroutines package
//     delivery owns. Lost and Close end them.
//   - Queries and workflows run on their caller's goroutine. A waiting one blocks it
//     (Do), or releases it and is resumed on another (Begin).
//   - The filter sets of a workspace are built on a goroutine of their own, which Close
//     ends (listSets), and so are the pairs of terms of titles (title_pairs.go).
//   - The followers of a workspace's events are served in rounds, one at a time, each on
//     a goroutine of its own; between rounds there is none (feed).
//
// # Locks
//
// No goroutine waits while it holds a mutex. shard.mu guards the handles of a shard; each
// stripe of the waiters and of the feeds has a mutex of its own, and so has listSets.
// Everything else that goroutines share is atomic: latches, counters, access generations,
// cached callers. Lists hold the lock of a workspace's filter sets while they
// select; the workspace's actor never waits for it.
package actors
