package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/httpapi"
)

func TestConfig_SharesAreGenerousOnLoopbackAlone(t *testing.T) {
	t.Parallel()
	c := sane()
	s, l, err := c.limits()
	if err != nil || s.MaxConnections < 20_000+1000 || s.WorkspaceWaiting < 20_000 || s.WorkspacesPerUser != 0 {
		t.Errorf("on loopback: %+v, %v", s, err)
	}
	if l.AddressConnections != 0 || l.AddressWaiting != 0 || l.Onboarding != (httpapi.Rate{}) || l.Anonymous != (httpapi.Rate{}) || l.AddressBytes != 0 {
		t.Errorf("on loopback: %+v", l)
	}
	for name, change := range map[string]func(*Config){
		"another address": func(c *Config) { c.HTTP = "0.0.0.0:8080" },
		"behind a proxy": func(c *Config) {
			c.PublicURL, c.Shares.TrustedProxies = "https://tracker.example.com", []string{"127.0.0.1"}
		},
	} {
		c := sane()
		change(&c)
		s, l, err := c.limits()
		if err != nil || s.MaxConnections != 16_384 || s.WorkspacesPerUser != 100 || l.Bytes != 128<<20 || l.AnonymousBytes >= l.Bytes {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if s.WorkspaceWaiting+s.WorkspaceStreams > s.MaxConnections/4 {
			t.Errorf("%s: a workspace may take %d and %d of %d connections", name, s.WorkspaceWaiting, s.WorkspaceStreams, s.MaxConnections)
		}
		if l.AddressConnections == 0 || l.AddressWaiting == 0 || l.Onboarding.Requests == 0 || l.Anonymous.Requests == 0 || l.AddressBytes < 8<<20 {
			t.Errorf("%s: %+v", name, l)
		}
	}
	// All clients would count as the proxy.
	c = sane()
	c.PublicURL = "https://tracker.example.com"
	if s, l, err := c.limits(); err != nil || s.WorkspacesPerUser == 0 || l.AddressConnections != 0 || l.Onboarding.Requests != 0 {
		t.Errorf("behind a proxy that is not named: %+v, %+v, %v", s, l, err)
	}
}

// The bounds of bytes in flight follow from --memory, and each fits a body of any route.
func TestConfig_BytesInFlight(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		http                              string
		memory, all, workspace, anonymous int64 // MiB
	}{
		{"127.0.0.1:8080", 136, 64, 32, 32},
		{"127.0.0.1:8080", 512, 128, 64, 64},
		{"127.0.0.1:8080", 12 << 10, 2048, 1024, 256},
		{":8080", 136, 64, 32, 32},
		{":8080", 512, 128, 64, 64},
		{":8080", 12 << 10, 256, 64, 64},
	} {
		c := sane()
		c.HTTP, c.Memory = row.http, uint64(row.memory)<<20
		_, l, err := c.limits()
		if err != nil || l.Bytes != row.all<<20 || l.WorkspaceBytes != row.workspace<<20 || l.AnonymousBytes != row.anonymous<<20 {
			t.Errorf("%s with %d MiB: %d, %d and %d MiB, %v", row.http, row.memory, l.Bytes>>20, l.WorkspaceBytes>>20, l.AnonymousBytes>>20, err)
		}
		if l.AddressBytes != 0 && l.AddressBytes < oneBody {
			t.Errorf("%s with %d MiB: %d bytes for an address", row.http, row.memory, l.AddressBytes)
		}
	}
	c := sane()
	c.Shares.Bytes = 40 << 20
	if _, l, err := c.limits(); err != nil || l.Bytes != 40<<20 || l.WorkspaceBytes != oneBody || l.AnonymousBytes != oneBody {
		t.Errorf("with 40 MiB: %+v, %v", l, err)
	}
}

