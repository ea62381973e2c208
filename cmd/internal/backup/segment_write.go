package backup

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/s2"

	"switchyard/cluster"
	"switchyard/storage"
)

// The content of a segment is a stream of S2: segmentMagic, the entries, an entry of length 0, and a
// segmentEnd in JSON. An entry is its length (uvarint, of the rest), flags (1 byte: 1 for an entry of
// the shard and not of Raft itself), term (uvarint), time of appending (8 bytes, big endian, Unix
// nanoseconds, 0: none) and data: kind, epoch and body, as the cluster has them. The index of an
// entry follows from its place.
const (
	segmentMagic   = "switchyard log 1\n"
	segmentVersion = 1
	flagCommand    = 1

	// segmentBytes is the size of the entries from which a segment takes no more.
	segmentBytes = 8 << 20
	// maxEntry bounds an entry in bytes, and maxSegment a file.
	maxEntry   = 64 << 20
	maxSegment = segmentBytes + 2*maxEntry
)

// segmentEnd is the end of a segment. It repeats what the name has, which somebody may have changed.
type segmentEnd struct {
	Version   int            `json:"version"`
	ClusterID string         `json:"clusterId"`
	Shard     int            `json:"shard"`
	First     uint64         `json:"first"`
	Last      uint64         `json:"last"`
	From      time.Time      `json:"from"`
	Until     time.Time      `json:"until"`
	Format    storage.Format `json:"format"` // that of the cluster after the last entry was applied
}

// segmentDraft is a segment being written.
type segmentDraft struct {
	to      *Archive
	out     *output
	packed  *s2.Writer
	content *bufio.Writer
	end     segmentEnd
	size    int64
	latest  time.Time // when the last entry was appended
	head    []byte    // of the entry that is added
}

// createSegment begins a segment of a shard, whose first entry has the index first.
func (a *Archive) createSegment(cluster string, shard int, first uint64) (*segmentDraft, error) {
	out, err := a.create(logDir)
	if err != nil {
		return nil, err
	}
	d := &segmentDraft{to: a, out: out, end: segmentEnd{Version: segmentVersion, ClusterID: cluster, Shard: shard, First: first, Last: first - 1}}
	d.packed = s2.NewWriter(out, s2.WriterConcurrency(1), s2.WriterBlockSize(256<<10))
	d.content = bufio.NewWriter(d.packed)
	_, _ = d.content.WriteString(segmentMagic) // the error comes again when the content ends
	return d, nil
}

// add appends an entry. The error of a write comes when the segment is kept.
func (d *segmentDraft) add(e *cluster.LogEntry) error {
	if e.Index != d.end.Last+1 || len(e.Data) > maxEntry/2 {
		return fmt.Errorf("entry %d, of %d bytes, where %d is due", e.Index, len(e.Data), d.end.Last+1)
	}
	var flags byte
	var appended int64
	if e.Command {
		flags |= flagCommand
	}
	if !e.AppendedAt.IsZero() {
		appended = e.AppendedAt.UnixNano()
	}
	d.head = append(d.head[:0], flags)
	d.head = binary.AppendUvarint(d.head, e.Term)
	d.head = binary.BigEndian.AppendUint64(d.head, uint64(appended))
	var size [binary.MaxVarintLen64]byte
	_, _ = d.content.Write(binary.AppendUvarint(size[:0], uint64(len(d.head)+len(e.Data))))
	_, _ = d.content.Write(d.head)
	_, _ = d.content.Write(e.Data)
	if d.end.Last < d.end.First {
		d.end.From = e.AppendedAt
	}
	d.end.Last, d.latest = e.Index, e.AppendedAt
	d.size += int64(len(d.head) + len(e.Data))
	return nil
}

// keep gives the segment its name, and proves what is in the archive then.
func (d *segmentDraft) keep(ctx context.Context, until time.Time, format storage.Format) (bytes int64, err error) {
	d.end.From, d.end.Until, d.end.Format = d.end.From.UTC(), until.UTC(), format
	text, err := json.Marshal(&d.end)
	if err == nil {
		_, err = d.content.Write(append([]byte{0}, text...))
	}
	if err = errors.Join(err, d.content.Flush(), d.packed.Close()); err != nil {
		return 0, fmt.Errorf("write a segment: %w", err)
	}
	if _, err := d.out.finish(); err != nil {
		return 0, err
	}
	s := segment{cluster: d.end.ClusterID, shard: d.end.Shard, first: d.end.First, last: d.end.Last, from: d.end.From, until: d.end.Until,
		sum: d.to.sumName(d.out.hex()), sealed: d.to.key != nil}
	if err := d.out.draft.Keep(ctx, s.name()); err != nil {
		return 0, err
	}
	if err := d.to.readSegment(ctx, &s, io.Discard); err != nil {
		return 0, errors.Join(err, d.to.place.Remove(context.WithoutCancel(ctx), s.name()))
	}
	return d.size, nil
}

// discard removes what was written unless it was kept.
func (d *segmentDraft) discard() error {
	_ = d.packed.Close() // ends the compression
	return d.out.draft.Discard()
}

// readSegment writes the compressed content of a segment to out, and compares its sum with the name's.
func (a *Archive) readSegment(ctx context.Context, s *segment, out io.Writer) error {
	in, err := a.place.Open(ctx, s.name())
	if err != nil {
		return fmt.Errorf("read %s: %w", s.name(), err)
	}
	defer func() { _ = in.Close() }()
	from := &source{r: in, ctx: ctx}
	content, err := a.unsealed(from)
	sum := sha256.New()
	var n int64
	if err == nil {
		n, err = io.Copy(io.MultiWriter(out, sum), io.LimitReader(content, maxSegment+1))
	}
	switch {
	case from.failed != nil:
		return fmt.Errorf("read %s: %w", s.name(), from.failed)
	case err == nil && n > maxSegment:
		err = errors.New("it is too large")
	case err == nil && a.sumName(hex.EncodeToString(sum.Sum(nil))) != s.sum:
		err = errors.New("its content is not that of its name")
	}
	if err != nil {
		return s.damaged(err)
	}
	return nil
}

// errDamaged is the error of a segment whose content is not as it was written, or not for the key.
var errDamaged = errors.New("is damaged")

// damaged returns the error of a segment that can't be read. It is never io.EOF, which is the end of
// the entries.
func (s *segment) damaged(err error) error {
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w (%v)", io.ErrUnexpectedEOF, err) //nolint:errorlint // see above
	}
	return fmt.Errorf("%s %w: %w", s.name(), errDamaged, err)
}
