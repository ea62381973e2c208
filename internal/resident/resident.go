// Package resident gives memory that the process does not need at the moment back to the
// kernel: free memory of Go's heap, and pages of the program's file.
//
// Starting touches most of the program, some 40 MB: it declares the operations, compiles
// their forms and the description of the API, and opens the stores. An idle node needs a
// quarter of that. The kernel keeps what was touched once among the memory of the process,
// and gives it up later than other pages of files. Pages that are given back come from the
// kernel's cache of files when they are needed again.
//
// The package has no goroutines. processors decides when the process is idle.
package resident

import "runtime/debug"

// Release gives back what it can. It collects garbage, so its time is in proportion to the
// memory in use: some 30 ms of a processor for 200 MB. Other goroutines go on meanwhile.
// Where the pages of the program's file can't be given back, they stay.
func Release() {
	debug.FreeOSMemory()
	releaseProgram()
}
