// Package raftstore stores what Raft needs of each group, in the node's raft instance, which all groups
// share: one fsync serves all shards that write at the same moment.
//
//   - key.go: the keys of the raft instance, also those of rows that package cluster writes
//   - log.go, log_codec.go: LogStore, the entries of a group's log
//   - stable.go: StableStore, a group's term and vote
//   - snapshot.go, snapshot_sink.go: SnapshotStore, the newest snapshot of a group, and its streams
//   - snapshot_install.go: the mark of an install, and its repair after a crash
//
// The state itself is in the other Pebble instance, which the state machine of package cluster writes.
//
// # Goroutines
//
// The stores run on their callers' goroutines: Raft's, and those of package cluster. A stream to a follower
// has one goroutine of its own, owned by the stream, which waits for the group's end; closing the stream
// ends it.
package raftstore
