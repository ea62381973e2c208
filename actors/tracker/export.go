package tracker

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"slices"
	"strconv"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// ExportIn asks for the lines of an export.
type ExportIn struct {
	// After is the number of a line; the lines behind it are sent. Without it all are.
	After Opt[int64] `query:"after" rules:"min=0"`
	// Whole has the last line tell the SHA-256 of all lines, with those that are left out (Decision 68).
	Whole Opt[bool] `query:"whole"`
}

// ExportMedia is the content type of an export.
const ExportMedia = "application/x-ndjson"

// ExportWorkspace sends everything that a workspace has, as of one moment, one record a
// line (Decision 68). The answer is a stream, see Export; the query itself answers a
// request for the head alone.
var ExportWorkspace = NewQuery[ExportIn, None]("ExportWorkspace", "Export a workspace", Needs{Level: Admin}, func(*View, *ExportIn) (Reply, error) {
	return Reply{}, nil
}, AnswersFile(ExportMedia), AnswersLines, Answers(Done))

const (
	// exportVersion is the version of the format, in the first line.
	exportVersion = 1
	// exportWorkspace and exportEnd are the types of the first and the last line.
	exportWorkspace = "workspace"
	exportEnd       = "end"
	// exportWindow is the number of lines whose places are held in memory. For each window
	// the keys of the whole workspace are walked once.
	exportWindow = 1 << 17
	// exportBlock is the least that Next returns before the end, in bytes.
	exportBlock = 64 << 10
	// exportPassed is the number of bytes of left-out lines that one Next makes for their checksum. Without
	// a checksum no line is made, and each counts passedLine.
	exportPassed = 4 << 20
	passedLine   = 64
)

// Export makes the lines of a workspace from one snapshot, in the order in which their
// records were made. It holds one window of places and one block of lines in memory. It
// is used by one goroutine.
type Export struct {
	view  *View
	after int64 // lines up to this number are left out; -1 for none
	n     int64 // number of the next line

	places []exportPlace // of the window
	at     int           // the next of places
	last   exportPlace   // the last place of the windows so far
	window int

	counts map[string]int64
	sum    hash.Hash
	whole  hash.Hash // of all lines; nil if nobody asks for it
	block  []byte
	passed int // bytes of left-out lines since Next was called
	passes int // after so many of them Next returns
	spaces int // that were sent in front of the next line
	ended  bool
}

// exportPlace is the place of a line in the export.
type exportPlace struct {
	made storage.ID
	kind int // index in transferKinds; -1 before all
	key  string
}

func comparePlaces(a, b exportPlace) int {
	return cmp.Or(slices.Compare(a.made[:], b.made[:]), cmp.Compare(a.kind, b.kind), cmp.Compare(a.key, b.key))
}

// NewExport begins the export of a workspace. v reads a snapshot, which the caller closes
// after the last Next.
func NewExport(v *View, in *ExportIn) *Export {
	e := &Export{view: v, after: -1, counts: map[string]int64{}, sum: sha256.New(), last: exportPlace{kind: -1}, window: exportWindow, passes: exportPassed}
	if in.After.Set {
		e.after = in.After.Value
	}
	if in.Whole.Value {
		e.whole = sha256.New()
	}
	return e
}

// Next returns the next lines, which are valid until the following call; io.EOF after the
// last. While it passes over lines that are left out there is a space, which JSON allows in front of a line:
// the nodes and proxies on the way, and the client, take an answer for dead in which nothing comes.
func (e *Export) Next() ([]byte, error) {
	if e.ended {
		return nil, io.EOF
	}
	e.block, e.passed = e.block[:0], 0
	for len(e.block) < exportBlock && e.passed < e.passes && !e.ended {
		if err := e.line(); err != nil {
			return nil, fmt.Errorf("export workspace %s: %w", e.view.Workspace(), err)
		}
	}
	if len(e.block) == 0 {
		e.block = append(e.block, ' ')
		e.spaces++
	}
	return e.block, nil
}

