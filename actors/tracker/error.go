package tracker

import (
	"fmt"
	"time"
)

// Code names a class of failure, as clients see it. Which HTTP status it gets is
// decided where responses are written.
type Code string

// The codes of Decision 4.
const (
	CodeBadRequest           Code = "BAD_REQUEST"
	CodeUnauthorized         Code = "UNAUTHORIZED"
	CodeForbidden            Code = "FORBIDDEN"
	CodeNotFound             Code = "NOT_FOUND"
	CodeMethodNotAllowed     Code = "METHOD_NOT_ALLOWED"
	CodeConflict             Code = "CONFLICT"
	CodePreconditionFailed   Code = "PRECONDITION_FAILED"
	CodePayloadTooLarge      Code = "PAYLOAD_TOO_LARGE"
	CodeUnsupportedMediaType Code = "UNSUPPORTED_MEDIA_TYPE"
	CodeIdempotencyKeyReused Code = "IDEMPOTENCY_KEY_REUSED"
	CodeTooManyRequests      Code = "TOO_MANY_REQUESTS"
	CodeInternal             Code = "INTERNAL"
	CodeUnavailable          Code = "UNAVAILABLE"
)

// Error is a failure the caller is told about: what was wrong with their
// request, and in the hint what to do.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
	Details any    `json:"details,omitempty"`
	// RetryAfter goes with TOO_MANY_REQUESTS and UNAVAILABLE.
	RetryAfter time.Duration `json:"-"`
	// Moved: nothing was done because this node does not serve the workspace, or not
	// any more; another one may.
	Moved bool `json:"-"`
	// Reason is the word for the failure where a standard has words of its own: the
	// error of RFC 6749, the scimType of RFC 7644.
	Reason string `json:"-"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// because gives an error the word that a standard has for it.
func (e *Error) because(reason string) *Error {
	e.Reason = reason
	return e
}

// Fault is one thing wrong with a request. Path is the field's place, such as
// "labelIds[2]", "query.limit" or "header.If-Match"; empty for the body as a whole.
type Fault struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

// BadRequestDetails are the details of BAD_REQUEST.
type BadRequestDetails struct {
	Issues []Fault `json:"issues"`
}

// OutcomeDetails are the details of UNAVAILABLE: Outcome is "not_applied" when
// the request certainly changed nothing, "unknown" when it may have.
type OutcomeDetails struct {
	Outcome string `json:"outcome"`
}

// BadRequest reports every fault of a request at once.
func BadRequest(faults ...Fault) *Error {
	message := "The request is not valid."
	if len(faults) == 1 {
		message = faults[0].Message
		if faults[0].Path != "" {
			message = faults[0].Path + ": " + message
		}
	}
	return &Error{Code: CodeBadRequest, Message: message, Hint: "Correct what details.issues lists and send the request again.", Details: BadRequestDetails{Issues: faults}}
}

// NotFound is the answer for what is not there and for what the caller may not
// see alike, so that the two can't be told apart.
func NotFound(what string) *Error {
	return &Error{Code: CodeNotFound, Message: "There is no such " + what + ".", Hint: "Check the id, and that the credential may see it."}
}

// Forbidden says which right is missing.
func Forbidden(message, hint string) *Error {
	return &Error{Code: CodeForbidden, Message: message, Hint: hint}
}

// Conflict says what stands in the way.
func Conflict(message, hint string) *Error {
	return &Error{Code: CodeConflict, Message: message, Hint: hint}
}

// Unauthorized is the one answer to a missing, malformed, unknown or revoked
// credential.
func Unauthorized() *Error {
	return &Error{Code: CodeUnauthorized, Message: "The request carries no valid credential.", Hint: "Send Authorization: Bearer <token> with a token that has not been deleted."}
}

// NotApplied says that the service can't answer now and that nothing was done.
func NotApplied(message string) *Error {
	return &Error{Code: CodeUnavailable, Message: message, Hint: "Nothing was changed. Send the request again after a moment.", Details: OutcomeDetails{"not_applied"}, RetryAfter: time.Second}
}

// Moved is NotApplied for what another node may be able to answer.
func Moved(message string) *Error {
	err := NotApplied(message)
	err.Moved = true
	return err
}

// OutcomeUnknown says that the request may or may not have been carried out.
func OutcomeUnknown(message string) *Error {
	return &Error{Code: CodeUnavailable, Message: message, Hint: "The change may have been made. Repeat the request with its Idempotency-Key, or look before you repeat it.", Details: OutcomeDetails{"unknown"}, RetryAfter: time.Second}
}
