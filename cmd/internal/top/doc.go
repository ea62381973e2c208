// Package top shows a running cluster in a terminal: its nodes, the shards with trouble, the
// sessions' queue and the workspaces with most and with the slowest requests. It reads the operator's API, and
// changes nothing.
//
// A Reader asks a node about the cluster, and each node about its load. A screen makes lines of two
// readings: rates are the differences of their counters. Run draws them anew until the
// operator ends it, and Once prints them one time.
//
// Texts of the cluster (names, reasons, messages) are untrusted: safe removes what a terminal
// would take as a command.
//
// Run owns two goroutines. One reads the cluster and ends before Run returns. The other reads
// keys, and ends with its input, since a read of a terminal can't be interrupted.
package top
