package node

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"

	"switchyard/httpapi"
)

// Shares bound what one caller, one workspace or one address may take of a node
// (Decision 92). A zero field and an empty rate mean the default, which is strict
// unless only the machine itself reaches the API; the rate "off" sets no bound.
type Shares struct {
	// MaxConnections is the number of client connections, AddressConnections that of
	// one address.
	MaxConnections, AddressConnections int
	// AddressWaiting is the number of waiting requests and event streams of an address,
	// WorkspaceWaiting and WorkspaceStreams those of a workspace.
	AddressWaiting, WorkspaceWaiting, WorkspaceStreams int
	// Exports is the number of exports that this node sends at once, beside the operator's.
	Exports int
	// Bytes in flight are request bodies in hand and answers that clients have not
	// taken: in all, of a workspace, and of all callers without a valid credential.
	Bytes, WorkspaceBytes, AnonymousBytes uint64
	// OnboardingRate is how many workspaces an address or a user may ask for, and
	// AnonymousRate how many requests without a valid credential an address may send.
	OnboardingRate, AnonymousRate string
	// SignInRate is how many sign-ins to the console an address may try.
	SignInRate string
	// WorkspacesPerUser is how many workspaces a user may make and keep.
	WorkspacesPerUser int
	// TrustedProxies are the addresses of proxies that say in ForwardedHeader, which is
	// X-Forwarded-For or Forwarded, what the client's address is.
	TrustedProxies  []string
	ForwardedHeader string
}

const (
	mebibyte = 1 << 20
	// oneBody is enough for one body of any route, as it is charged.
	oneBody = 25 * mebibyte
	// leastBytes is the least default of Shares.Bytes. It is enough for two bodies.
	leastBytes = 64 * mebibyte
	// connectionMemory is the memory for which a node that others reach takes one more connection,
	// beyond the first restMemory. A client that has not sent all of a header, and so not its
	// credential, takes some 40 KiB at most.
	connectionMemory = 28 << 10
	restMemory       = 64 * mebibyte
	// idleMemory is the memory for which a node keeps one more connection that is idle, beyond restMemory.
	// Such a connection takes some 33 KiB. With more of them the garbage collector would run all the time,
	// because it frees nothing of theirs.
	idleMemory = 44 << 10
)

