// Package transfer copies workspaces between a service and files, and moves them from one
// cluster to another, for the command line. A file has the lines of GET
// /workspaces/{id}/export: one record a line, and a last line with counts and a checksum
// (Decision 68). A move copies the rows of a workspace instead (Decision 94).
//
// The package sees what any client sees: public HTTP. It has no goroutines of its own, and
// holds one line, one request of lines, or one block of rows in memory.
package transfer
