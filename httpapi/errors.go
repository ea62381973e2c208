package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"switchyard/actors/tracker"
)

// statuses says which HTTP status a code of the domain gets. With the failures
// below it is the only place where statuses of errors are chosen.
var statuses = map[tracker.Code]int{
	tracker.CodeBadRequest:           http.StatusBadRequest,
	tracker.CodeUnauthorized:         http.StatusUnauthorized,
	tracker.CodeForbidden:            http.StatusForbidden,
	tracker.CodeNotFound:             http.StatusNotFound,
	tracker.CodeMethodNotAllowed:     http.StatusMethodNotAllowed,
	tracker.CodeConflict:             http.StatusConflict,
	tracker.CodePreconditionFailed:   http.StatusPreconditionFailed,
	tracker.CodePayloadTooLarge:      http.StatusRequestEntityTooLarge,
	tracker.CodeUnsupportedMediaType: http.StatusUnsupportedMediaType,
	tracker.CodeIdempotencyKeyReused: http.StatusUnprocessableEntity,
	tracker.CodeTooManyRequests:      http.StatusTooManyRequests,
	tracker.CodeInternal:             http.StatusInternalServerError,
	tracker.CodeUnavailable:          http.StatusServiceUnavailable,
}

// failure is an error of the HTTP side: one whose status its code doesn't give, or
// that needs a header or the connection's end.
type failure struct {
	clientError *tracker.Error
	status      int    // 0 means the code's
	allow       string // of 405
	place       string // the path of a BAD_REQUEST's fault; empty for the request as a whole
	// unframed says that where the request ends is not known, so that nothing after
	// it on the connection can be believed.
	unframed bool
}

func (f *failure) Error() string { return f.clientError.Error() }

func newFailure(code tracker.Code, message, hint string) *failure {
	return &failure{clientError: &tracker.Error{Code: code, Message: message, Hint: hint}}
}

func errNoRoute() error {
	return newFailure(tracker.CodeNotFound, "There is nothing at this path.", "/openapi.json lists all paths. Paths are never redirected.")
}

func errNoAlias() error {
	f := newFailure(tracker.CodeNotFound, "There is no /Me: a SCIM connection is not a user.", "Use /Users/{id}.")
	f.status = http.StatusNotImplemented
	return f
}

func errMethod(allow string) error {
	f := newFailure(tracker.CodeMethodNotAllowed, "The path does not support the method.", "Use one of "+allow+".")
	f.allow = allow
	return f
}

func errTarget() error {
	return newFailure(tracker.CodeBadRequest, "The request's path can't be read.", "Send an absolute path, its characters as UTF-8 without NUL, percent-encoded.")
}

func errTargetTooLong(limit int) error {
	f := newFailure(tracker.CodeBadRequest, fmt.Sprintf("Path and query are longer than %d bytes.", limit), "Shorten the query.")
	f.status = http.StatusRequestURITooLong
	return f
}

func errHeadersTooLarge() error {
	f := newFailure(tracker.CodeBadRequest, "The request's headers are too large.", "Send fewer or shorter headers.")
	f.status, f.unframed = http.StatusRequestHeaderFieldsTooLarge, true
	return f
}

func errTooSlow() error {
	f := newFailure(tracker.CodeBadRequest, "The request did not arrive in time.", "Send the headers at once, and a large body at 64 KiB a second or faster.")
	f.status, f.unframed = http.StatusRequestTimeout, true
	return f
}

// errSpared is the answer to a body that was cut off because others wait for its bytes.
func errSpared() error {
	f := newFailure(tracker.CodeBadRequest, "The body came too slowly, and other requests wait for its memory ("+boundBytes+").", fmt.Sprintf("Send the request again, its body within %d seconds, or a smaller one.", int(spareAfter.Seconds())))
	f.status, f.unframed = http.StatusRequestTimeout, true
	return f
}

func errMalformed() error {
	f := newFailure(tracker.CodeBadRequest, "The bytes sent are not a well-formed HTTP request.", "Check the request line, the headers and how the body's length is given.")
	f.unframed = true
	return f
}