// limits gives the bounds with their defaults.
func (c Config) limits() (Shares, httpapi.Limits, error) {
	s, l := c.Shares, httpapi.Limits{}
	for _, f := range [...]struct {
		flag  string
		value int
	}{
		{"--max-connections", s.MaxConnections}, {"--address-connections", s.AddressConnections}, {"--address-waiting", s.AddressWaiting},
		{"--workspace-waiting", s.WorkspaceWaiting}, {"--workspace-streams", s.WorkspaceStreams}, {"--exports", s.Exports}, {"--workspaces-per-user", s.WorkspacesPerUser},
	} {
		if f.value < 0 || f.value > 1<<30 {
			return s, l, fmt.Errorf("%s %d: must be from 1 to %d, or 0 for the default", f.flag, f.value, 1<<30)
		}
	}
	s.Exports = cmp.Or(s.Exports, 4)
	var err error
	if l.Proxies, err = httpapi.ParseProxies(s.TrustedProxies, s.ForwardedHeader); err != nil {
		return s, l, fmt.Errorf("--trusted-proxies, --forwarded-header: %w", err)
	}
	// With a proxy on the machine that is not named, all clients have one address.
	addresses := !loopback(c.HTTP) || len(s.TrustedProxies) > 0
	l.IdleConnections = int((max(c.memory(), minMemory) - restMemory) / idleMemory)
	connections := int((max(c.memory(), minMemory) - restMemory) / connectionMemory)
	if c.exposed() {
		connections = min(connections, 16_384)
		s.WorkspaceWaiting, s.WorkspaceStreams = cmp.Or(s.WorkspaceWaiting, connections/8), cmp.Or(s.WorkspaceStreams, connections/16)
		c.bytesInFlight(&s, 256*mebibyte, 64*mebibyte, 64*mebibyte)
		s.WorkspacesPerUser = cmp.Or(s.WorkspacesPerUser, 100)
	} else {
		connections = min(2*connections, 32_768)
		s.WorkspaceWaiting, s.WorkspaceStreams = cmp.Or(s.WorkspaceWaiting, 20_000), cmp.Or(s.WorkspaceStreams, 8192)
		c.bytesInFlight(&s, 2048*mebibyte, 1024*mebibyte, 256*mebibyte)
	}
	s.MaxConnections = cmp.Or(s.MaxConnections, connections)
	l.Bytes, l.WorkspaceBytes, l.AnonymousBytes = int64(s.Bytes), int64(s.WorkspaceBytes), int64(s.AnonymousBytes)
	if c.exposed() && addresses {
		s.AddressConnections, s.AddressWaiting = cmp.Or(s.AddressConnections, connections/8), cmp.Or(s.AddressWaiting, connections/16)
		s.OnboardingRate, s.AnonymousRate, s.SignInRate = cmp.Or(s.OnboardingRate, "20/h"), cmp.Or(s.AnonymousRate, "6000/m"), cmp.Or(s.SignInRate, "60/m")
		l.AddressBytes = min(l.AnonymousBytes, max(l.AnonymousBytes/4, oneBody))
	}
	l.AddressConnections, l.AddressWaiting = s.AddressConnections, s.AddressWaiting
	if l.Onboarding, err = httpapi.ParseRate(s.OnboardingRate); err != nil {
		return s, l, fmt.Errorf("--onboarding-rate: %w", err)
	}
	if l.Anonymous, err = httpapi.ParseRate(s.AnonymousRate); err != nil {
		return s, l, fmt.Errorf("--anonymous-rate: %w", err)
	}
	if l.SignIns, err = httpapi.ParseRate(s.SignInRate); err != nil {
		return s, l, fmt.Errorf("--sign-in-rate: %w", err)
	}
	return s, l, nil
}

// bytesInFlight sets the bounds of bytes that have none, to at most these. All together are at most a
// quarter of the node's memory: its caches take a third, and what a request needs beside its bytes
// and what the collector has not found yet take the rest.
func (c Config) bytesInFlight(s *Shares, all, workspace, anonymous uint64) {
	s.Bytes = cmp.Or(s.Bytes, min(all, max(c.memory()/4, leastBytes)))
	half := max(s.Bytes/2, oneBody)
	s.WorkspaceBytes, s.AnonymousBytes = cmp.Or(s.WorkspaceBytes, min(workspace, half)), cmp.Or(s.AnonymousBytes, min(anonymous, half))
}

// exposed reports whether others than the machine itself reach the API, directly or
// through a proxy.
func (c Config) exposed() bool { return !loopback(c.HTTP) || c.publicHost() != "" }

// publicHost is the host of PublicURL, unless that is the machine itself.
func (c Config) publicHost() string {
	at, err := url.Parse(c.PublicURL)
	if err != nil || at.Hostname() == "localhost" {
		return ""
	}
	if addr, err := netip.ParseAddr(at.Hostname()); err == nil && addr.IsLoopback() {
		return ""
	}
	return at.Host
}

// shareWarnings are those about callers that nobody knows.
func (c Config) shareWarnings() (w []string) {
	reached := c.publicHost()
	if !loopback(c.HTTP) {
		reached = c.HTTP
	}
	if c.OpenOnboarding && reached != "" {
		w = append(w, "anyone who reaches "+reached+" can create workspaces: --onboarding=root closes that")
	}
	if !c.OpenOnboarding && c.RootToken == "" {
		w = append(w, "--onboarding=root without the operator's token: nobody can onboard a workspace; give --root-token-file, or set SWITCHYARD_ROOT_TOKEN")
	}
	if loopback(c.HTTP) && c.publicHost() != "" && len(c.Shares.TrustedProxies) == 0 {
		w = append(w, "--public-url without --trusted-proxies: the proxy's address counts for all clients, so bounds per address are off by default")
	}
	return w
}
