// Package processors knows how many processors the process may use, and how many
// goroutines Go runs at once.
//
// Go runs as many goroutines at once as there are processors. In a node that is busy on
// all of them that costs more than it seems. A goroutine that waits for the disk keeps its
// place until Go's monitor takes it away. And while all places are taken by goroutines that
// compute, such as compactions, Go asks the network for new requests every 10 ms only. With
// a few more places than processors the kernel decides who runs, and a request that comes in
// goes before a goroutine that has computed for long.
//
// Bounds on work that computes are by Count, not by runtime.GOMAXPROCS.
package processors

import "runtime"

// count is read before anything changes it.
var count = runtime.GOMAXPROCS(0)

// Count returns the number of processors that the process may use: that of the machine, the
// limit of its cgroup, or GOMAXPROCS in the environment.
func Count() int { return count }

// spare is the number of goroutines that run at once beside one for each processor.
const spare = 6

// Oversubscribe makes Go run a few more goroutines at once than there are processors. From
// then on Go follows no changes of the cgroup's limit.
func Oversubscribe() { runtime.GOMAXPROCS(count + spare) }
