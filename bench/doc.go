// Package bench measures a node from outside, as its clients see it, and beside
// it, in the same run on the same machine, the limits it is judged by: an HTTP
// server that does nothing, and a disk that only syncs. A figure without its limit
// says more about the machine than about Switchyard.
//
// The package has the load generator, the scenarios (one file each), the baselines, the
// report and the comparison of two reports. Flags and the output for terminals are in
// cmd/switchyard. Bench uses nothing of the service's inside: it speaks HTTP.
//
// Load comes in two ways. Closed: every connection sends its next request when the
// last is answered, which finds the highest rate. Open: requests are sent at intended
// times that don't depend on the server, and latency counts from these, so that a stall
// counts for every request that was due during it. Webhooks are received within the
// generator's process, so that one clock measures both ends of a delivery.
//
// A scale run measures clusters instead of a node, each node held to a share of a core
// by a cgroup, so that one machine stands for several.
//
// Every goroutine belongs to the call that started it and ends before that call
// returns; processes it starts end with Run.
package bench