// The connections follow from --memory: a stranger takes some 40 KiB by each. Those of one
// address and of one workspace are parts of them.
func TestConfig_Connections(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		http                        string
		memory                      uint64 // MiB; 0: the default
		connections, address, waits int
		idle                        int
	}{
		{":8080", 128, 2340, 292, 146, 1489},
		{":8080", 256, 7021, 877, 438, 4468},
		{":8080", 0, 16_384, 2048, 1024, 10_426},
		{":8080", 12 << 10, 16_384, 2048, 1024, 284_485},
		{"127.0.0.1:8080", 128, 4680, 0, 0, 1489},
		{"127.0.0.1:8080", 0, 32_768, 0, 0, 10_426},
		{"127.0.0.1:8080", 12 << 10, 32_768, 0, 0, 284_485},
	} {
		c := sane()
		c.HTTP, c.Memory = row.http, row.memory<<20
		s, l, err := c.limits()
		if l.IdleConnections != row.idle {
			t.Errorf("%s with %d MiB: %d idle connections", row.http, row.memory, l.IdleConnections)
		}
		if err != nil || s.MaxConnections != row.connections || s.AddressConnections != row.address || s.AddressWaiting != row.waits {
			t.Errorf("%s with %d MiB: %+v, %v", row.http, row.memory, s, err)
		}
		if row.address != 0 && (s.WorkspaceWaiting != row.address || s.WorkspaceStreams != row.waits) {
			t.Errorf("%s with %d MiB: %d waiting and %d streams of a workspace", row.http, row.memory, s.WorkspaceWaiting, s.WorkspaceStreams)
		}
	}
	c := sane()
	c.HTTP, c.Memory, c.Shares.MaxConnections = ":8080", 128<<20, 50_000
	if s, _, err := c.limits(); err != nil || s.MaxConnections != 50_000 || s.AddressConnections != 292 {
		t.Errorf("with --max-connections: %+v, %v", s, err)
	}
}

func TestConfig_Shares(t *testing.T) {
	t.Parallel()
	c := sane()
	c.HTTP = "0.0.0.0:8080"
	c.Shares = Shares{MaxConnections: 100, AddressConnections: 7, OnboardingRate: "off", AnonymousRate: "3/s", Bytes: 1 << 20}
	s, l, err := c.limits()
	if err != nil || s.MaxConnections != 100 || l.AddressConnections != 7 || l.Onboarding.Requests != 0 || l.Anonymous != (httpapi.Rate{Requests: 3, Per: time.Second}) || l.Bytes != 1<<20 {
		t.Errorf("%+v, %+v, %v", s, l, err)
	}
	for flag, shares := range map[string]Shares{
		"--trusted-proxies":     {TrustedProxies: []string{"10.0.0.1/8"}},
		"--forwarded-header":    {ForwardedHeader: "X-Real-IP"},
		"--onboarding-rate":     {OnboardingRate: "many"},
		"--anonymous-rate":      {AnonymousRate: "0/s"},
		"--max-connections":     {MaxConnections: -1},
		"--workspaces-per-user": {WorkspacesPerUser: -1},
	} {
		c.Shares = shares
		if err := c.validate(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// Only the operator makes the first workspace with --onboarding=root.
func TestConfig_WarnsOfOnboardingByNobody(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		token      string
		open, want bool
	}{
		{"", false, true},
		{"", true, false},
		{"a-token-of-the-operator", false, false},
	} {
		c := sane()
		c.RootToken, c.OpenOnboarding = row.token, row.open
		if got := slices.ContainsFunc(c.Warnings(), func(w string) bool { return strings.Contains(w, "--root-token-file") }); got != row.want {
			t.Errorf("%+v: %q", row, c.Warnings())
		}
	}
}

func TestConfig_WarnsOfOpenOnboarding(t *testing.T) {
	t.Parallel()
	warns := func(c *Config) bool {
		return slices.ContainsFunc(c.Warnings(), func(w string) bool { return strings.Contains(w, "--onboarding=root closes that") })
	}
	for _, row := range []struct {
		http, public string
		open, want   bool
	}{
		{"127.0.0.1:8080", "", true, false},
		{"127.0.0.1:8080", "http://localhost:8080", true, false},
		{"127.0.0.1:8080", "http://[::1]:8080", true, false},
		{"127.0.0.1:8080", "https://tracker.example.com", true, true},
		{"127.0.0.1:8080", "https://tracker.example.com", false, false},
		{"0.0.0.0:8080", "", true, true},
		{"0.0.0.0:8080", "http://localhost", true, true},
	} {
		c := sane()
		c.HTTP, c.PublicURL, c.OpenOnboarding = row.http, row.public, row.open
		if got := warns(&c); got != row.want {
			t.Errorf("%+v: %v", row, c.Warnings())
		}
	}
}
