package tracker

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	stdjson "encoding/json"
	"strings"
	"unicode/utf8"
)

// What providers send comes in by operations that need no credential: a signature
// over the body says who it is from. They are workflows, so that a call is judged
// before it gets into the workspace's queue; what it does there is one command, in
// whose batch the call is remembered by the provider's id for it (Decision 47).

// InboundSettings are what the operator has set for the providers whose calls name
// no workspace. An empty secret turns its endpoint off.
type InboundSettings struct {
	// SMSSecret and VCSSecret are what the calls are signed with.
	SMSSecret, VCSSecret string
	// PublicURL is how providers reach the service, without a slash at its end: the
	// URL is part of what text messages are signed with.
	PublicURL string
	// OpenRoutes makes an inbound route active at once where its key has none; else the
	// operator confirms each (Decision 47).
	OpenRoutes bool
	// Routes bounds the inbound routes of a workspace, pending and active together
	// (--inbound-routes-per-workspace); 0 means DefaultInboundRoutes.
	Routes int
	// Claims bounds the pending routes of one number or repository
	// (--inbound-claims-per-key); 0 means DefaultInboundClaims. Beyond it the oldest is
	// removed: a refusal would show that other workspaces claim the key.
	Claims int
}

// InboundAnswer tells a provider that its call was taken, and what became of it.
type InboundAnswer struct {
	Accepted bool `json:"accepted"`
	// Duplicate says that the call was taken before, and did nothing now.
	Duplicate bool            `json:"duplicate,omitempty"`
	TicketID  TicketID        `json:"ticketId,omitempty"`
	MessageID TicketMessageID `json:"messageId,omitempty"`
	EventID   string          `json:"eventId,omitempty"`
	// IssueIDs are the issues that the call was about.
	IssueIDs []IssueID `json:"issueIds,omitempty"`
}

// accepted answers a call that was taken for the first time.
func accepted(a InboundAnswer) (Reply, error) {
	a.Accepted = true
	return jsonReply(Accepted, &a)
}

// repeated answers a call that was taken before.
func repeated() (Reply, error) {
	return jsonReply(Done, &InboundAnswer{Accepted: true, Duplicate: true})
}

// Unsigned is the one answer to a missing, wrong or stale signature, and where there
// is no secret to judge it by.
func Unsigned() *Error {
	return &Error{
		Code: CodeUnauthorized, Message: "The call is not signed as it must be.",
		Hint: "Sign the body as it is sent with the secret set for this endpoint, and at the time of sending.",
	}
}

// inboundCaller is the service acting for a provider.
func inboundCaller(source string) Caller {
	c := System
	c.ID = "inbound:" + source
	return c
}

// inboundCall names a call in the step that takes it.
type inboundCall struct {
	Source string `json:"source"`
	// Delivery is the provider's id of the call, the same when it tries again.
	Delivery string `json:"delivery"`
}

// newInboundCall names a call by the provider's id. Without an id a hash of the signed
// bytes stands for it.
func newInboundCall(source, delivery string, signed ...[]byte) inboundCall {
	if delivery == "" {
		sum := sha256.Sum256(bytes.Join(signed, []byte{'.'}))
		return inboundCall{source, "sha256:" + hex.EncodeToString(sum[:])}
	}
	return inboundCall{source, "id:" + delivery}
}

// maxPayloadDepth is how deeply what providers send may be nested.
const maxPayloadDepth = 64

// payloadFault tells what is wrong with a body that must be a JSON object; empty
// for nothing.
func payloadFault(body []byte) string {
	switch trimmed := bytes.TrimLeft(body, " \t\r\n"); {
	case !utf8.Valid(body):
		return "The body is not UTF-8."
	case TooDeep(body, maxPayloadDepth) >= 0:
		return "The body is nested too deeply."
	case !stdjson.Valid(body):
		return "The body is not JSON."
	case trimmed[0] != '{':
		return "The body must be a JSON object."
	}
	return ""
}

// clean makes a text from outside fit to be kept: UTF-8 without NUL, at most so many
// characters.
func clean(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return shorten(strings.ReplaceAll(text, "\x00", ""), most)
}
