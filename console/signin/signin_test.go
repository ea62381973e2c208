package signin

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"switchyard/console/signin/oidctest"
)

const back = "http://127.0.0.1:1/console/callback"

type bundle struct {
	*Provider
	idp *oidctest.Provider
	now time.Time
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{idp: oidctest.New(t), now: time.Now()}
	var err error
	b.Provider, err = New(Config{Issuer: b.idp.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, Now: func() time.Time { return b.now }})
	if err != nil {
		t.Fatal(err)
	}
	b.idp.As(oidctest.Claims{"sub": "ada-1", "email": "ada@acme.example", "email_verified": true})
	return b
}

// begin goes to the provider and returns the answer that the browser brings back.
func (b *bundle) begin(t *testing.T, to string) (ticket string, answer url.Values) {
	t.Helper()
	begun, err := b.Begin(t.Context(), back, Kept{To: to, Session: "a session"})
	if err != nil {
		t.Fatal(err)
	}
	return begun.Ticket, b.visit(t, begun.Address)
}

func (b *bundle) visit(t *testing.T, address string) url.Values {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	at, err := resp.Location()
	if err != nil || !strings.HasPrefix(at.String(), back) {
		t.Fatalf("%d: %v %v", resp.StatusCode, at, err)
	}
	return at.Query()
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ticket, answer := b.begin(t, "/console/acme/issues")
	who, kept, err := b.Finish(t.Context(), ticket, answer)
	if err != nil || kept != (Kept{"/console/acme/issues", "a session"}) || who != (Identity{"ada-1", "ada@acme.example"}) {
		t.Fatalf("%+v %+v %v", who, kept, err)
	}
	for _, plain := range []string{"console", "session", "nonce", "verifier"} {
		if strings.Contains(ticket, plain) {
			t.Error("the ticket can be read")
		}
	}
	// A provider takes a code once, so the same answer is refused.
	if _, _, err := b.Finish(t.Context(), ticket, answer); !errors.Is(err, ErrRefused) {
		t.Errorf("again: %v", err)
	}
}

// An address counts if the provider has verified it.
func TestSignIn_Email(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, row := range []struct {
		verified any
		email    string
	}{{true, "ada@acme.example"}, {"true", "ada@acme.example"}, {false, ""}, {"false", ""}, {nil, ""}, {1, ""}} {
		b.idp.Change(func(c oidctest.Claims) { c["email_verified"] = row.verified })
		ticket, answer := b.begin(t, "/")
		who, _, err := b.Finish(t.Context(), ticket, answer)
		if err != nil || who.Email != row.email || who.Subject != "ada-1" {
			t.Errorf("verified %v: %+v %v", row.verified, who, err)
		}
	}
}

func TestSignIn_WrongTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, change := range map[string]func(oidctest.Claims){
		"of another client":   func(c oidctest.Claims) { c["aud"] = "another" },
		"of another provider": func(c oidctest.Claims) { c["iss"] = "https://idp.example" },
		"of another sign-in":  func(c oidctest.Claims) { c["nonce"] = "another" },
		"without a nonce":     func(c oidctest.Claims) { delete(c, "nonce") },
		"that has expired":    func(c oidctest.Claims) { c["exp"] = time.Now().Add(-time.Hour).Unix() },
		"of nobody":           func(c oidctest.Claims) { c["sub"] = "" },
	} {
		b.idp.Change(change)
		ticket, answer := b.begin(t, "/")
		if who, _, err := b.Finish(t.Context(), ticket, answer); !errors.Is(err, ErrRefused) {
			t.Errorf("a token %s: %+v %v", name, who, err)
		}
	}
	b.idp.Change(nil)
	b.idp.Forge(true)
	ticket, answer := b.begin(t, "/")
	if who, _, err := b.Finish(t.Context(), ticket, answer); !errors.Is(err, ErrRefused) {
		t.Errorf("a forged token: %+v %v", who, err)
	}
}

// An answer belongs to the browser and the sign-in that it was asked for.
func TestSignIn_WrongAnswers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ticket, answer := b.begin(t, "/")
	other, _ := b.begin(t, "/")
	for name, row := range map[string]struct {
		ticket string
		change func(url.Values)
		err    error
	}{
		"no ticket":                {"", nil, ErrExpired},
		"a ticket that is none":    {"AAAA", nil, ErrExpired},
		"a ticket that is changed": {strings.ToUpper(ticket), nil, ErrExpired},
		"another ticket":           {other, nil, ErrExpired},
		"no state":                 {ticket, func(v url.Values) { v.Del("state") }, ErrExpired},
		"another state":            {ticket, func(v url.Values) { v.Set("state", "x") }, ErrExpired},
		"no code":                  {ticket, func(v url.Values) { v.Del("code") }, ErrRefused},
		"an error":                 {ticket, func(v url.Values) { v.Set("error", "access_denied") }, ErrRefused},
		"another provider":         {ticket, func(v url.Values) { v.Set("iss", "https://idp.example") }, ErrRefused},
		"another code":             {ticket, func(v url.Values) { v.Set("code", "x") }, ErrRefused},
	} {
		given := url.Values{}
		for k, v := range answer {
			given[k] = v
		}
		if row.change != nil {
			row.change(given)
		}
		if who, _, err := b.Finish(t.Context(), row.ticket, given); !errors.Is(err, row.err) {
			t.Errorf("%s: %+v %v", name, who, err)
		}
	}
	b.now = b.now.Add(TicketLife)
	if _, _, err := b.Finish(t.Context(), ticket, answer); !errors.Is(err, ErrExpired) {
		t.Errorf("too late: %v", err)
	}
}

// The code is worth nothing without the verifier, which is in the ticket alone (PKCE).
func TestSignIn_StolenCode(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, victims := b.begin(t, "/")
	mine, answer := b.begin(t, "/")
	answer.Set("code", victims.Get("code"))
	if who, _, err := b.Finish(t.Context(), mine, answer); !errors.Is(err, ErrRefused) {
		t.Errorf("%+v %v", who, err)
	}
}

// A node starts and waits for nothing while the provider is down.
func TestSignIn_ProviderIsDown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.idp.Down(true)
	if _, err := b.Begin(t.Context(), back, Kept{To: "/"}); err == nil || errors.Is(err, ErrRefused) || errors.Is(err, ErrExpired) {
		t.Errorf("%v", err)
	}
	b.idp.Down(false)
	ticket, answer := b.begin(t, "/")
	b.idp.Down(true)
	if _, _, err := b.Finish(t.Context(), ticket, answer); err == nil || errors.Is(err, ErrRefused) || errors.Is(err, ErrExpired) {
		t.Errorf("down when it is asked for the token: %v", err)
	}
}

func TestConfig_Validate(t *testing.T) {
	t.Parallel()
	good := Config{Issuer: "https://idp.example/tenant", ClientID: "c", ClientSecret: strings.Repeat("s", 16)}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Config){
		func(c *Config) { c.Issuer = "http://idp.example" },
		func(c *Config) { c.Issuer = "idp.example" },
		func(c *Config) { c.Issuer = "https://idp.example/?x=y" },
		func(c *Config) { c.Issuer = "https://user@idp.example" },
		func(c *Config) { c.ClientID = "" },
		func(c *Config) { c.ClientSecret = "short" },
	} {
		c := good
		change(&c)
		if c.Validate() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
