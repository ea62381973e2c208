package httpapi

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strconv"
	"sync/atomic"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

// Names of headers as fasthttp keeps them.
var (
	headerRequestID       = []byte("X-Request-Id")
	headerContentEncoding = []byte("Content-Encoding")
	headerAcceptEncoding  = []byte("Accept-Encoding")
	headerAuthorization   = []byte("Authorization")
	headerETag            = []byte("ETag")
	headerReplayed        = []byte("Idempotency-Replayed")
	headerRetryAfter      = []byte("Retry-After")
	headerAuthenticate    = []byte("WWW-Authenticate")
	headerAllow           = []byte("Allow")
	headerCacheControl    = []byte("Cache-Control")
	headerRateLimit       = []byte("RateLimit-Limit")
	headerRateRemaining   = []byte("RateLimit-Remaining")
	headerRateReset       = []byte("RateLimit-Reset")
	rateHeaders           = [...][]byte{headerRateLimit, headerRateRemaining, headerRateReset}

	valueJSON    = []byte("application/json; charset=utf-8")
	valueTrue    = []byte("true")
	schemeBearer = []byte("Bearer")
	valueNoStore = []byte("no-store")

	challengeBearer  = []byte(`Bearer realm="switchyard"`)
	challengeInvalid = []byte(`Bearer realm="switchyard", error="invalid_token"`)
	challengeBasic   = []byte(`Basic realm="switchyard"`)

	headerContentTypeOptions = []byte("X-Content-Type-Options")
	valueNoSniff             = []byte("nosniff")
	valueRevalidate          = []byte("private, no-cache")

	// Of answers that are streams.
	headerBuffering = []byte("X-Accel-Buffering")
	valueNo         = []byte("no")

	// Of answers that are files.
	headerContentPolicy = []byte("Content-Security-Policy")
	headerDisposition   = []byte("Content-Disposition")
	valueImmutable      = []byte("private, max-age=31536000, immutable")
	filePolicy          = []byte("default-src 'none'; sandbox")
)

const (
	idempotencyKey    = "Idempotency-Key"
	maxIdempotencyKey = 255
	// maxCredential bounds a bearer token in bytes.
	maxCredential = 512
)

// requestIDs makes ids that no other run of the service makes: a random start and
// a count.
type requestIDs struct {
	prefix [17]byte
	n      atomic.Uint64
}

func newRequestIDs() *requestIDs {
	var seed [8]byte
	_, _ = rand.Read(seed[:]) // never fails
	ids := &requestIDs{}
	hex.Encode(ids.prefix[:], seed[:])
	ids.prefix[16] = '-'
	return ids
}

func (r *requestIDs) append(dst []byte) []byte {
	return strconv.AppendUint(append(dst, r.prefix[:]...), r.n.Add(1), 36)
}

// bearer gives the token of an Authorization header; nil when it has none.
func bearer(value []byte) []byte {
	const scheme = len("bearer")
	if len(value) <= scheme || !bytes.EqualFold(value[:scheme], schemeBearer) || value[scheme] != ' ' {
		return nil
	}
	token := bytes.Trim(value[scheme:], " ")
	if len(token) > maxCredential || !isVisible(token) {
		return nil
	}
	return token
}

// challenge is the WWW-Authenticate of a 401 (RFC 6750, 3).
func (x *exchange) challenge() []byte {
	scheme, token, _ := bytes.Cut(x.ctx.Request.Header.PeekCanonical(headerAuthorization), []byte{' '})
	if bytes.EqualFold(scheme, schemeBearer) && len(bytes.Trim(token, " ")) > 0 {
		return challengeInvalid
	}
	return challengeBearer
}

// isVisible reports whether b is visible ASCII, without spaces, and not empty.
func isVisible(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return len(b) > 0
}

// keepCredential returns a credential as text. The text is the same for the requests of a
// connection, as long as they have the same credential.
func (x *exchange) keepCredential(token []byte) string {
	if len(token) == 0 || x.conn == nil {
		return string(token)
	}
	if x.conn.credential != string(token) {
		sum := sha256.Sum256(token)
		// A new one: requests that wait keep the old one.
		x.conn.credential, x.conn.sum = string(token), &sum
	}
	return x.conn.credential
}

// credentialSum is the SHA-256 of the last credential; nil if nobody has worked it out.
func (x *exchange) credentialSum() *[sha256.Size]byte {
	if x.conn == nil {
		return nil
	}
	return x.conn.sum
}

// idempotency reads the Idempotency-Key of a request that may change something
// (Decision 6), and returns its fault if it is not valid.
func (x *exchange) idempotency() (*tracker.Idempotency, fieldError) {
	keys := x.ctx.Request.Header.PeekAll(idempotencyKey)
	switch {
	case len(keys) == 0:
		return nil, ""
	case len(keys) > 1:
		return nil, again
	case !isVisible(keys[0]) || len(keys[0]) > maxIdempotencyKey:
		return nil, "Must be 1 to " + strconv.Itoa(maxIdempotencyKey) + " visible ASCII characters."
	}
	i := &tracker.Idempotency{Key: string(keys[0])}
	h := sha256.New()
	for _, part := range [...][]byte{[]byte(x.route.Method), x.target.path, x.target.query, x.body} {
		writePart(h, part)
	}
	h.Sum(i.Fingerprint[:0])
	return i, ""
}

// writePart hashes a part with its length, so that no two lists of parts are
// hashed alike.
func writePart(h hash.Hash, part []byte) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(part)))
	h.Write(length[:])
	h.Write(part)
}

// header returns the value of a header that an input binds, or false if it is absent.
// A header of several lines is returned as one list.
func (x *exchange) header(name string) ([]byte, bool) {
	return headerValue(&x.ctx.Request.Header, name)
}

func headerValue(header *fasthttp.RequestHeader, name string) ([]byte, bool) {
	values := header.PeekAll(name)
	switch len(values) {
	case 0:
		return nil, false
	case 1:
		return values[0], true
	}
	return bytes.Join(values, []byte(", ")), true
}

// isJSON reports whether a Content-Type is application/json or some +json, in UTF-8.
func isJSON(contentType []byte) bool {
	media, rest, _ := bytes.Cut(contentType, []byte{';'})
	media = bytes.ToLower(bytes.TrimSpace(media))
	if string(media) != "application/json" && !(bytes.HasPrefix(media, []byte("application/")) && bytes.HasSuffix(media, []byte("+json"))) {
		return false
	}
	for parameter := range bytes.SplitSeq(rest, []byte{';'}) {
		name, value, _ := bytes.Cut(parameter, []byte{'='})
		if bytes.EqualFold(bytes.TrimSpace(name), []byte("charset")) && !bytes.EqualFold(bytes.Trim(bytes.TrimSpace(value), `"`), []byte("utf-8")) {
			return false
		}
	}
	return true
}
