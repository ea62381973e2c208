package transfer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"switchyard/internal/durable"
)

const (
	// exportTries is how often an export that was cut off goes on. Each exportCredit bytes that come begin the
	// count anew.
	exportTries  = 8
	exportCredit = 32 << 20
	// exportAnew is how often an export begins anew, since the workspace has changed after it was cut off.
	exportAnew = 2
	// exportPause and exportPauseLast are the first and the longest pause before it goes on.
	exportPause     = time.Second
	exportPauseLast = 16 * time.Second
	// exportSilence is how long the service may say nothing before the first line when an export goes on: it makes
	// the checksum of all lines before.
	exportSilence = 10 * time.Minute
)

// errChanged ends an export that was cut off, where the lines before and after the cut are of different moments.
var errChanged = errors.New("the workspace has changed since the connection was cut")

// Exporting says what to export, and where to.
type Exporting struct {
	Workspace string
	File      string
	// Progress is told how many bytes have come; it may be nil.
	Progress func(bytes int64)
	// Again is told why the export was cut off, and behind how many lines it goes on after a pause; 0: it begins
	// anew. It may be nil.
	Again func(why error, lines int64, pause time.Duration)
}

// Export writes a workspace to a file, which gets its name once it is whole and checked. It replaces a file of
// that name, and fails if the name is that of anything else. An export that is cut off goes on behind the last
// whole line. The service then says at the end what checksum all lines have, so that the file is the same as without
// the cut. If the workspace has changed meanwhile, the export begins anew.
func (c *Client) Export(ctx context.Context, by Exporting) (summary *Summary, err error) {
	if err := checkReplaceable(by.File); err != nil {
		return nil, err
	}
	part, err := os.CreateTemp(filepath.Dir(by.File), filepath.Base(by.File)+".part*")
	if err != nil {
		return nil, fmt.Errorf("make the file: %w", err)
	}
	defer func() {
		if err == nil {
			return
		}
		if left := os.Remove(part.Name()); !errors.Is(left, fs.ErrNotExist) { // it may have its name by now
			err = errors.Join(err, left)
		}
	}()
	x := exporting{Exporting: by, client: c, file: part}
	if err := x.all(ctx); err != nil {
		return nil, errors.Join(err, part.Close())
	}
	if err := errors.Join(part.Sync(), part.Close()); err != nil {
		return nil, fmt.Errorf("write the file: %w", err)
	}
	if err := os.Rename(part.Name(), by.File); err != nil {
		return nil, fmt.Errorf("name the file: %w", err)
	}
	return &Summary{Lines: x.lines, Bytes: x.bytes, Counts: x.counts}, durable.SyncDir(filepath.Dir(by.File))
}

// exporting is an export that is being written. Its file has whole lines only.
type exporting struct {
	Exporting
	client *Client
	file   *os.File
	begun  bool  // the service has answered once
	lines  int64 // without the last one
	bytes  int64
	counts map[string]int64
	sum    hash.Hash
}

// all writes all lines.
func (x *exporting) all(ctx context.Context) error {
	x.counts, x.sum = map[string]int64{}, sha256.New()
	tries, anew, credit := 0, 0, int64(exportCredit)
	for {
		err := x.rest(ctx)
		var cut *cutError
		changed := errors.Is(err, errChanged)
		if !changed && !errors.As(err, &cut) || ctx.Err() != nil {
			return err
		}
		if x.bytes >= credit {
			tries, credit = 0, x.bytes+exportCredit
		}
		pause := min(x.client.pause<<tries, exportPauseLast)
		if changed {
			if anew++; anew > exportAnew {
				return fmt.Errorf("%w, in each of %d tries: make it read-only, or try again later", err, anew)
			}
			if err := x.empty(); err != nil {
				return err
			}
			credit = exportCredit
		}
		if tries++; tries > exportTries {
			return fmt.Errorf("%w; it did not go on after %d tries", err, exportTries)
		}
		if x.Again != nil {
			x.Again(err, x.lines, pause)
		}
		if wait(ctx, pause) != nil {
			return Because(ctx, err)
		}
	}
}

