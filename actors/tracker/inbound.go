package tracker

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	stdjson "encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Providers call operations that need no credential: a signature over the body
// authenticates them. These operations are workflows, so that a call is checked before
// it enters the workspace's queue. Its effect there is one command, whose batch also
// records the provider's id of the call (Decision 47).

// Types of events about calls of providers, which the log keeps in part.
var (
	eventVCS   = newEventKind("vcs.event", "", onNoIssue)
	eventComms = newEventKind("comms.event", "", onNoIssue)
)

// InboundSettings are the operator's settings for providers whose calls name no
// workspace. An empty secret turns the provider's endpoint off.
type InboundSettings struct {
	// SMSSecret and VCSSecret are the secrets that sign the calls.
	SMSSecret, VCSSecret string
	// PublicURL is the address at which providers reach the service, without a slash at
	// its end. The signature of text messages covers it.
	PublicURL string
	// OpenRoutes makes a new inbound route active at once if its key has no active one;
	// otherwise the operator confirms each (Decision 47).
	OpenRoutes bool
	// Routes bounds the inbound routes of a workspace, pending and active together
	// (--inbound-routes-per-workspace); 0 means DefaultInboundRoutes.
	Routes int
	// Claims bounds the pending routes of one number or repository
	// (--inbound-claims-per-key); 0 means DefaultInboundClaims. Beyond it the oldest is
	// removed: a refusal would show that other workspaces claim the key.
	Claims int
}

// InboundAnswer tells a provider that its call was accepted, and the result.
type InboundAnswer struct {
	Accepted bool `json:"accepted"`
	// Duplicate says that the call was accepted before, and had no effect now.
	Duplicate bool            `json:"duplicate,omitempty"`
	TicketID  TicketID        `json:"ticketId,omitempty"`
	MessageID TicketMessageID `json:"messageId,omitempty"`
	EventID   string          `json:"eventId,omitempty"`
	// IssueIDs are the issues that the call has changed.
	IssueIDs []IssueID `json:"issueIds,omitempty"`
}

// accepted answers a call that was accepted for the first time.
func accepted(a InboundAnswer) (Reply, error) {
	a.Accepted = true
	return jsonReply(Accepted, &a)
}

// repeated answers a call that was accepted before.
func repeated() (Reply, error) {
	return jsonReply(Done, &InboundAnswer{Accepted: true, Duplicate: true})
}

// Unsigned returns the error for a missing, wrong or stale signature, and for an
// endpoint without a secret; it is the same for all.
func Unsigned() *Error {
	return &Error{
		Code: CodeUnauthorized, Message: "The call's signature is missing or not valid.",
		Hint: "Sign the body as it is sent with the secret set for this endpoint, and at the time of sending.",
	}
}

// inboundCaller returns the service acting for a provider.
func inboundCaller(source string) Caller {
	c := System
	c.ID = "inbound:" + source
	return c
}

// inboundCall identifies a call in the step that handles it.
type inboundCall struct {
	Source string `json:"source"`
	// Delivery is the provider's id of the call, which a repeat has, too.
	Delivery string `json:"delivery"`
}

// newInboundCall identifies a call by the provider's id or, without an id, by a hash of
// the signed bytes.
func newInboundCall(source, delivery string, signed ...[]byte) inboundCall {
	if delivery == "" {
		sum := sha256.Sum256(bytes.Join(signed, []byte{'.'}))
		return inboundCall{source, "sha256:" + hex.EncodeToString(sum[:])}
	}
	return inboundCall{source, "id:" + delivery}
}

// maxPayloadDepth limits the nesting of a provider's payload.
const maxPayloadDepth = 64

// payloadFault returns the fault of a body that must be a JSON object, or "". The event log and webhooks
// show payloads as they came, so they are held to what all bodies are (Decision 3).
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
	case !numbersFit(body):
		return "A number in the body is out of range."
	case hasNUL(body):
		return "A text in the body has a NUL."
	}
	if err := strictJSON(body); err != nil {
		return "The body is not valid JSON: " + err.Error() + "."
	}
	return ""
}

// hasNUL reports whether a name or a text in a JSON value has a NUL.
func hasNUL(value []byte) bool {
	if !bytes.Contains(value, []byte(`\u0000`)) {
		return false
	}
	dec := jsontext.NewDecoder(bytes.NewReader(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return false // the end
		}
		if token.Kind() == '"' && strings.Contains(token.String(), "\x00") {
			return true
		}
	}
}

// clean makes an external text fit to be stored: UTF-8 without NUL, cut to so many
// characters.
func clean(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	return shorten(strings.ReplaceAll(text, "\x00", ""), most)
}
