// Package node assembles one Switchyard node: it is the only place where the
// implementations of storage, replication, actors and HTTP meet.
//
// Order of life: the store is opened, the shard groups are made over it, the
// engine over both, then the groups start and tell the engine which shards this
// node owns, and last the listeners open. Stop runs the same way back: HTTP
// finishes what is in flight, the engine stops its actors, the groups hand over
// and flush, the store closes.
//
// The operator's settings of the cluster are checked here before anything is opened
// (config_cluster.go, tls.go), and httpapi's questions about the cluster are answered
// here from package cluster (operator.go).
//
// The package makes no decision about requests, data or shards. The node owns two
// goroutines, one per listener; both end with Stop.
package node
