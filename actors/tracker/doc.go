// Package tracker is the domain: the types of the issue tracker, their tables and
// indexes, and every operation of the API. Each operation has a file named
// entity_verb.go, which reads from top to bottom: the input, the validation of its
// form, and the function that authorizes, decides, writes and replies.
//
// The package has no goroutines, clocks, randomness, network access or HTTP status
// codes. Time, identifiers and the caller come with the View or Tx that an operation is
// given. Commit, replication and response encoding happen around an operation, which
// knows nothing of them.
//
// Functions of this package run on their caller's goroutine: a query on the
// connection's, a command on the workspace's. A workflow runs on the connection's
// goroutine, and each of its steps at the node that owns the step's workspace.
package tracker
