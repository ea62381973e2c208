package signin

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Errors of Finish. Any other error means that the provider could not be asked.
var (
	// ErrExpired: the ticket is missing, too old, or another sign-in's.
	ErrExpired = errors.New("the sign-in has expired")
	// ErrRefused: the provider or the person refused, or the provider's answer is not valid.
	ErrRefused = errors.New("the sign-in was refused")
)

// TicketLife is how long a sign-in may take.
const TicketLife = 10 * time.Minute

// ticketKey names the purpose of the key that encrypts tickets.
const ticketKey = "switchyard sign-in ticket, version 1"

// Config configures a Provider.
type Config struct {
	// Issuer is the provider's address, as its discovery document has it.
	Issuer       string
	ClientID     string
	ClientSecret string
	// Transport sends the requests to the provider; nil: http.DefaultTransport.
	Transport http.RoundTripper
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Random is the source of state, nonce and verifier; nil: crypto/rand.
	Random io.Reader
}

// Validate reports what is wrong with a configuration.
func (c *Config) Validate() error {
	at, err := url.Parse(c.Issuer)
	switch {
	case err != nil || at.Host == "" || at.RawQuery != "" || at.Fragment != "" || at.User != nil:
		return fmt.Errorf("issuer %q: want an https URL without a query", c.Issuer)
	case at.Scheme != "https" && (at.Scheme != "http" || !loopback(at.Hostname())):
		return fmt.Errorf("issuer %q: want https", c.Issuer)
	case c.ClientID == "":
		return errors.New("the client id is empty")
	case len(c.ClientSecret) < 16:
		return errors.New("the client secret has fewer than 16 characters")
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Provider is an identity provider. It may be used by several goroutines.
type Provider struct {
	cfg    Config
	seal   cipher.AEAD
	client *http.Client

	found atomic.Pointer[oidc.Provider]
	// discovering has a place for the one goroutine that discovers the provider.
	discovering chan struct{}
}

// maxAnswer bounds an answer of the provider in bytes, and answerWithin the time for it.
const (
	maxAnswer    = 1 << 20
	answerWithin = 8 * time.Second
)

// New returns a provider. It is asked for its description when somebody signs in first, so
// that a node starts without it.
func New(cfg Config) (*Provider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	}
	if cfg.Transport == nil {
		cfg.Transport = http.DefaultTransport
	}
	key, err := hkdf.Key(sha256.New, []byte(cfg.ClientSecret), []byte(cfg.Issuer), ticketKey, 32)
	if err != nil {
		return nil, fmt.Errorf("derive the key of sign-ins: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make the cipher of sign-ins: %w", err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("make the cipher of sign-ins: %w", err)
	}
	client := &http.Client{Transport: bounded{cfg.Transport}, Timeout: answerWithin}
	return &Provider{cfg: cfg, seal: seal, client: client, discovering: make(chan struct{}, 1)}, nil
}

// bounded cuts answers off that are too long.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("ask the identity provider: %w", err)
	}
	body := res.Body
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, maxAnswer), body}
	return res, nil
}

// discover returns the provider's description.
func (p *Provider) discover(ctx context.Context) (*oidc.Provider, error) {
	if found := p.found.Load(); found != nil {
		return found, nil
	}
	select {
	case p.discovering <- struct{}{}:
		defer func() { <-p.discovering }()
	case <-ctx.Done():
		return nil, fmt.Errorf("discover the identity provider: %w", ctx.Err())
	}
	if found := p.found.Load(); found != nil {
		return found, nil
	}
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.cfg.Issuer)
	if err != nil {
		return nil, fmt.Errorf("discover the identity provider: %w", err)
	}
	p.found.Store(found)
	return found, nil
}

// oauth returns the OAuth client. back is the address to which the provider sends the
// browser.
func (p *Provider) oauth(found *oidc.Provider, back string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.cfg.ClientID, ClientSecret: p.cfg.ClientSecret, Endpoint: found.Endpoint(), RedirectURL: back,
		Scopes: []string{oidc.ScopeOpenID, "email", "profile"},
	}
}

// Identity is a person whom the provider has confirmed.
type Identity struct {
	// Subject is the person's id at the provider.
	Subject string
	// Email is an address that the provider says it has verified; empty: there is none.
	Email string
}

// claims are those of the id token that are used.
type claims struct {
	Email    string `json:"email"`
	Verified any    `json:"email_verified"` // some providers send it as text
}

// identity checks an id token.
func (p *Provider) identity(ctx context.Context, found *oidc.Provider, raw, nonce string) (Identity, error) {
	verifier := found.Verifier(&oidc.Config{ClientID: p.cfg.ClientID, Now: p.cfg.Now})
	token, err := verifier.Verify(oidc.ClientContext(ctx, p.client), raw)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: the id token is not valid: %w", ErrRefused, err)
	}
	if token.Nonce != nonce {
		return Identity{}, fmt.Errorf("%w: the id token is of another sign-in", ErrRefused)
	}
	if token.Subject == "" {
		return Identity{}, fmt.Errorf("%w: the id token names nobody", ErrRefused)
	}
	var c claims
	if err := token.Claims(&c); err != nil {
		return Identity{}, fmt.Errorf("%w: read the id token: %w", ErrRefused, err)
	}
	who := Identity{Subject: token.Subject}
	if c.Verified == true || c.Verified == "true" {
		who.Email = strings.TrimSpace(c.Email)
	}
	return who, nil
}
