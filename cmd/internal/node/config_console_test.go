package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/console/signin"
)

func TestConfig_Console(t *testing.T) {
	t.Parallel()
	provider := signin.Config{Issuer: "https://idp.example", ClientID: "c", ClientSecret: "0123456789abcdef"}
	for flag, change := range map[string]func(*Config){
		"--console-session 1s:":     func(c *Config) { c.ConsoleSession = time.Second },
		"--console-session 1000h":   func(c *Config) { c.ConsoleSession = 1000 * time.Hour },
		"go together":               func(c *Config) { c.OIDC = signin.Config{Issuer: "https://idp.example"} },
		"--oidc-client-secret-file": func(c *Config) { c.OIDC = provider; c.OIDC.ClientSecret = "" },
		"want https":                func(c *Config) { c.OIDC = provider; c.OIDC.Issuer = "http://idp.example" },
		"--console=false":           func(c *Config) { c.OIDC = provider; c.NoConsole = true },
		"--sign-in-rate":            func(c *Config) { c.Shares.SignInRate = "often" },
	} {
		c := sane()
		change(&c)
		if err := c.validate(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	c := sane()
	c.OIDC = provider
	if err := c.validate(); err != nil {
		t.Error(err)
	}
	c.HTTP = "0.0.0.0:8080"
	warned := c.Warnings()
	for _, about := range []string{"--oidc-issuer without --public-url", "without TLS"} {
		if !slices.ContainsFunc(warned, func(w string) bool { return strings.Contains(w, about) }) {
			t.Errorf("%q is not among %q", about, warned)
		}
	}
	if _, l, err := c.limits(); err != nil || l.SignIns.Requests != 60 {
		t.Errorf("%+v %v", l.SignIns, err)
	}
}

// The addresses within the pages of the console and of /docs begin at the root of a host.
func TestConfig_WarnsOfAConsoleBelowAPath(t *testing.T) {
	t.Parallel()
	for public, want := range map[string]bool{"": false, "https://yard.example": false, "https://yard.example/": false, "https://yard.example/tracker": true, "https://yard.example//": true} {
		for _, without := range []bool{false, true} {
			c := sane()
			c.PublicURL, c.NoConsole = public, without
			warned := slices.ContainsFunc(c.Warnings(), func(w string) bool { return strings.HasPrefix(w, "--public-url has a path") })
			if warned != (want && !without) {
				t.Errorf("%q, without the console %t: warned %t", public, without, warned)
			}
		}
	}
}
