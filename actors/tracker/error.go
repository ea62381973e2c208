package tracker

import (
	"errors"
	"fmt"
	"time"
)

// Code is a class of failure, as clients see it. Package httpapi maps it to an HTTP
// status.
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

// Error is a failure for the caller: the message says what is wrong with
// the request, the hint what to do.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint"`
	Details any    `json:"details,omitempty"`
	// RetryAfter goes with TOO_MANY_REQUESTS and UNAVAILABLE.
	RetryAfter time.Duration `json:"-"`
	// Moved is set if nothing was done because this node does not serve the workspace
	// (any more); another node may.
	Moved bool `json:"-"`
	// Unadmitted is set if the request was refused for its caller's rights, or by a bound on callers, before
	// an answer that is kept for its idempotency key was looked for: it may have been carried out before.
	Unadmitted bool `json:"-"`
	// ReadOnly is "service" or "workspace" if the read-only mode of one refused the request or
	// a part of it, and empty otherwise.
	ReadOnly string `json:"-"`
	// Reason is the code that a standard prescribes for the failure: the error of RFC
	// 6749, the scimType of RFC 7644.
	Reason string `json:"-"`
}

// Unadmitted returns an error as one of the admission of a request: see Error.Unadmitted.
func Unadmitted(err error) error {
	var told *Error
	if err == nil || !errors.As(err, &told) {
		return err
	}
	refusal := *told
	refusal.Unadmitted = true
	return &refusal
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// withReason sets the code that a standard prescribes for the error.
func (e *Error) withReason(reason string) *Error {
	e.Reason = reason
	return e
}

// Fault is one thing that is wrong with a request. Path is the field's place, such as
// "labelIds[2]", "query.limit" or "header.If-Match"; empty for the body as a whole.
type Fault struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

// BadRequestDetails are the details of BAD_REQUEST.
type BadRequestDetails struct {
	Issues []Fault `json:"issues"`
}

// OutcomeDetails are the details of UNAVAILABLE. Outcome is "not_applied" if the
// request certainly changed nothing, and "unknown" if it may have.
type OutcomeDetails struct {
	Outcome string `json:"outcome"`
}

// BadRequest returns the error that lists every fault of a request.
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

// NotFound returns the error for an entity that does not exist, or that the caller may
// not see, so that the two can't be told apart.
func NotFound(what string) *Error {
	return &Error{Code: CodeNotFound, Message: "There is no such " + what + ".", Hint: "Check the id, and that the credential may see it."}
}

// Forbidden returns the error for a missing right.
func Forbidden(message, hint string) *Error {
	return &Error{Code: CodeForbidden, Message: message, Hint: hint}
}

// Conflict returns the error for a change that the present state does not allow.
func Conflict(message, hint string) *Error {
	return &Error{Code: CodeConflict, Message: message, Hint: hint}
}

// Unauthorized returns the error for a missing, malformed, unknown or revoked
// credential; it is the same for all.
func Unauthorized() *Error {
	return &Error{Code: CodeUnauthorized, Message: "The request carries no valid credential.", Hint: "Send Authorization: Bearer <token> with a token that has not been deleted."}
}

// NotApplied returns the error for a request that the service can't answer now and that
// changed nothing.
func NotApplied(message string) *Error {
	return &Error{Code: CodeUnavailable, Message: message, Hint: "Nothing was changed. Send the request again after a moment.", Details: OutcomeDetails{"not_applied"}, RetryAfter: time.Second}
}

// Moved is like NotApplied, for a request that another node may be able to answer.
func Moved(message string) *Error {
	err := NotApplied(message)
	err.Moved = true
	return err
}

// OutcomeUnknown returns the error for a request that may or may not have been carried
// out.
func OutcomeUnknown(message string) *Error {
	return &Error{Code: CodeUnavailable, Message: message, Hint: "The change may have been made. Repeat the request with its Idempotency-Key, or look before you repeat it.", Details: OutcomeDetails{"unknown"}, RetryAfter: time.Second}
}
