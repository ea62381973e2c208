package tracker

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The signatures of the providers. Each covers the bytes as they were sent and is
// compared in constant time.

// signedWithin is the most that a call's timestamp may differ from the service's clock.
const signedWithin = 5 * time.Minute

// maxSignatures limits the signatures of one call that are tried: a sender sends two
// while it changes its secret.
const maxSignatures = 4

func sum(hashed func() hash.Hash, secret string, parts ...[]byte) []byte {
	mac := hmac.New(hashed, []byte(secret))
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// signedByTracker checks the scheme of the service's own webhooks (Decision 46):
// hexadecimal HMAC-SHA256 over timestamp, a dot and the body.
func signedByTracker(secret, timestamp, signature string, body []byte, now time.Time) bool {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || seconds < 0 || seconds > 1<<40 {
		return false
	}
	if away := now.Sub(time.Unix(seconds, 0)); away > signedWithin || away < -signedWithin {
		return false
	}
	want := sum(sha256.New, secret, []byte(timestamp), []byte{'.'}, body)
	good := false
	for i, one := range strings.SplitN(signature, ",", maxSignatures+1) {
		got, err := hex.DecodeString(strings.TrimSpace(one))
		if i < maxSignatures && err == nil && hmac.Equal(got, want) {
			good = true
		}
	}
	return good
}

// signedByHub checks the scheme of helpdesk1 and vcs1: the hash's name, and the HMAC of
// the body in hexadecimal.
func signedByHub(hashed func() hash.Hash, name, secret, signature string, body []byte) bool {
	text, ok := strings.CutPrefix(signature, name+"=")
	if !ok {
		return false
	}
	got, err := hex.DecodeString(text)
	return err == nil && hmac.Equal(got, sum(hashed, secret, body))
}

// signedBySMS checks the scheme of text messages: Base64 of HMAC-SHA1 over the called
// URL and every field of the form, sorted by name.
func signedBySMS(secret, address, signature string, form url.Values) bool {
	got, err := base64.StdEncoding.Strict().DecodeString(signature)
	if err != nil {
		return false
	}
	var text strings.Builder
	text.WriteString(address)
	names := make([]string, 0, len(form))
	for name := range form {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		values := slices.Clone(form[name])
		slices.Sort(values)
		for _, value := range slices.Compact(values) { // as the provider's libraries do
			text.WriteString(name)
			text.WriteString(value)
		}
	}
	return hmac.Equal(got, sum(sha1.New, secret, []byte(text.String())))
}

// The headers of a signed call are checked before its body is read: each function
// reports whether there is a signature of the right form, valid or not.

func formedComms(header func(string) string) bool {
	if _, err := strconv.ParseUint(header("X-Tracker-Timestamp"), 10, 41); err != nil {
		return false
	}
	for i, one := range strings.SplitN(header("X-Tracker-Signature"), ",", maxSignatures+1) {
		if i < maxSignatures && formedHex(strings.TrimSpace(one), sha256.Size) {
			return true
		}
	}
	return false
}

func formedHelpdesk1(header func(string) string) bool {
	text, ok := strings.CutPrefix(header("X-Hub-Signature"), "sha1=")
	return ok && formedHex(text, sha1.Size)
}

func formedVCS(header func(string) string) bool {
	text, ok := strings.CutPrefix(header("X-Hub-Signature-256"), "sha256=")
	return ok && formedHex(text, sha256.Size)
}

func formedSMS(header func(string) string) bool {
	sum, err := base64.StdEncoding.Strict().DecodeString(header("X-Twilio-Signature"))
	return err == nil && len(sum) == sha1.Size
}

func formedHex(text string, size int) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == size
}

// The schemes whose secret is stored in a workspace.
const (
	schemeTracker = "tracker"
	schemeHub1    = "hub-sha1"
)

// verifyInboundIn is a call whose signature is checked with the workspace's secret.
type verifyInboundIn struct {
	Source    string `json:"source"`
	Scheme    string `json:"scheme"`
	Timestamp string `json:"timestamp"`
	Signature string `json:"signature"`
	Body      []byte `json:"body"`
}

// verifyInboundOp refuses a call that is not signed with the source's secret. It is a
// query, so that unsigned calls do not occupy the workspace's goroutine.
var verifyInboundOp = NewQuery[verifyInboundIn, None]("VerifyInbound", "Judge a provider's signature", Needs{}, func(v *View, in *verifyInboundIn) (Reply, error) {
	secret, err := v.inboundSecret(in.Source)
	if err != nil {
		return Reply{}, err
	}
	if secret == "" {
		return Reply{}, Unsigned()
	}
	good := false
	switch in.Scheme {
	case schemeTracker:
		good = signedByTracker(secret, in.Timestamp, in.Signature, in.Body, v.now)
	case schemeHub1:
		good = signedByHub(sha1.New, "sha1", secret, in.Signature, in.Body)
	default:
		return Reply{}, fmt.Errorf("unknown scheme %q", in.Scheme)
	}
	if !good {
		return Reply{}, Unsigned()
	}
	return Reply{Outcome: NoContent}, nil
})
