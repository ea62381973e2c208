// Package webhook sends deliveries: one HTTP request each, signed, limited in time and
// in the bytes read of the response, and only to addresses that the policy permits.
//
// Package actors decides which delivery is made when, and package tracker stores them.
//
// The package has no goroutines of its own; those of net/http's connections end with
// the connection, at the latest in Close.
package webhook
