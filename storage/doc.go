// Package storage keeps Switchyard's data on one node's disk, in two Pebble
// instances: "raft" holds the replication logs of every shard and is synced on
// every write; "state" holds what the logs amount to and has no write-ahead
// log of its own, because the replication log is its write-ahead log.
//
// The package has the key layout, records (a small header in front of the
// JSON a client gets), Table and Index declarations with their maintenance,
// the View that reads and the Tx that also writes, ordered list queries, and
// the verifier. It knows nothing of issues, leaders or HTTP.
//
// A Store that is watched owns one goroutine, which measures the free space of
// its disk; Pebble's belong to the Store as well. All end with Store.Close.
package storage
