package backup

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/s2"

	"switchyard/cluster"
	"switchyard/storage"
)

// openedSegment reads the entries of a segment whose content is proved.
type openedSegment struct {
	segment
	in   *bufio.Reader
	next uint64 // index of the next entry
	// format is set behind the last entry.
	format storage.Format
}

// openSegment reads all of a segment, and then proves it, before any entry is used.
func (a *Archive) openSegment(ctx context.Context, s *segment) (*openedSegment, error) {
	var content bytes.Buffer
	if err := a.readSegment(ctx, s, &content); err != nil {
		return nil, err
	}
	o := &openedSegment{segment: *s, in: bufio.NewReader(s2.NewReader(&content)), next: s.first}
	magic := make([]byte, len(segmentMagic))
	if _, err := io.ReadFull(o.in, magic); err != nil || string(magic) != segmentMagic {
		return nil, o.damaged(errors.Join(err, errors.New("it is not a segment of this version")))
	}
	return o, nil
}

// read returns the next entry, with data of its own. It returns io.EOF behind the last.
func (o *openedSegment) read(e *cluster.LogEntry) error {
	size, err := binary.ReadUvarint(o.in)
	switch {
	case err != nil:
		return o.damaged(err)
	case size == 0:
		if err := o.end(); err != nil {
			return o.damaged(err)
		}
		return io.EOF
	case size > maxEntry:
		return o.damaged(fmt.Errorf("an entry of %d bytes", size))
	case o.next > o.last:
		return o.damaged(fmt.Errorf("it has an entry behind %d", o.last))
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(o.in, text); err != nil {
		return o.damaged(err)
	}
	flags, text := text[0], text[1:]
	term, n := binary.Uvarint(text)
	if n <= 0 || len(text) < n+8 {
		return o.damaged(errors.New("an entry is cut off"))
	}
	appended, data := int64(binary.BigEndian.Uint64(text[n:])), text[n+8:]
	*e = cluster.LogEntry{Index: o.next, Term: term, Command: flags&flagCommand != 0, Data: data}
	if appended != 0 {
		e.AppendedAt = time.Unix(0, appended)
	}
	o.next++
	return nil
}

// end compares the end of the segment with its name.
func (o *openedSegment) end() error {
	var end segmentEnd
	text, err := io.ReadAll(io.LimitReader(o.in, maxHead))
	if err == nil {
		err = json.Unmarshal(text, &end)
	}
	if err != nil {
		return fmt.Errorf("read its end: %w", err)
	}
	is := segment{cluster: end.ClusterID, shard: end.Shard, first: end.First, last: end.Last, from: end.From, until: end.Until, sum: o.sum, sealed: o.sealed}
	if is.name() != o.name() || o.next != o.last+1 {
		return fmt.Errorf("it is %s, with entries up to %d", is.name(), o.next-1)
	}
	if end.Version != segmentVersion {
		return fmt.Errorf("it is of version %d, and this program reads version %d", end.Version, segmentVersion)
	}
	o.format = end.Format
	return nil
}
