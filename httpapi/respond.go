package httpapi

import (
	"fmt"
	"mime"
	"net/http"
	"strconv"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

// outcomes has the status of each outcome.
var outcomes = [...]int{
	tracker.Done:        http.StatusOK,
	tracker.Created:     http.StatusCreated,
	tracker.Accepted:    http.StatusAccepted,
	tracker.NoContent:   http.StatusNoContent,
	tracker.NotModified: http.StatusNotModified,
}

// declaredStatuses are the statuses of the outcomes and the refusals that an operation
// declares.
func declaredStatuses(op *tracker.Op) []int {
	declared := make([]int, 0, len(op.Outcomes)+len(op.Refusals))
	for _, outcome := range op.Outcomes {
		declared = append(declared, outcomes[outcome])
	}
	for _, code := range op.Refusals {
		declared = append(declared, statuses[code])
	}
	return declared
}

// respond answers with an operation's reply.
func (s *Server) respond(x *exchange, reply *tracker.Reply) error {
	if int(reply.Outcome) >= len(outcomes) {
		return fmt.Errorf("operation %s: unknown outcome %d", x.route.Op.Name, reply.Outcome)
	}
	response := &x.ctx.Response
	response.SetStatusCode(outcomes[reply.Outcome])
	response.Header.SetCanonical(headerRequestID, x.requestID())
	x.describeRate()
	if reply.ETag != "" {
		x.text = append(x.text[:len(x.id)], reply.ETag...)
		response.Header.SetCanonical(headerETag, x.text[len(x.id):])
	}
	if reply.Replayed {
		response.Header.SetCanonical(headerReplayed, valueTrue)
	}
	if location := s.locationOf(x, reply); location != "" {
		response.Header.SetCanonical(headerLocation, []byte(location))
	}
	describeKeeping(&response.Header, valueRevalidate)
	if d := x.route.dialect; d != nil {
		d.describe(x)
	}
	if x.route.Op.Secret {
		response.Header.SetCanonical(headerCacheControl, valueNoStore)
	}
	if reply.File != nil {
		describeFile(&response.Header, reply.File)
	}
	if x.headsStream() { // to HEAD; a GET is answered by sendLines or listen
		x.describeStream()
	}
	if reply.Outcome == tracker.NoContent || reply.Outcome == tracker.NotModified || len(reply.Body) == 0 {
		return nil
	}
	if err := s.chargeAnswer(x, reply.Body, x.route.Op.Kind != tracker.Query); err != nil {
		return err
	}
	if reply.File != nil {
		// Sent as it is, and not kept: the next answers are much smaller.
		response.Header.SetContentType(reply.File.ContentType)
		response.SetBodyRaw(reply.Body)
		return nil
	}
	response.Header.SetContentTypeBytes(valueJSON)
	if d := x.route.dialect; d != nil {
		response.Header.SetContentTypeBytes(d.media)
	}
	if x.route.Op.Kind == tracker.Query && !x.route.Op.LongPoll {
		s.sendLent(x, reply.Body)
	} else {
		response.SetBodyRaw(reply.Body)
	}
	return nil
}

// describeKeeping sets the headers for caches. Answers differ by caller and change, so
// only the caller's own cache may keep one, and must validate it, which an ETag makes
// cheap. A browser must not guess another type than the given one.
func describeKeeping(header *fasthttp.ResponseHeader, control []byte) {
	header.SetCanonical(headerContentTypeOptions, valueNoSniff)
	header.SetCanonical(headerCacheControl, control)
}

// maxDisposition bounds the header with a file's name in bytes. Nodes read headers of 8 KiB from
// each other, and clients not much more. Earlier versions imported names of any length.
const maxDisposition = 4 << 10

// describeFile sets the headers of a file's bytes. The bytes may come from an attacker:
// a browser must neither guess another type than the given one nor run anything in them.
// They never change under their address, but the right to see them does, so only the
// caller's own cache keeps them.
func describeFile(header *fasthttp.ResponseHeader, f *tracker.File) {
	describeKeeping(header, valueImmutable)
	header.SetCanonical(headerContentPolicy, filePolicy)
	disposition := mime.FormatMediaType("inline", map[string]string{"filename": f.Name})
	if disposition == "" || len(disposition) > maxDisposition {
		disposition = "inline"
	}
	header.SetCanonical(headerDisposition, []byte(disposition))
}

// respondFailure answers with an error in the shape all errors have.
func (s *Server) respondFailure(x *exchange, f *failure) {
	response := &x.ctx.Response
	response.Header.Reset()
	status := f.statusCode()
	response.SetStatusCode(status)
	response.Header.SetCanonical(headerRequestID, x.requestID())
	response.Header.SetContentTypeBytes(valueJSON)
	describeKeeping(&response.Header, valueNoStore)
	x.describeRate()
	if f.allow != "" {
		response.Header.SetCanonical(headerAllow, []byte(f.allow))
	}
	if after := f.retryAfter(); after > 0 {
		response.Header.SetCanonical(headerRetryAfter, strconv.AppendInt(nil, int64(after), 10))
	}
	if status == http.StatusUnauthorized {
		response.Header.SetCanonical(headerAuthenticate, x.challenge())
	}
	if d := x.dialect(); d != nil {
		d.respondFailure(x, f)
		return
	}
	response.SetBodyRaw(f.body())
}

// respondAllow answers OPTIONS.
func (s *Server) respondAllow(x *exchange, allow string) {
	response := &x.ctx.Response
	response.SetStatusCode(http.StatusNoContent)
	response.Header.SetCanonical(headerRequestID, x.requestID())
	response.Header.SetCanonical(headerAllow, []byte(allow))
	response.Header.SetCanonical(headerContentTypeOptions, valueNoSniff)
}

// respondBytes answers 200 with a body that is neither an operation's JSON nor an error.
func (x *exchange) respondBytes(contentType string, body []byte) {
	response := &x.ctx.Response
	response.Header.SetCanonical(headerRequestID, x.requestID())
	describeKeeping(&response.Header, valueNoCache)
	response.Header.SetContentType(contentType)
	response.SetBodyRaw(body)
}
