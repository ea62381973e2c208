// Package tracker is the domain: the types of the issue tracker, their tables
// and indexes, and every operation of the API, one file each, named
// entity_verb.go and read from top to bottom: input, validation of its shape,
// and the function that authorizes, decides, writes and replies.
//
// What does not live here: goroutines, clocks, randomness, networks, HTTP
// status codes. Time, identifiers and the caller come with the View or Tx an
// operation is given; commit, replication and response encoding happen around
// it and are never mentioned in it.
//
// Functions of this package run on their caller's goroutine: a query on the
// connection's, a command on the workspace's, a workflow on the connection's
// with its steps wherever their workspaces live.
package tracker
