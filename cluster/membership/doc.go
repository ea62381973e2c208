// Package membership is the list of a cluster's nodes and the rules that change it.
//
//   - list.go: Record and List, their checks, and their rows in the directory shard
//   - list_rules.go: joining, registering, draining and removing; the refusals with their reasons
//   - name.go: valid names of nodes
//   - state.go: the states of a node that gossip and placement use
//
// Package cluster's registry decides when the list changes and sends it to other nodes; package gossip
// knows which nodes run now.
//
// The package has no goroutines and no clock: time and the state of other nodes are parameters.
package membership