func errFraming() error {
	f := newFailure(tracker.CodeBadRequest, "The request says in two ways how long its body is.", "Send either Content-Length or Transfer-Encoding: chunked.")
	f.place, f.unframed = "header.Content-Length", true
	return f
}

func errEncoding() error {
	f := newFailure(tracker.CodeBadRequest, "The request's Transfer-Encoding does not say how long its body is.", "Send a body with Content-Length or Transfer-Encoding: chunked, and without another encoding.")
	f.place, f.unframed = "header.Transfer-Encoding", true
	return f
}

func errFieldName() error {
	f := newFailure(tracker.CodeBadRequest, "The name of a header is not valid.", "Send each header on one line: a name without spaces, a colon, the value.")
	f.unframed = true
	return f
}

func errTwo(header string) error {
	f := newFailure(tracker.CodeBadRequest, "The request has more than one "+header+" header.", "Send one.")
	f.place, f.unframed = "header."+header, true
	return f
}

func errChunkExtensions() error {
	f := newFailure(tracker.CodeBadRequest, fmt.Sprintf("The extensions of the body's chunks are longer than %d bytes in all.", maxChunkExtensions), "Send chunks without extensions; the service reads none.")
	f.unframed = true
	return f
}

func errVersion() error {
	f := newFailure(tracker.CodeBadRequest, "The request's version of HTTP is not supported.", "Use HTTP/1.1, or a proxy that translates to it.")
	f.status, f.unframed = http.StatusHTTPVersionNotSupported, true
	return f
}

func errBodyTooLarge(limit int) error {
	return newFailure(tracker.CodePayloadTooLarge, fmt.Sprintf("The body is larger than %d bytes.", limit), "Send less at once.")
}

func errMediaType() *failure {
	return newFailure(tracker.CodeUnsupportedMediaType, "The body's type is not supported.", "Send JSON in UTF-8 with Content-Type: application/json and no Content-Encoding.")
}

func errInternal() *tracker.Error {
	return &tracker.Error{Code: tracker.CodeInternal, Message: "Something went wrong inside the service.", Hint: "Report the response's X-Request-Id to the operator of the service."}
}

// asFailure gives the error to answer with. known is false for an error that the
// caller must not see and the log must have.
func asFailure(err error) (f *failure, known bool) {
	if errors.As(err, &f) {
		return f, true
	}
	var domain *tracker.Error
	if errors.As(err, &domain) && statuses[domain.Code] != 0 {
		return &failure{clientError: domain}, domain.Code != tracker.CodeInternal
	}
	return &failure{clientError: errInternal()}, false
}

// statusCode is the HTTP status the failure is answered with.
func (f *failure) statusCode() int {
	if f.status != 0 {
		return f.status
	}
	return statuses[f.clientError.Code]
}

// retryAfter is the value of Retry-After, in whole seconds and at least 1; 0 when
// the status has none.
func (f *failure) retryAfter() int {
	switch f.statusCode() {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return max(1, int((f.clientError.RetryAfter+time.Second-1)/time.Second))
	}
	return 0
}

// body is the failure as clients see it (Decision 4). A BAD_REQUEST without a list of
// faults has its message as the only one.
func (f *failure) body() []byte {
	shown := *f.clientError
	if shown.Hint == "" {
		shown.Hint = "See /docs for what the operation expects."
	}
	if shown.Code == tracker.CodeBadRequest && shown.Details == nil {
		shown.Details = tracker.BadRequestDetails{Issues: []tracker.Fault{{Path: f.place, Message: shown.Message}}}
	}
	if b, err := encode(&shown); err == nil {
		return b
	}
	// Details are the domain's, and may hold what can't be encoded.
	shown.Details = nil
	b, err := encode(&shown)
	if err != nil { // three strings
		panic(err)
	}
	return b
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// describe names every cause of an error on one line, for the log.
func describe(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
