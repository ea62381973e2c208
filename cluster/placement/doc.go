// Package placement decides which nodes hold and lead which shards. Plan is a pure function of the
// members and of the reports of the groups' leaders. It keeps nothing about moves under way: every round
// is planned from the reports alone, so that the next owner of the directory continues or undoes a
// half-done move. A move of a replica is
//
//	add a non-voter -> it catches up -> promote -> remove the surplus voter
//
// and each round takes at most one of these steps per shard.
//
//   - plan.go: State, the input; Step, the output; Plan and the planner's state
//   - target.go: the nodes that are to hold each shard
//   - repair.go: steps towards the targets
//   - balance.go: moves that spread replicas over zones and nodes
//   - leaders.go: transfers of leaderships
//   - orphan.go: replicas that their group does not count
//   - lost.go: replicas that count for nothing on nodes that answer, and nodes that no group counts
//   - report.go: what a node reports about its groups
//   - status.go, topology.go: the status of the cluster, from the same input
//
// The package has no goroutines, no clock and no network: package cluster's rebalancer owns the loop,
// collects the reports and carries the steps out. The simulation in sim_test.go runs Plan against random
// histories of failures.
package placement
