package backup

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"switchyard/cluster"
)

// readLog returns the indexes of the entries behind an image that a restore of a moment reads.
func readLog(t *testing.T, a *Archive, image uint64, at time.Time) (indexes []uint64, l *logs, err error) {
	t.Helper()
	m := &Manifest{ClusterID: logCluster, Moment: noon, Files: []File{{Shard: 1, Index: image}}}
	l, err = a.listLogs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.reach(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	r, err := l.open(t.Context(), m, &m.Files[0], at)
	if err != nil {
		t.Fatal(err)
	}
	last := image
	for {
		o, err := r.next(t.Context())
		if errors.Is(err, io.EOF) {
			return indexes, l, nil
		}
		if err == nil {
			err = r.overlaps(t.Context(), &o.segment)
		}
		if err != nil {
			return indexes, l, err
		}
		for {
			var e cluster.LogEntry
			err := o.read(&e)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := r.compare(&e); err != nil {
				return indexes, l, err
			}
			if e.Index > last {
				indexes, last = append(indexes, e.Index), e.Index
			}
		}
	}
}

func upTo(first, last uint64) (all []uint64) {
	for i := first; i <= last; i++ {
		all = append(all, i)
	}
	return all
}

// Segments of another key are passed over where they overlap with those of the key.
func TestLogs_ChainsOfTwoKeys(t *testing.T) {
	t.Parallel()
	place := InDir(t.TempDir())
	older, newer := NewArchive(place, madeKey(t)), NewArchive(place, madeKey(t))
	second := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }
	for _, r := range [][2]uint64{{1, 10}, {11, 20}, {21, 30}} {
		keepSegment(t, older, 1, logEntries(r[0], r[1], 10), second(int(r[1])))
	}
	for _, r := range [][2]uint64{{5, 33}, {34, 40}} {
		keepSegment(t, newer, 1, logEntries(r[0], r[1], 10), second(int(r[1])))
	}
	for _, c := range []struct {
		key   *Archive
		image uint64
		want  []uint64
	}{{older, 3, upTo(4, 30)}, {older, 15, upTo(16, 30)}, {newer, 4, upTo(5, 40)}, {newer, 25, upTo(26, 40)}, {newer, 33, upTo(34, 40)}} {
		until := c.want[len(c.want)-1]
		got, l, err := readLog(t, c.key, c.image, second(int(until)))
		if !slices.Equal(got, c.want) || err != nil || len(l.damaged) > 0 {
			t.Errorf("behind the image of %d there are %d, %v, %v", c.image, got, err, l.damaged)
		}
		m := &Manifest{ClusterID: logCluster, Moment: noon, Files: []File{{Shard: 1, Index: c.image}}}
		if spans, err := c.key.Spans(t.Context(), []*Manifest{m}); err != nil || !spans[0].To.Equal(second(int(until)).Truncate(time.Millisecond)) {
			t.Errorf("the image of %d leads to %v, %v", c.image, spans, err)
		}
	}
}

// The entries of a damaged segment come from another one that has them.
func TestLogs_LeavesOutADamagedSegment(t *testing.T) {
	t.Parallel()
	for what, a := range archives(t) {
		second := func(n int) time.Time { return noon.Truncate(time.Second).Add(time.Duration(n) * time.Second) }
		keepSegment(t, a, 1, logEntries(1, 10, 10), second(10))
		keepSegment(t, a, 1, logEntries(6, 12, 10), second(12))
		bad := keepSegment(t, a, 1, logEntries(8, 30, 10), second(30))
		keepSegment(t, a, 1, logEntries(11, 20, 10), second(20))
		file := filepath.Join(a.place.Dir(), bad.name())
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int{len(text) - 1, len(text) - 20, 0} {
			damaged := bytes.Clone(text)
			damaged[at] ^= 1
			if err := os.WriteFile(file, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			got, l, err := readLog(t, a, 2, second(20))
			if !slices.Equal(got, upTo(3, 20)) || err != nil || len(l.damaged) != 1 {
				t.Errorf("%s: with another byte %d there are %d, %v, %v", what, at, got, err, l.damaged)
			}
			if got, _, err := readLog(t, a, 2, second(21)); !errors.Is(err, errDamaged) {
				t.Errorf("%s: there are %d, %v for a moment that only the damaged segment leads to", what, got, err)
			}
		}
	}
}
