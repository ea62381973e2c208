package node

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"switchyard/console/signin"
)

// The shortest and the longest that a session of the console may last.
const (
	shortestConsoleSession = time.Minute
	longestConsoleSession  = 30 * 24 * time.Hour
)

// validateConsole reports what is wrong with the settings of the console.
func (c Config) validateConsole() error {
	if c.ConsoleSession != 0 && (c.ConsoleSession < shortestConsoleSession || c.ConsoleSession > longestConsoleSession) {
		return fmt.Errorf("--console-session %s: must be from %s to %s", c.ConsoleSession, shortestConsoleSession, longestConsoleSession)
	}
	if c.OIDC.Issuer == "" && c.OIDC.ClientID == "" && c.OIDC.ClientSecret == "" {
		return nil
	}
	if c.OIDC.Issuer == "" || c.OIDC.ClientID == "" || c.OIDC.ClientSecret == "" {
		return errors.New("--oidc-issuer, --oidc-client-id and --oidc-client-secret-file go together")
	}
	if c.NoConsole {
		return errors.New("--oidc-issuer needs the console: leave --console=false out")
	}
	if err := c.OIDC.Validate(); err != nil {
		return fmt.Errorf("--oidc-issuer: %w", err)
	}
	return nil
}

// consoleWarnings are the risks of the settings of the console.
func (c Config) consoleWarnings() (w []string) {
	if c.OIDC.Issuer != "" && c.PublicURL == "" && !loopback(c.HTTP) {
		w = append(w, "--oidc-issuer without --public-url: the identity provider sends people back to an address that this node can only guess")
	}
	if !c.NoConsole && !loopback(c.HTTP) && c.TLSCert == "" && c.PublicURL == "" {
		w = append(w, "the console is served without TLS on "+c.HTTP+": its session cookies can be read on the way")
	}
	if at, err := url.Parse(c.PublicURL); err == nil && !c.NoConsole && at.Path != "" && at.Path != "/" {
		w = append(w, "--public-url has a path: the console and the page at /docs work at the root of a host only; --console=false leaves the console out")
	}
	return w
}

// identityProvider returns the provider that signs people in, or nil.
func (c Config) identityProvider() (*signin.Provider, error) {
	if c.OIDC.Issuer == "" {
		return nil, nil
	}
	p, err := signin.New(c.OIDC)
	if err != nil {
		return nil, fmt.Errorf("--oidc-issuer: %w", err)
	}
	return p, nil
}
