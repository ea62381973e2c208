// Package gossip finds the running nodes of a cluster with memberlist. It makes no node a member, see
// package membership.
//
//   - gossip.go: Gossip, its start and end
//   - state.go: the processes that memberlist reports, and the metadata that they spread
//   - status.go: the state of each member, from gossip and the peer port together
//   - contact.go: contacting addresses, of --join and of missing members
//   - address.go: the addresses to listen at and to advertise
//   - transport.go: bounds on the connections of others
//
// A process is name/instance/start to memberlist: a restarted node is another process, so that its
// messages count at once, from whatever address.
//
// # Goroutines
//
// Gossip.Run starts one goroutine, maintain, which contacts missing members and updates the states;
// Contact runs one per address and waits for them. The transport has one, pass, which hands
// connections to memberlist. Memberlist has its own; they call gossipState while
// holding memberlist's lock, so gossipState only records. Close and Shutdown end all of them.
package gossip
