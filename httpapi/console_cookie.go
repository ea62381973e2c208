package httpapi

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"
)

// A session's cookie holds the credential of a workspace token or, for the operator, a value
// that the service has signed. With TLS its name begins with __Host-, which browsers accept
// from this very host alone: no neighbor can set it.

const (
	sessionName = "switchyard-session"
	ticketName  = "switchyard-sign-in"
	// hostPrefix makes browsers refuse a cookie that is not Secure, or has a Domain, or
	// another Path than "/".
	hostPrefix = "__Host-"
	// rootPrefix begins the value of an operator's session.
	rootPrefix = "swr_"
	// rootKey names the purpose of the key that signs the operator's sessions.
	rootKey = "switchyard console session of the operator, version 1"
)

// rootSealed is the length of what is signed and of the whole: the end in Unix seconds (8
// bytes), random bytes (16), the HMAC-SHA-256 of both (32).
const (
	rootSigned = 8 + 16
	rootSealed = rootSigned + sha256.Size
)

// sessionCookie reads and writes the cookie of a session.
type sessionCookie struct {
	name   string
	secure bool
	key    []byte // nil: there is no operator
}

// newSessionCookie derives the key of the operator's sessions from the root token: with
// another root token they have ended.
func newSessionCookie(rootToken string, secure bool) (sessionCookie, error) {
	c := sessionCookie{name: cookieName(sessionName, secure), secure: secure}
	if rootToken == "" {
		return c, nil
	}
	var err error
	if c.key, err = hkdf.Key(sha256.New, []byte(rootToken), nil, rootKey, sha256.Size); err != nil {
		return c, fmt.Errorf("httpapi: derive the key of the operator's sessions: %w", err)
	}
	return c, nil
}

func cookieName(name string, secure bool) string {
	if secure {
		return hostPrefix + name
	}
	return name
}

// value returns the cookie's value. A request with several cookies of that name has none:
// one of them may come from a neighbor of the host.
func (c *sessionCookie) value(header *fasthttp.RequestHeader) []byte {
	return onlyCookie(header, c.name)
}

// onlyCookie returns the value of the only cookie with a name. It returns nil if there are
// several, or the value can't be a credential.
func onlyCookie(header *fasthttp.RequestHeader, name string) []byte {
	var value []byte
	for key, v := range header.Cookies() {
		if string(key) != name {
			continue
		}
		if value != nil || !isVisible(v) {
			return nil
		}
		value = v
	}
	return value
}

// set makes the browser keep a session until it ends.
func (c *sessionCookie) set(header *fasthttp.ResponseHeader, value string, now, ends time.Time) {
	setCookie(header, c.name, value, ends.Sub(now), fasthttp.CookieSameSiteStrictMode, c.secure)
}

// clear makes the browser drop the session.
func (c *sessionCookie) clear(header *fasthttp.ResponseHeader) {
	setCookie(header, c.name, "", 0, fasthttp.CookieSameSiteStrictMode, c.secure)
}

func setCookie(header *fasthttp.ResponseHeader, name, value string, life time.Duration, site fasthttp.CookieSameSite, secure bool) {
	cookie := fasthttp.AcquireCookie()
	defer fasthttp.ReleaseCookie(cookie)
	cookie.SetKey(name)
	cookie.SetValue(value)
	cookie.SetPath("/")
	cookie.SetHTTPOnly(true)
	cookie.SetSameSite(site)
	cookie.SetSecure(secure)
	if seconds := int(life / time.Second); seconds > 0 {
		cookie.SetMaxAge(seconds)
	} else {
		cookie.SetExpire(fasthttp.CookieExpireDelete)
	}
	header.SetCookie(cookie)
}

func (c *sessionCookie) isRoot(value []byte) bool { return bytes.HasPrefix(value, []byte(rootPrefix)) }

// sealRoot returns the value of a session of the operator.
func (c *sessionCookie) sealRoot(ends time.Time) (string, error) {
	raw := binary.BigEndian.AppendUint64(make([]byte, 0, rootSealed), uint64(ends.Unix()))
	raw = raw[:rootSigned]
	if _, err := rand.Read(raw[8:]); err != nil {
		return "", fmt.Errorf("make a session of the operator: %w", err)
	}
	return rootPrefix + base64.RawURLEncoding.EncodeToString(c.sign(raw)), nil
}

// sign appends the signature.
func (c *sessionCookie) sign(raw []byte) []byte {
	mac := hmac.New(sha256.New, c.key)
	_, _ = mac.Write(raw) // never fails
	return mac.Sum(raw)
}

// openRoot reports whether a value is a session of the operator that has not ended, and when
// it ends.
func (c *sessionCookie) openRoot(value []byte, now time.Time) (ends time.Time, valid bool) {
	if c.key == nil || !c.isRoot(value) || len(value) != len(rootPrefix)+base64.RawURLEncoding.EncodedLen(rootSealed) {
		return time.Time{}, false
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(value[len(rootPrefix):]))
	if err != nil || len(raw) != rootSealed {
		return time.Time{}, false
	}
	if !hmac.Equal(c.sign(raw[:rootSigned:rootSigned]), raw) {
		return time.Time{}, false
	}
	ends = time.Unix(int64(binary.BigEndian.Uint64(raw)), 0)
	return ends, now.Before(ends)
}

// ticketCookie is the cookie of a sign-in that has begun. The browser sends it with the
// navigation from the identity provider, which SameSite=Strict would not allow.
type ticketCookie struct {
	name   string
	secure bool
}

func newTicketCookie(secure bool) ticketCookie {
	return ticketCookie{cookieName(ticketName, secure), secure}
}

func (c *ticketCookie) value(header *fasthttp.RequestHeader) []byte {
	return onlyCookie(header, c.name)
}

func (c *ticketCookie) set(header *fasthttp.ResponseHeader, value string, life time.Duration) {
	setCookie(header, c.name, value, life, fasthttp.CookieSameSiteLaxMode, c.secure)
}

func (c *ticketCookie) clear(header *fasthttp.ResponseHeader) {
	setCookie(header, c.name, "", 0, fasthttp.CookieSameSiteLaxMode, c.secure)
}
