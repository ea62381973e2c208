// Package bench measures a node from outside, as its clients see it, and beside
// it, in the same run on the same machine, the limits it is judged by: an HTTP
// server that does nothing, and a disk that only syncs. A figure without its limit
// says more about the machine than about Switchyard.
//
// What lives here: the load generator, the scenarios (one file each), the
// baselines, the report and the comparison of two reports. What does not: flags
// and printing to a terminal's liking (cmd/switchyard), and anything of the
// service's inside: bench speaks HTTP.
//
// Load comes in two ways. Closed: every connection sends its next request when the
// last is answered, which finds the highest rate. Open: requests have their
// intended times, whatever the server does, and their latency counts from then, so
// a stall is felt by all who would have come during it. Webhooks are received within
// the generator's process, whose clock then times both ends of a delivery.
//
// A scale run measures clusters instead of a node, each node held to a share of a core
// by a cgroup, so that one machine shows what several would.
//
// Every goroutine belongs to the call that started it and ends before that call
// returns; processes it starts end with Run.
package bench
