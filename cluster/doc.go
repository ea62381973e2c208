// Package cluster replicates opaque Pebble batches. Each shard is one Raft group; shard 0, the
// directory, stands beside the workspace shards. A node alone is a cluster of one and takes the same
// path as many. The package does not know the meaning of a batch.
//
// # Map
//
//   - node.go, operate.go, config.go, inspect.go: the API of a node
//   - group.go, lead.go, handover.go, replica*.go: one shard on this node
//   - committer.go, entry.go, fsm.go, position.go, install*.go: from batches to entries to the state
//   - lease*.go, tracking_transport.go, leader_watchdog.go, relax.go, quiet.go: proof and watch of leadership
//   - compactor.go, flusher.go: short logs
//   - peering.go, bootstrap*.go, registry*.go, heartbeat.go, shardmap.go: this node among the others
//   - peer*.go, rpc.go: the peer port
//   - shard_transport.go, link.go, group_*.go, entries_*.go: Raft's messages between nodes
//   - rebalancer*.go, report*.go, placement_rpc.go, status_collector.go: placement at work
//
// Below it, and importing nothing above themselves:
//
//   - raftstore: the log, the term and vote, and the snapshots of a group, in Pebble
//   - membership: the list of the cluster's nodes and the rules of joining
//   - gossip: which processes run now, and at which addresses
//   - placement: pure planning of replicas and leaderships
//   - topology: the status of the cluster, as data that httpapi sends
//
// The peer port and the groups stay here: streams, handshakes and control requests refer to the node's
// identity, shard map and errors, and the group's parts to each other, so that a package of their own
// would export most of them.
//
// # The life of a proposal
//
// Propose queues a batch with its shard's committer. The committer merges the batches that wait into one
// entry {epoch, batch} and hands it to Raft, a few entries at a time. When a quorum has the entry on
// disk, the state machine writes its operations together with the applied position in one Pebble batch;
// then the proposals' callbacks are called. The state instance has no write-ahead log: after a crash it
// is at some earlier position, and the Raft log brings the rest.
//
// # The life of an ownership
//
// A group that gains leadership commits Claim{epoch = term, node}. From there on the state machine of
// every replica refuses entries of any other epoch, so a deposed owner's late batch can't be applied.
// The new owner waits until a lease of its predecessor has expired, unless there can be none, and then
// calls the Watcher. A closing node stops answering, commits Release, and so lets its successor skip the
// wait. A node that transfers a leadership does the same; if the transfer fails, it serves on in a new
// epoch, since actors of the old epoch may not know yet that it has ended.
//
// A read lease counts from the moment at which the messages were sent that a quorum of voters answered.
// The tracking transport, between a group and its transport, records these moments.
//
// # The life of a snapshot
//
// A snapshot of this node's own state is one row: the position up to which the flushed state has the
// log. The log before it may be truncated. When a follower needs truncated entries, its leader copies
// the shard's rows from one moment of the state and streams them; the follower replaces its own rows at
// once, and a crash at any step is repaired at the next start (see install.go). The copy may be ahead of
// the snapshot's index: the entries between come again and are skipped. During a stream, and for a while
// after, the leader truncates that shard's log only if it grows large.
//
// # The life of a replica
//
// The owner of the directory plans once a second, more often while replicas move: the rebalancer
// collects every member's reports, placement.Plan turns them into steps, and the steps go to the shards'
// leaders. Moves under way are not stored: the groups' members show how far a move is, so the next owner
// of the directory continues it. A replica is created empty, added as a non-voter and promoted when it
// has caught up; then the voter that it replaces is removed. A shard has three replicas once the cluster
// has had three members (Decision 53). It shrinks when a member is removed and no node can take its
// place, never because a node is dead or drains. A replica that its group does not count is dropped after
// a while.
//
// # The nodes of a cluster
//
// Three parts know of nodes. The identity is fixed for a data directory: name, instance, cluster. The
// registry lists the members: rows of the directory shard that only its owner writes. Each node keeps
// the newest list that it has received, so that it finds the others after a restart. Gossip shows which
// processes run now and at which addresses; it makes no node a member.
//
// A node with empty data and no --join forms a cluster at once. With --join it waits until gossip shows
// a node of a cluster and asks that node to be added; the registry has its row before the node learns
// the cluster's id. With --bootstrap-expect, as many empty nodes as expected let the one with the lowest
// name form a cluster, once each of them has voted for it (Decision 52). A name stays with its instance
// until an operator removes the node, and after that until no group has it as a member: Raft knows
// voters by name, and an empty disk under the name of an earlier voter would not know that voter's votes.
//
// # Goroutines
//
// Owned by a group, one set per shard: Raft's own; lead (group.lead), which alone claims, releases and
// calls the Watcher; the committer's submit and awaitEntries, which call the proposals' callbacks;
// trackingTransport.relayRequests, which passes other members' requests to Raft; pipeline.relay, one per
// follower; and at most one round of the lease. group.stop ends them and, where the replica is dropped or
// opened again, group.end.
//
// Owned by the node: the compactor, which snapshots and truncates logs, with one goroutine for each
// snapshot; and, unless the node is alone, the leader watchdog, which makes followers check a silent
// leader, and idle leaders send their heartbeats, with the steps that it takes for quiet groups
// (quiet.go), one at a time for each.
//
// Owned by the peering: gossip's (see package gossip); registry.keepRegistered, which keeps the node's
// row in the registry; bootstrap.check, once per start; the peer port's, one that accepts and one per
// connection until its handler takes over; the heartbeat's loop and one exchange per other node at a
// time; and, while the node owns the directory, the rebalancer's loop with the requests of one round.
//
// Node.Close ends all of them.
//
// # Between nodes
//
// The peer port carries Raft's streams of all groups, forwarded HTTP requests and control requests; a
// connection's first byte tells its kind. Every node sends every other node a heartbeat twice a second
// with the shards that it owns. The shard map is the result, and every request reads it.
package cluster
