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
