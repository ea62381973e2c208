// Package systemtest runs the real binary as an operator would and looks at it
// from outside: processes, HTTP, signals. It drives load, injects faults such as
// kill -9, and checks what was promised: no acknowledged write lost, none there
// twice, nothing half applied.
//
// Tests of one package alone are beside the package, and measurements are in bench. Every goroutine belongs to the test that
// started it and ends before it does; every process dies with its test.
package systemtest
