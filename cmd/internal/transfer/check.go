package transfer

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
)

const (
	// maxLine bounds a line in bytes. The longest have an attachment, 5 MiB of bytes as
	// Base64.
	maxLine = 16 << 20
	// version is the version of the format that this build reads.
	version = 1

	typeWorkspace = "workspace"
	typeEnd       = "end"
)

// line is one line of an export.
type line struct {
	N       *int64           `json:"n"`
	Type    string           `json:"type"`
	Version int              `json:"version"`
	Data    json.RawMessage  `json:"data"`
	Counts  map[string]int64 `json:"counts"`
	SHA256  string           `json:"sha256"`
	// WholeSHA256 is that of all lines, where an export was asked to go on behind some of them.
	WholeSHA256 string `json:"wholeSha256"`

	text []byte // with its newline; valid until the next line is read
}

// DamagedError reports the place of the first damage in a file.
type DamagedError struct {
	// Line counts from 1, and Offset is where the line begins, in bytes.
	Line, Offset int64
	Fault        string
	// Cut is set if the file ends too early.
	Cut bool
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("line %d, at byte %d: %s", e.Line, e.Offset, e.Fault)
}

// reader reads the lines of an export and checks what they say of each other.
type reader struct {
	in     *bufio.Reader
	number int64 // of the line at hand, from 1
	offset int64 // of the next line
	begin  int64 // of the line read last
	counts map[string]int64
	sum    hash.Hash
	ended  bool
	buf    []byte
	spare  []byte // a line that was read and is for the next request
}

func newReader(in io.Reader) *reader { return newReaderFrom(in, 0, 0) }

// newReaderFrom returns a reader of what comes behind so many lines, of so many bytes. The last line tells of the
// lines that are read.
func newReaderFrom(in io.Reader, lines, bytes int64) *reader {
	return &reader{in: bufio.NewReaderSize(in, 256<<10), number: lines, offset: bytes, counts: map[string]int64{}, sum: sha256.New()}
}

// next reads a line. It returns io.EOF behind the last line of a whole export, and a
// *DamagedError for a file that is not one.
func (r *reader) next() (*line, error) {
	r.begin = r.offset
	r.number++
	r.buf = r.buf[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		r.buf = append(r.buf, part...)
		r.offset += int64(len(part))
		if len(r.buf) > maxLine {
			return nil, r.damaged("the line is longer than %d bytes", maxLine)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && r.ended && len(r.buf) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF) && len(r.buf) == 0:
			return nil, r.cut("the file ends here, and its last line is missing")
		case errors.Is(err, io.EOF):
			return nil, r.cut("the file ends within this line")
		case err != nil:
			return nil, fmt.Errorf("read the file: %w", err)
		}
		break
	}
	if r.ended {
		return nil, r.damaged("the file goes on behind its last line")
	}
	return r.read()
}

// read decodes the line in the buffer.
func (r *reader) read() (*line, error) {
	l := &line{text: r.buf}
	if err := json.Unmarshal(r.buf, l); err != nil {
		return nil, r.damaged("not a line of an export: %v", err)
	}
	if l.Type == typeEnd {
		r.ended = true
		if got := hex.EncodeToString(r.sum.Sum(nil)); l.SHA256 != got {
			return nil, r.damaged("the SHA-256 of the lines before it should be %q, and is %s", l.SHA256, got)
		}
		if !maps.Equal(l.Counts, r.counts) {
			return nil, r.damaged("the counts differ from the lines before it")
		}
		return l, nil
	}
	switch n := r.number - 1; {
	case l.N == nil || *l.N != n:
		return nil, r.damaged("its n should be %d", n)
	case l.Type == "":
		return nil, r.damaged("it has no type")
	case len(l.Data) == 0 || bytes.Equal(l.Data, []byte("null")):
		return nil, r.damaged("it has no data")
	case (l.Type == typeWorkspace) != (n == 0):
		return nil, r.damaged("it has type %q", l.Type)
	case n == 0 && l.Version != version:
		return nil, r.damaged("the format has version %d, and this build reads version %d", l.Version, version)
	}
	r.counts[l.Type]++
	r.sum.Write(l.text)
	return l, nil
}

func (r *reader) damaged(format string, args ...any) error {
	return &DamagedError{Line: r.number, Offset: r.begin, Fault: fmt.Sprintf(format, args...)}
}

func (r *reader) cut(fault string) error {
	return &DamagedError{Line: r.number, Offset: r.begin, Fault: fault, Cut: true}
}

// Summary is what an export has.
type Summary struct {
	Lines  int64 // without the last one
	Bytes  int64
	Counts map[string]int64
}

// Check reads a whole export. Its error is a *DamagedError where the file is damaged or
// cut off.
func Check(in io.Reader) (*Summary, error) {
	r := newReader(in)
	for {
		_, err := r.next()
		if errors.Is(err, io.EOF) {
			return &Summary{Lines: r.number - 2, Bytes: r.offset, Counts: r.counts}, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
