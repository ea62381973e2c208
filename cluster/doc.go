// Package cluster replicates opaque Pebble batches: one Raft group per shard,
// shard 0 (the directory) beside the workspace shards. A node alone is a
// cluster of one and takes the same path as many.
//
// What lives here: the groups, the log and snapshot stores they share in the
// node's raft instance, the state machine that writes batches into the state
// instance, the committer that merges waiting batches into entries, the epoch
// claim and its fence, and the read lease. What does not: anything that knows
// what a batch means.
//
// # The life of a proposal
//
// Propose queues a batch with its shard's committer. The committer merges what
// waits into one entry {epoch, batch} and hands it to Raft, a few entries at a
// time. When a quorum has the entry on disk, the state machine writes its
// operations together with the applied position in one Pebble batch; then the
// proposals' callbacks are told. The state instance has no write-ahead log: after
// a crash it stands at some earlier position, and the Raft log brings the rest.
//
// # The life of an ownership
//
// A group that gains leadership commits Claim{epoch = term, node}. Entries of any
// other epoch are refused by the state machine from there on, on every replica, so a
// deposed owner's late batch cannot land. The new owner then waits out the lease
// a predecessor may still hold, unless there can be none, and only then is the
// Watcher told. A closing node stops answering, commits Release, and leaves a
// log end that lets its successor skip the wait.
//
// # The life of a replica
//
// The owner of the directory looks once a second, more often while something moves:
// the mover gathers every member's groupReports, plan turns them into steps, and
// the steps go to the shards' leaders. Nothing is remembered of a move under way;
// the groups' members say how far it is, so that another owner carries on with it.
// A replica is hosted empty, added as a non-voter, promoted when it has caught up,
// and the voter in whose place it came is removed then. A shard has three replicas
// once the cluster has had three members (Decision 53). It shrinks when a member is
// removed and nobody takes its place, never because one is dead or drains. A replica
// whose group does not count it is dropped after a while.
//
// # Goroutines
//
// Per shard: Raft's own; lead (group.lead), the only one that claims, releases
// and calls the Watcher; the committer's two, submit and settle, which call the
// proposals' callbacks; and at most one lease round at a time, run on demand. Per
// node: the compactor, which snapshots and truncates logs. All of them end with
// Node.Close.
//
// # Between nodes
//
// The peer port (peers) carries Raft's streams of all groups, forwarded HTTP
// requests and control requests, told apart by a connection's first byte. It owns a
// goroutine that accepts, and one per accepted control connection. The pulse asks
// every other node twice a second whether it is there and what it owns, one question
// per node at a time; the shard map is what came of it, read by every request.
//
// Node.Close. While the node owns the directory: the mover's loop, which asks and
// acts through goroutines of one round, waited for at its end; mover.close ends it.
package cluster
