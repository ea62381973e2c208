package transfer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	// chunkBytes and chunkLines bound the lines of a request, unless it is one alone.
	chunkBytes = 256 << 10
	chunkLines = 500
	// retryFor is how long a request is repeated that the service can't serve now.
	retryFor  = 2 * time.Minute
	retryLast = 5 * time.Second
	// answerWithin bounds one request.
	answerWithin = 70 * time.Second
)

// Progress is the progress of an import, as the service tells it.
type Progress struct {
	OrganizationID string `json:"organizationId"`
	State          string `json:"state"`
	Next           int64  `json:"next"`
	// SHA256 is that of the lines before Next. Services of older versions leave it out.
	SHA256 string `json:"sha256"`
}

// done is the state of an import that has ended.
const done = "done"

// Import takes a file into a service: into the workspace with an id, which must be empty,
// or, where that is empty, into a new one. The file is checked first. An import that was
// interrupted goes on where it was, and one that is done is not repeated. The error is an
// *OtherFileError where the workspace has lines that the file has not.
func (c *Client) Import(ctx context.Context, file io.ReadSeeker, workspace string, progress func(next, lines int64)) (*Progress, *Summary, error) {
	summary, err := Check(file)
	if err != nil {
		return nil, nil, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, nil, fmt.Errorf("read the file again: %w", err)
	}
	r := newReader(file)
	first, err := r.next()
	if err != nil {
		return nil, nil, err
	}
	var at *Progress
	if workspace == "" {
		at, err = c.ask(ctx, "/cluster/import", "application/json", first.text)
	} else {
		at, err = c.ask(ctx, importPath(workspace), mediaLines, first.text)
	}
	if err != nil {
		return nil, nil, err
	}
	same, err := r.passOver(at)
	if err != nil {
		return nil, nil, err
	}
	if !same || at.State == done && at.Next != summary.Lines {
		return nil, nil, &OtherFileError{Progress: *at}
	}
	// The last line goes to the service also if the import is done. An answer of an older version has no
	// checksum, and then only the last line tells the file from another one.
	for at.State != done || !r.sent() {
		chunk, err := r.chunk(at.Next)
		if err != nil {
			return nil, nil, err
		}
		if at, err = c.ask(ctx, importPath(at.OrganizationID), mediaLines, chunk); err != nil {
			return nil, nil, err
		}
		if progress != nil {
			progress(at.Next, summary.Lines)
		}
	}
	return at, summary, nil
}

// OtherFileError reports that a workspace has the lines of another file.
type OtherFileError struct{ Progress Progress }

func (e *OtherFileError) Error() string {
	if e.Progress.State == done {
		return fmt.Sprintf("workspace %s has the content of another file, such as an older export, and takes nothing of this one: delete the workspace first, or import this file into another, empty one", e.Progress.OrganizationID)
	}
	lines := "1 line"
	if n := e.Progress.Next; n != 1 {
		lines = fmt.Sprintf("%d lines", n)
	}
	return fmt.Sprintf("workspace %s has %s of another file, such as an older export: go on with that file, or delete the workspace first", e.Progress.OrganizationID, lines)
}

const mediaLines = "application/x-ndjson"

func importPath(workspace string) string {
	return "/workspaces/" + url.PathEscape(workspace) + "/import"
}

// passOver reads the lines that the service has, and reports whether they are those of the file.
func (r *reader) passOver(at *Progress) (same bool, err error) {
	for r.number < at.Next {
		if _, err := r.next(); err != nil {
			return false, err
		}
		if r.ended {
			return false, nil
		}
	}
	return at.SHA256 == "" || at.SHA256 == hex.EncodeToString(r.sum.Sum(nil)), nil
}

// sent reports whether chunk has returned the last line.
func (r *reader) sent() bool { return r.ended && len(r.spare) == 0 }

// chunk returns lines for a request, from number next on. The last line goes with those
// before it.
func (r *reader) chunk(next int64) ([]byte, error) {
	text := r.spare
	r.spare = nil
	if r.ended && len(text) > 0 {
		return text, nil
	}
	for n := 0; ; {
		l, err := r.next()
		if errors.Is(err, io.EOF) && len(text) > 0 {
			return text, nil
		}
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the service has taken every line, and the import is not done: the file was changed")
		}
		if err != nil {
			return nil, err
		}
		if l.N != nil && *l.N < next {
			continue
		}
		if len(text) > 0 && len(text)+len(l.text) > chunkBytes {
			r.spare = append([]byte(nil), l.text...)
			return text, nil
		}
		text = append(text, l.text...)
		if n++; n == chunkLines || r.ended {
			return text, nil
		}
	}
}

// ask sends lines and returns the progress. A request that the service can't serve now is
// sent again: lines that were taken are passed over.
func (c *Client) ask(ctx context.Context, path, media string, body []byte) (*Progress, error) {
	var answer struct {
		Import *Progress `json:"import"`
	}
	err := c.insist(ctx, http.MethodPost, path, media, body, &answer)
	if err == nil && answer.Import == nil {
		err = fmt.Errorf("read the answer of %s: it has no import", c.base)
	}
	return answer.Import, err
}
