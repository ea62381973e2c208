package httpapi

import (
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Exports are compressed as they come (Decision 73), by the node that reads them. The node that
// the client asked says which coding the client takes, and passes the bytes on. Nodes before this
// header say nothing, and get plain lines.

// headerCoding is the coding in which another node wants lines.
const headerCoding = "Switchyard-Coding"

// linesWindow is how far back the zstd frame of an export refers, in bytes. Each export that
// is being sent has an encoder of its own, of a few megabytes; --exports bounds their number.
const linesWindow = 256 << 10

// linesCoding returns the coding of an answer of lines. Without chunks the lines are sent as they
// are: nothing else would show a client of HTTP/1.0 that the answer was cut off.
func (x *exchange) linesCoding() coding {
	header := &x.ctx.Request.Header
	switch {
	case x.conn == nil || !x.chunked() || !encodable([]byte(x.streamMedia())):
		return codingNone
	case !x.conn.peer:
		return codingFor(header)
	}
	wanted := string(header.Peek(headerCoding))
	for c := codingGzip; c < codings; c++ {
		if wanted == string(codingNames[c]) {
			return c
		}
	}
	return codingNone
}

// linesEncoder compresses an answer of lines, block after block.
type linesEncoder struct {
	out appender
	to  interface {
		io.WriteCloser
		Flush() error
	}
}

func newLinesEncoder(to coding) (*linesEncoder, error) {
	e := &linesEncoder{}
	if to == codingGzip {
		w, err := gzip.NewWriterLevel(&e.out, gzip.BestSpeed)
		if err != nil {
			return nil, fmt.Errorf("make a gzip encoder: %w", err)
		}
		e.to = w
		return e, nil
	}
	w, err := zstd.NewWriter(&e.out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(linesWindow), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("make a zstd encoder: %w", err)
	}
	e.to = w
	return e, nil
}

// next returns a block in the coding, or the end of the answer. The client can unpack all that it
// has got so far. The result is valid until the next call.
func (e *linesEncoder) next(block []byte, last bool) ([]byte, error) {
	e.out.bytes = e.out.bytes[:0]
	var err error
	if last {
		err = e.to.Close()
	} else if _, err = e.to.Write(block); err == nil {
		err = e.to.Flush()
	}
	if err != nil {
		return nil, fmt.Errorf("compress lines: %w", err)
	}
	return e.out.bytes, nil
}
