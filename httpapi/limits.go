package httpapi

import (
	"fmt"

	"switchyard/actors/tracker"
)

// Limits bound what one caller, one workspace or one address may take of a node
// (Decision 92). A zero field sets no bound.
type Limits struct {
	// Bytes bounds the bytes in flight: request bodies in hand, and answers that
	// their clients have not taken yet. WorkspaceBytes bounds those of a workspace,
	// AnonymousBytes those of all callers without a valid credential, and
	// AddressBytes those of such callers at one address.
	Bytes, WorkspaceBytes, AnonymousBytes, AddressBytes int64
	// IdleConnections is the number of idle connections from which on those that were idle
	// longest are closed.
	IdleConnections int
	// AddressConnections bounds the connections of an address. Trusted proxies have
	// no such bound.
	AddressConnections int
	// AddressWaiting bounds the requests that wait for something to happen and the
	// event streams of an address, together.
	AddressWaiting int
	// Onboarding is the rate at which an address, and a user, may make workspaces.
	Onboarding Rate
	// Anonymous is the rate of an address's requests without a valid credential.
	Anonymous Rate
	// SignIns is the rate of an address's sign-ins to the console.
	SignIns Rate
	// Proxies says whose word about a client's address is believed.
	Proxies Proxies
}

// Bounds, by the flags that set them. They are the values of a metric's label too.
const (
	boundBytes          = "--max-bytes-in-flight"
	boundWorkspaceBytes = "--workspace-bytes-in-flight"
	boundAnonymousBytes = "--anonymous-bytes-in-flight"
	boundConnections    = "--max-connections"
	boundIdle           = "--memory"
	boundAddressConns   = "--address-connections"
	boundAddressWaiting = "--address-waiting"
	boundOnboarding     = "--onboarding-rate"
	boundSignIns        = "--sign-in-rate"
	boundAnonymous      = "--anonymous-rate"
)

// errConnections is the answer on a connection beyond the node's.
func errConnections() error {
	return tracker.NotApplied("Too many connections to this node are open (" + boundConnections + ").")
}

// errKeptBack is the answer on a connection that only some callers may use.
func errKeptBack() error {
	return tracker.NotApplied("The node is close to its " + boundConnections + ": the last places are kept for health checks, known callers and the operator.")
}

func errAddressConnections(most int) error {
	return tracker.NotApplied(fmt.Sprintf("The client's address has %s, the most there can be (%s).", tracker.Counted(most, "connection", "connections"), boundAddressConns))
}

func errAddressWaiting(most int) error {
	return &tracker.Error{
		Code: tracker.CodeTooManyRequests, Message: fmt.Sprintf("The client's address has %s, the most there can be (%s).", tracker.Counted(most, "waiting request or event stream", "waiting requests and event streams"), boundAddressWaiting),
		Hint: "Let one end before the next begins.",
	}
}
