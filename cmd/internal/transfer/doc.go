// Package transfer copies workspaces between a service and files, for the command line. A
// file has the lines of GET /workspaces/{id}/export: one record a line, and a last line
// with counts and a checksum (Decision 68).
//
// The package sees what any client sees: public HTTP. It has no goroutines of its own, and
// holds one line, or one request of lines, in memory.
package transfer
