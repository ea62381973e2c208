package signin

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Begun is a sign-in that has begun.
type Begun struct {
	// Address is the provider's page, for the browser.
	Address string
	// Ticket belongs into a cookie of the browser. It is at most maxTicket bytes long.
	Ticket string
}

// Kept are texts that the ticket keeps from Begin to Finish. Nobody else can read them.
type Kept struct {
	// To is the address that the person wanted to see.
	To string `json:"to"`
	// Session is the browser's session when the sign-in began; empty: there was none.
	Session string `json:"session,omitempty"`
}

// ticket is the content of a ticket.
type ticket struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	Back     string `json:"back"`
	Kept
	Ends time.Time `json:"ends"`
}

// maxTicket bounds a ticket. Browsers keep cookies of up to 4096 bytes.
const maxTicket = 3800

// Begin begins a sign-in. The provider sends the browser back to the address back; kept comes
// out of Finish again.
func (p *Provider) Begin(ctx context.Context, back string, kept Kept) (Begun, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return Begun{}, err
	}
	t := ticket{Back: back, Kept: kept, Ends: p.cfg.Now().Add(TicketLife)}
	for _, into := range []*string{&t.State, &t.Nonce, &t.Verifier} {
		var random [32]byte
		if _, err := io.ReadFull(p.cfg.Random, random[:]); err != nil {
			return Begun{}, fmt.Errorf("begin a sign-in: %w", err)
		}
		*into = base64.RawURLEncoding.EncodeToString(random[:])
	}
	sealed, err := p.sealTicket(&t)
	if err != nil {
		return Begun{}, err
	}
	address := p.oauth(found, back).AuthCodeURL(t.State, oidc.Nonce(t.Nonce), oauth2.S256ChallengeOption(t.Verifier))
	return Begun{Address: address, Ticket: sealed}, nil
}

// Finish takes the provider's answer, the query of the address to which it sent the browser,
// and the browser's ticket. It returns the person, and the texts that Begin was given. The
// provider takes a code once, so an answer that is sent again is refused.
func (p *Provider) Finish(ctx context.Context, sealed string, answer url.Values) (who Identity, kept Kept, err error) {
	t, err := p.openTicket(sealed)
	if err != nil {
		return who, Kept{}, err
	}
	if subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(t.State)) != 1 {
		return who, Kept{}, fmt.Errorf("%w: the answer is of another sign-in", ErrExpired)
	}
	// A provider that names itself must be this one (RFC 9207).
	if issuer := answer.Get("iss"); issuer != "" && issuer != p.cfg.Issuer {
		return who, t.Kept, fmt.Errorf("%w: the answer is of another provider", ErrRefused)
	}
	if refusal := answer.Get("error"); refusal != "" {
		return who, t.Kept, fmt.Errorf("%w: the provider says %.100q", ErrRefused, refusal)
	}
	code := answer.Get("code")
	if code == "" {
		return who, t.Kept, fmt.Errorf("%w: the answer has no code", ErrRefused)
	}
	found, err := p.discover(ctx)
	if err != nil {
		return who, t.Kept, err
	}
	tokens, err := p.oauth(found, t.Back).Exchange(oidc.ClientContext(ctx, p.client), code, oauth2.VerifierOption(t.Verifier))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && !isUnavailable(refused.Response.StatusCode):
		return who, t.Kept, fmt.Errorf("%w: the provider takes no such code: %.100q", ErrRefused, refused.ErrorCode)
	case err != nil:
		return who, t.Kept, fmt.Errorf("exchange the code: %w", err)
	}
	raw, _ := tokens.Extra("id_token").(string)
	if raw == "" {
		return who, t.Kept, fmt.Errorf("%w: the provider sent no id token", ErrRefused)
	}
	who, err = p.identity(ctx, found, raw, t.Nonce)
	return who, t.Kept, err
}

// isUnavailable reports whether the provider's status is about the provider and says nothing about the request.
func isUnavailable(status int) bool {
	return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests
}

func (p *Provider) sealTicket(t *ticket) (string, error) {
	plain, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("begin a sign-in: %w", err)
	}
	nonce := make([]byte, p.seal.NonceSize())
	if _, err := io.ReadFull(p.cfg.Random, nonce); err != nil {
		return "", fmt.Errorf("begin a sign-in: %w", err)
	}
	sealed := base64.RawURLEncoding.EncodeToString(p.seal.Seal(nonce, nonce, plain, nil))
	if len(sealed) > maxTicket {
		return "", errors.New("begin a sign-in: the ticket is too long for a cookie")
	}
	return sealed, nil
}

func (p *Provider) openTicket(sealed string) (*ticket, error) {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || len(sealed) > maxTicket || len(raw) < p.seal.NonceSize() {
		return nil, ErrExpired
	}
	n := p.seal.NonceSize()
	plain, err := p.seal.Open(nil, raw[:n], raw[n:], nil)
	if err != nil {
		return nil, ErrExpired
	}
	var t ticket
	if err := json.Unmarshal(plain, &t); err != nil {
		return nil, fmt.Errorf("read a sign-in: %w", err)
	}
	if !p.cfg.Now().Before(t.Ends) {
		return nil, ErrExpired
	}
	return &t, nil
}