// line appends the next line to the block, unless it is left out.
func (e *Export) line() error {
	if e.n == 0 {
		row, err := e.view.workspace()
		if err != nil {
			return err
		}
		data, err := json.MarshalWithOption(&row.Value, json.DisableHTMLEscape())
		if err != nil {
			return fmt.Errorf("encode the workspace: %w", err)
		}
		return e.add(exportWorkspace, func(b []byte) ([]byte, error) { return append(b, data...), nil })
	}
	if e.at == len(e.places) {
		if err := e.fill(); err != nil {
			return err
		}
		if len(e.places) == 0 {
			return e.appendEnd()
		}
	}
	p := &e.places[e.at]
	e.at++
	kind := &transferKinds[p.kind]
	return e.add(kind.name, func(b []byte) ([]byte, error) { return kind.line(e.view, b, []byte(p.key)) })
}

// add appends a line of a type.
func (e *Export) add(kind string, data func([]byte) ([]byte, error)) error {
	n := e.n
	e.n++
	left := n <= e.after
	if left && e.whole == nil {
		e.passed += passedLine
		return nil
	}
	start := len(e.block)
	b := strconv.AppendInt(append(e.block, `{"n":`...), n, 10)
	b = append(append(append(b, `,"type":"`...), kind...), '"')
	if n == 0 {
		b = strconv.AppendInt(append(b, `,"version":`...), exportVersion, 10)
	}
	b, err := data(append(b, `,"data":`...))
	if err != nil {
		return err
	}
	b = append(b, "}\n"...)
	e.block = b
	if e.whole != nil {
		e.whole.Write(e.block[start:])
	}
	if left {
		e.passed += len(e.block) - start
		e.block = e.block[:start]
		return nil
	}
	e.sum.Write(bytes.Repeat([]byte{' '}, e.spaces))
	e.spaces = 0
	e.sum.Write(e.block[start:])
	e.counts[kind]++
	return nil
}

// exportSummary is the last line of an export.
type exportSummary struct {
	Type string `json:"type"`
	// Counts is the number of lines of each type, without this one.
	Counts map[string]int64 `json:"counts"`
	// SHA256 is that of all bytes before this line, without spaces in front of this line.
	SHA256 string `json:"sha256"`
	// WholeSHA256 is that of all lines before this one, with those that were left out; see ExportIn.
	WholeSHA256 string `json:"wholeSha256,omitempty"`
}

// appendEnd appends the last line.
func (e *Export) appendEnd() error {
	end := exportSummary{Type: exportEnd, Counts: e.counts, SHA256: hex.EncodeToString(e.sum.Sum(nil))}
	if e.whole != nil {
		end.WholeSHA256 = hex.EncodeToString(e.whole.Sum(nil))
	}
	line, err := json.Marshal(&end)
	if err != nil {
		return fmt.Errorf("encode the last line: %w", err)
	}
	e.block = append(append(e.block, line...), '\n')
	e.ended = true
	return nil
}

// fill finds the places of the next window.
func (e *Export) fill() error {
	e.places, e.at = e.places[:0], 0
	bound := exportPlace{kind: -1} // places from here on are of a later window; kind -1: not known yet
	for i := range transferKinds {
		err := transferKinds[i].places(e.view, func(made storage.ID, key []byte) {
			p := exportPlace{made: made, kind: i, key: string(key)}
			if comparePlaces(p, e.last) <= 0 || bound.kind >= 0 && comparePlaces(p, bound) >= 0 {
				return
			}
			if e.places = append(e.places, p); len(e.places) == 2*e.window {
				slices.SortFunc(e.places, comparePlaces)
				bound = e.places[e.window]
				e.places = e.places[:e.window]
			}
		})
		if err != nil {
			return fmt.Errorf("find the records of type %s: %w", transferKinds[i].name, err)
		}
	}
	slices.SortFunc(e.places, comparePlaces)
	if len(e.places) > e.window {
		e.places = e.places[:e.window]
	}
	if n := len(e.places); n > 0 {
		e.last = e.places[n-1]
	}
	return nil
}

// Founded reports whether the workspace exists.
func (v *View) Founded() (bool, error) {
	there, err := v.Has(workspaceTable, nil)
	if err != nil {
		return false, fmt.Errorf("look for the workspace: %w", err)
	}
	return there, nil
}
