// Package webhook sends deliveries: one HTTP request each, signed, bounded in time
// and in what is read of the answer, and only to addresses that the policy permits.
//
// What does not live here: which delivery is to be made when (package actors) and
// how it is kept (package tracker).
//
// The package owns no goroutine of its own; net/http's connections have theirs,
// which end with the connection, at the latest in Close.
package webhook