// cutError ends an answer that was cut off, or that the service could not give now.
type cutError struct{ err error }

func (e *cutError) Error() string { return "the export is cut off: " + e.err.Error() }

func (e *cutError) Unwrap() error { return e.err }

// rest asks for the lines behind those that the file has, and writes them.
func (x *exporting) rest(ctx context.Context) error {
	path, silence := "/workspaces/"+url.PathEscape(x.Workspace)+"/export", Silence
	if x.lines > 0 {
		path += "?whole=true&after=" + strconv.FormatInt(x.lines-1, 10)
		silence = exportSilence
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(silence, func() { cancel(fmt.Errorf("the service sent nothing for %s", silence)) })
	defer watch.Stop()
	res, err := x.client.Get(ctx, path)
	if err != nil {
		var refused *RefusedError
		if err = Because(ctx, err); errors.As(err, &refused) && refused.certain() || !x.begun {
			return err
		}
		return &cutError{err}
	}
	defer func() { _ = res.Body.Close() }()
	x.begun = true
	out := bufio.NewWriterSize(x.file, 256<<10)
	err = x.write(out, newReaderFrom(&counter{res.Body, x, watch}, x.lines, x.bytes))
	if failed := out.Flush(); failed != nil {
		return fmt.Errorf("write the file: %w", failed)
	}
	if err == nil {
		return nil
	}
	return Because(ctx, err)
}

// write writes the lines of an answer. Those that it has written are whole and in order, also after an error.
func (x *exporting) write(out *bufio.Writer, r *reader) error {
	resumed := x.lines > 0
	for {
		l, err := r.next()
		var damaged *DamagedError
		switch {
		case errors.As(err, &damaged) && (!damaged.Cut || r.ended):
			return fmt.Errorf("the export is damaged: %w", err)
		case errors.Is(err, io.EOF), err != nil && r.ended: // all is there, however the connection ends
			return nil
		case err != nil:
			return &cutError{err}
		}
		text := l.text
		if resumed { // by spaces the service says that it is there while it passes over lines
			text = bytes.TrimLeft(text, " ")
		}
		switch {
		case !r.ended:
			x.lines++
			x.counts[l.Type]++
			x.sum.Write(text)
		case resumed:
			sum := hex.EncodeToString(x.sum.Sum(nil))
			if l.WholeSHA256 == "" {
				return fmt.Errorf("%w, or the service is of an older version that can't tell", errChanged)
			}
			if l.WholeSHA256 != sum {
				return errChanged
			}
			text = append(marshal(&lastLine{typeEnd, x.counts, sum}), '\n')
		}
		if _, err := out.Write(text); err != nil {
			return fmt.Errorf("write the file: %w", err)
		}
		x.bytes += int64(len(text))
	}
}

// empty removes all lines from the file.
func (x *exporting) empty() error {
	_, err := x.file.Seek(0, io.SeekStart)
	if err = errors.Join(err, x.file.Truncate(0)); err != nil {
		return fmt.Errorf("empty the file: %w", err)
	}
	x.lines, x.bytes = 0, 0
	clear(x.counts)
	x.sum.Reset()
	return nil
}

// lastLine is the last line of an export.
type lastLine struct {
	Type   string           `json:"type"`
	Counts map[string]int64 `json:"counts"`
	SHA256 string           `json:"sha256"`
}

// counter is an answer that tells how much of it has come.
type counter struct {
	io.Reader
	of    *exporting
	watch *time.Timer
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if n > 0 {
		c.watch.Reset(Silence)
		if c.of.Progress != nil {
			c.of.Progress(c.of.bytes)
		}
	}
	return n, err
}

// checkReplaceable returns an error if there is something at a path that a rename to it must not replace: a device,
// a named pipe, a link.
func checkReplaceable(file string) error {
	if file == "" {
		return errors.New("the name of the file is empty")
	}
	at, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look for a file of that name: %w", err)
	case at.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s: is a symbolic link, and would be replaced; give the path of the file", file)
	case !at.Mode().IsRegular():
		return fmt.Errorf("%s: is not a file, and would be replaced; give the path of a file", file)
	}
	return nil
}
