package transfer

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
)

const (
	rowsMedia   = "application/vnd.switchyard.rows"
	rowsVersion = 1
	// maxBlock bounds a block of rows in bytes.
	maxBlock = 20 << 20
	// mostHead bounds the line in front of the rows.
	mostHead = 4 << 10
	// passTries is how often a pass is tried.
	passTries = 5
)

// passes are the passes over the rows of a workspace that moves.
type passes struct {
	move    *Move
	arrival string
	moved   *Moved
	next    int64  // number of the next block
	index   uint64 // up to which the rows have come; 0: none have
	done    int
	doubt   bool // a block without an answer may have been taken
}

// rowsHead is the line in front of the rows.
type rowsHead struct {
	Version   int    `json:"version"`
	Workspace string `json:"workspace"`
	Index     uint64 `json:"index"`
	After     uint64 `json:"after"`
}

// pass copies all rows, or those that have changed since the last pass, and returns their bytes. Its
// error is errAnew if the move has to begin anew.
func (p *passes) pass(ctx context.Context, step string) (bytes int64, err error) {
	pause := 100 * time.Millisecond
	for try := 1; ; try++ {
		bytes, err = p.try(ctx, step)
		if err == nil {
			p.done++
			p.moved.Passes++
			p.moved.Bytes += bytes
			return bytes, nil
		}
		var refused *RefusedError
		final := errors.As(err, &refused) && refused.certain()
		switch {
		case refusedWith(err, http.StatusConflict) && p.index > 0:
			return 0, fmt.Errorf("%w: %w", errBehind, err)
		case final, try == passTries, ctx.Err() != nil:
			return 0, err
		case p.doubt:
			// A further try has other rows in the block of this number, and a block that was
			// taken before is passed over.
			return 0, fmt.Errorf("%w: %w", errAnew, err)
		case p.index == 0 && bytes > 0:
			// Rows that came with a part of the first pass may have been deleted since, which
			// no later pass tells.
			return 0, fmt.Errorf("%w: %w", errAnew, err)
		}
		if err := wait(ctx, pause); err != nil {
			return 0, err
		}
		pause = min(2*pause, retryLast)
	}
}

// try is one try of a pass. It returns the bytes that were copied also with an error.
func (p *passes) try(ctx context.Context, step string) (bytes int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := cmp.Or(p.move.silence, Silence)
	watch := time.AfterFunc(silence, func() { cancel(fmt.Errorf("nothing was copied for %s", silence)) })
	defer watch.Stop()
	path := p.move.path("/cluster/workspaces/", "/rows")
	if p.index > 0 {
		path += "?after=" + strconv.FormatUint(p.index, 10)
	}
	res, err := p.move.From.Get(ctx, path)
	if err != nil {
		return 0, fmt.Errorf("read the rows: %w", Because(ctx, err))
	}
	defer func() { _ = res.Body.Close() }()
	in := bufio.NewReaderSize(res.Body, 64<<10)
	head, err := readHead(in)
	if err != nil {
		return 0, fmt.Errorf("read the rows: %w", Because(ctx, err))
	}
	if head.Version != rowsVersion || head.Workspace != p.move.Workspace || head.After != p.index {
		return 0, fmt.Errorf("the old cluster sends rows of version %d of workspace %q behind index %d", head.Version, head.Workspace, head.After)
	}
	var block []byte
	for {
		block, err = readBlock(in, block)
		if errors.Is(err, io.EOF) {
			p.index = head.Index
			return bytes, nil
		}
		if err != nil {
			return bytes, fmt.Errorf("read the rows: %w", Because(ctx, err))
		}
		to := p.move.arrivalPath(p.arrival) + "/rows?n=" + strconv.FormatInt(p.next, 10)
		if err := p.move.To.insist(ctx, http.MethodPost, to, rowsMedia, block, nil); err != nil {
			p.doubt = true
			return bytes, fmt.Errorf("send the rows: %w", Because(ctx, err))
		}
		watch.Reset(silence)
		p.next++
		bytes += int64(len(block))
		if p.move.Progress != nil {
			p.move.Progress(step, bytes)
		}
	}
}

func readHead(in *bufio.Reader) (*rowsHead, error) {
	line, err := in.ReadSlice('\n')
	if err == nil && len(line) > mostHead {
		err = errors.New("the first line is too long")
	}
	var head rowsHead
	if err == nil {
		err = json.Unmarshal(line, &head)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &head, err
}

// readBlock reads a block into the space of buf. The error is io.EOF behind the last one.
func readBlock(in *bufio.Reader, buf []byte) ([]byte, error) {
	var header [4 + 8]byte
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return buf, cutOff(err)
	}
	size := binary.BigEndian.Uint32(header[:])
	switch {
	case size == 0:
		return buf, io.EOF
	case size > maxBlock:
		return buf, fmt.Errorf("a block of %d bytes", size)
	case int(size) > cap(buf):
		buf = make([]byte, size)
	}
	buf = buf[:size]
	if _, err := io.ReadFull(in, buf); err != nil {
		return buf, cutOff(err)
	}
	if xxhash.Sum64(buf) != binary.BigEndian.Uint64(header[4:]) {
		return buf, errors.New("a block is damaged")
	}
	return buf, nil
}

// cutOff returns the error for an answer that ended before its last block.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
