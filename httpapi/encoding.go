package httpapi

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"switchyard/internal/processors"
)

// Answers are compressed by the node that the client asked, at the end of a request
// (Decision 73). Other nodes send their answers as they are, so that an answer is
// compressed once, in the coding that its client takes. An ETag names the content and
// is the same whatever the coding.

const (
	// encodeFrom is the size of the smallest answer that is compressed, in bytes.
	encodeFrom = 1024
	// codingWindow is how far back a zstd frame refers, in bytes. Clients need as much
	// memory; browsers refuse more than 8 MiB.
	codingWindow = 1 << 20
)

// coding is a content coding (RFC 9110, 8.4.1).
type coding uint8

const (
	codingNone coding = iota
	codingGzip
	codingZstd
	codings
)

// codingNames are the names of the codings in Content-Encoding.
var codingNames = [codings][]byte{codingGzip: []byte("gzip"), codingZstd: []byte("zstd")}

// encoders compress answers. There are as many of each kind as processors, because an
// encoder holds hundreds of kilobytes; requests wait for one.
type encoders struct {
	zstd *zstd.Encoder // for several goroutines, and bounded by itself
	gzip chan *gzip.Writer
}

func newEncoders() (*encoders, error) {
	n := processors.Count()
	e := &encoders{gzip: make(chan *gzip.Writer, n)}
	for range n {
		e.gzip <- nil // made when it is first needed
	}
	var err error
	e.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(n),
		zstd.WithWindowSize(codingWindow), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("httpapi: make encoders: %w", err)
	}
	return e, nil
}

// append compresses body and appends the result to dst.
func (e *encoders) append(dst, body []byte, to coding) ([]byte, error) {
	if to == codingZstd {
		return e.zstd.EncodeAll(body, dst), nil
	}
	w := <-e.gzip
	defer func() { e.gzip <- w }()
	out := &appender{dst}
	if w == nil {
		var err error
		if w, err = gzip.NewWriterLevel(out, gzip.BestSpeed); err != nil {
			return dst, fmt.Errorf("make a gzip encoder: %w", err)
		}
	} else {
		w.Reset(out)
	}
	_, err := w.Write(body)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return dst, fmt.Errorf("compress an answer: %w", err)
	}
	w.Reset(nil) // it keeps no answer
	return out.bytes, nil
}

// appender is a writer into a slice.
type appender struct{ bytes []byte }

// Write implements io.Writer.
func (a *appender) Write(p []byte) (int, error) {
	a.bytes = append(a.bytes, p...)
	return len(p), nil
}

// constantBody is an answer that never changes. It is compressed once for each coding.
type constantBody struct {
	plain []byte
	// small makes the encoders take more time, for a smaller result.
	small bool
	once  [codings]sync.Once
	coded [codings][]byte
}

func (b *constantBody) in(e *encoders, to coding) (coded []byte, err error) {
	b.once[to].Do(func() {
		if b.small {
			b.coded[to], err = pressed(b.plain, to)
			return
		}
		b.coded[to], err = e.append(nil, b.plain, to)
	})
	return b.coded[to], err
}

// pressed compresses a body with an encoder that is not kept.
func pressed(plain []byte, to coding) ([]byte, error) {
	if to == codingZstd {
		w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(codingWindow))
		if err != nil {
			return nil, fmt.Errorf("make an encoder: %w", err)
		}
		return w.EncodeAll(plain, nil), w.Close()
	}
	var out appender
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compress a file: %w", err)
	}
	return out.bytes, nil
}

// encode compresses the answer if its client takes that. varies reports whether the
// answer depends on Accept-Encoding.
func (s *Server) encode(x *exchange) (varies bool) {
	response := &x.ctx.Response
	if response.StatusCode() == fasthttp.StatusNotModified {
		return true // as the answer with the content would (RFC 9110, 15.4.5)
	}
	header := &response.Header
	head := x.ctx.IsHead()
	if response.IsBodyStream() {
		return false
	}
	if head && response.StatusCode() == fasthttp.StatusOK && x.route != nil && x.route.Op != nil && x.route.Op.Lines {
		return encodable(header.ContentType()) // as streamHead says
	}
	size := len(response.Body())
	if head && size == 0 {
		size = header.ContentLength() // of an answer that another node gave
	}
	if size < encodeFrom || !encodable(header.ContentType()) || len(header.ContentEncoding()) > 0 {
		return false
	}
	to := codingFor(&x.ctx.Request.Header)
	switch {
	case to == codingNone:
		return true
	case head: // the size of the content is left out, because only compressing would tell it
		response.SwapBody(nil)
		header.Del(fasthttp.HeaderContentLength)
	case x.constant != nil:
		packed, err := x.constant.in(s.encoders, to)
		if err != nil || len(packed) == 0 {
			return true
		}
		response.SetBodyRaw(packed)
	default:
		if !s.pack(x, to) {
			return true
		}
	}
	header.SetContentEncodingBytes(codingNames[to])
	return true
}

// pack compresses the answer's body. It reports false if the body is left as it is,
// because compression does not make it smaller.
func (s *Server) pack(x *exchange, to coding) bool {
	response := &x.ctx.Response
	plain := response.Body()
	other := s.answers.get(len(plain) > keptBuffer)
	packed, err := s.encoders.append(other.bytes[:0], plain, to)
	other.bytes = packed
	if err != nil || len(packed) >= len(plain) {
		s.answers.put(other)
		return false
	}
	s.answers.put(x.answer)
	x.answer = other
	response.SetBodyRaw(packed)
	if x.conn != nil {
		s.budget.lower(x.conn, answerPart, cap(packed))
	}
	return true
}

// encodable reports whether answers of a media type become smaller in a coding.
// Streams of events are sent as they come.
func encodable(contentType []byte) bool {
	media, _, _ := bytes.Cut(contentType, []byte{';'})
	media = bytes.TrimSpace(media)
	switch {
	case string(media) == "application/json":
		return true
	case bytes.HasPrefix(media, []byte("text/")):
		return string(media) != eventStream
	case bytes.HasSuffix(media, []byte("+json")), bytes.HasSuffix(media, []byte("+xml")):
		return true
	}
	switch string(media) {
	case "application/x-ndjson", "application/xml", "application/javascript":
		return true
	}
	return false
}

// codingFor chooses the coding of an answer by the request's Accept-Encoding: the one of
// the highest weight, and of equal weights zstd. Answers that a client prefers as they
// are, or whose codings it takes none of, are not encoded (RFC 9110, 12.5.3).
func codingFor(header *fasthttp.RequestHeader) coding {
	if len(header.PeekCanonical(headerAcceptEncoding)) == 0 {
		return codingNone
	}
	const unset = -1
	weights := [codings]int{unset, unset, unset}
	others := unset
	for _, line := range header.PeekAll(fasthttp.HeaderAcceptEncoding) {
		for part := range bytes.SplitSeq(line, []byte{','}) {
			name, parameters, _ := bytes.Cut(part, []byte{';'})
			weight := weightOf(parameters)
			switch name = bytes.TrimSpace(name); {
			case isName(name, "gzip"), isName(name, "x-gzip"):
				weights[codingGzip] = weight
			case isName(name, "zstd"):
				weights[codingZstd] = weight
			case isName(name, "identity"):
				weights[codingNone] = weight
			case string(name) == "*":
				others = weight
			}
		}
	}
	best := codingNone
	for c := codingGzip; c < codings; c++ {
		if weights[c] == unset {
			weights[c] = max(0, others)
		}
		if weights[c] > 0 && weights[c] >= weights[best] {
			best = c
		}
	}
	return best
}
