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
// log end that lets its successor skip the wait. So does one that hands over; when
// that fails it serves on in a new epoch, since who proposed in the old one may not
// have heard yet that it ended.
//
// A read lease counts from when the messages were sent that a quorum of voters
// answered, which the tracking transport between a group and its transport keeps note of.
//
// # The life of a snapshot
//
// A snapshot of this node's own is only a row: up to where the flushed state has
// the log, which may be truncated before it. When a follower needs what was
// truncated, its leader copies the shard's rows from one moment of the state and
// streams them; the follower puts them in the place of its own at once, crash-safe
// at every step (see install.go). The copy may be ahead of the snapshot's index:
// the entries between come again and are skipped. While a stream goes on, and for
// a while after, its leader truncates that shard's log only when it grows far.
//
// # The life of a replica
//
// The owner of the directory looks once a second, more often while something moves:
// the rebalancer gathers every member's groupReports, plan turns them into steps, and
// the steps go to the shards' leaders. Nothing is remembered of a move under way;
// the groups' members say how far it is, so that another owner carries on with it.
// A replica is hosted empty, added as a non-voter, promoted when it has caught up,
// and the voter in whose place it came is removed then. A shard has three replicas
// once the cluster has had three members (Decision 53). It shrinks when a member is
// removed and nobody takes its place, never because one is dead or drains. A replica
// whose group does not count it is dropped after a while.
//
// # Who belongs to the cluster
//
// Three things know of nodes, each its own. The identity is what this data directory
// is for good: name, instance, cluster. The registry, rows of the directory's shard
// that only its owner writes, is who belongs to the cluster; each node keeps the
// newest copy it heard of, so that it finds the others after a restart. Members,
// memberlist's gossip, is who is there right now and at which addresses; it makes
// nobody a member.
//
// A node with empty data and no --join forms a cluster at once. With --join it waits
// until gossip shows a node of a cluster, and asks that one to be taken in; the registry
// has its row before it learns the cluster's id. With --bootstrap-expect as many
// empty nodes as expected have the one with the lowest name form a cluster, once each
// of them has voted for it (Decision 52). A name is bound to its instance
// until an operator removes the node, and then until no group has it as a member: Raft
// knows voters by name, and an empty disk under the name of one would forget its votes.
//
// To memberlist a process is name/instance/start: a restart is another member, heard
// at once, wherever it listens.
//
// # Goroutines
//
// Per shard: Raft's own; lead (group.lead), the only one that claims, releases
// and calls the Watcher; the committer's two, submit and settle, which call the
// proposals' callbacks; trackingTransport.relayRequests, which passes on what other members send; and
// at most one lease round at a time, run on demand. Per node: the compactor, which
// snapshots and truncates logs; the leaderWatchdog, unless the node is alone, which has
// followers notice a silent leader; gossip.maintain, which
// reaches for members that are gone; registry.keepRegistered, which keeps the node's own row
// in the registry; memberlist's own, whose callbacks only note what they hear; the
// peer port's, one that accepts and one per control connection; the heartbeat's, one
// question per other node at a time; and, while the node owns the directory, the
// rebalancer's loop, which asks and acts through goroutines of one round. All of them end
// with Node.Close.
//
// # Between nodes
//
// The peer port (peers) carries Raft's streams of all groups, forwarded HTTP
// requests and control requests, told apart by a connection's first byte. The heartbeat
// asks every other node twice a second whether it is there and what it owns; the shard
// map is what came of it, read by every request.
package cluster
