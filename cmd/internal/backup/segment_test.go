package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/cluster"
	"switchyard/storage"
)

const logCluster = "0128746f-d3fe-4afd-9b18-092bee4c0219"

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// logEntries returns entries of a log, a second apart. Every third is Raft's own.
func logEntries(first, last uint64, size int) (out []cluster.LogEntry) {
	for i := first; i <= last; i++ {
		e := cluster.LogEntry{Index: i, Term: 2 + i/4, AppendedAt: noon.Add(time.Duration(i) * time.Second), Command: i%3 != 0}
		if e.Command {
			e.Data = append(bytes.Repeat([]byte{1, byte(i)}, size/2), fmt.Sprint(i)...)
		}
		out = append(out, e)
	}
	return out
}

func keepSegment(t *testing.T, a *Archive, shard int, entries []cluster.LogEntry, until time.Time) segment {
	t.Helper()
	d, err := a.createSegment(logCluster, shard, entries[0].Index)
	if err != nil {
		t.Fatal(err)
	}
	for i := range entries {
		if err := d.add(&entries[i]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err = d.keep(t.Context(), until, storage.FormatNewest); err != nil {
		t.Fatal(err)
	}
	if err := d.discard(); err != nil {
		t.Error(err)
	}
	all, err := a.segments(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s segment) bool { return s.shard == shard && s.first == entries[0].Index })
	if i < 0 {
		t.Fatalf("the segment is not among %+v", all)
	}
	return all[i]
}

func readAll(ctx context.Context, a *Archive, s *segment) (out []cluster.LogEntry, err error) {
	o, err := a.openSegment(ctx, s)
	if err != nil {
		return nil, err
	}
	for {
		var e cluster.LogEntry
		if err := o.read(&e); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return out, err
		}
		out = append(out, e)
	}
}

// archives returns an archive without a key and one with a key, in directories.
func archives(t *testing.T) map[string]*Archive {
	t.Helper()
	return map[string]*Archive{
		"plain":     NewArchive(InDir(t.TempDir()), nil),
		"encrypted": NewArchive(InDir(t.TempDir()), madeKey(t)),
	}
}

func madeKey(t *testing.T) *Key {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	err := NewKey(file)
	key, err2 := ReadKey(file)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return key
}

func TestSegment_HasItsEntries(t *testing.T) {
	t.Parallel()
	for what, a := range archives(t) {
		entries := logEntries(5, 40, 3000)
		entries[3].AppendedAt = time.Time{}
		s := keepSegment(t, a, 7, entries, noon.Add(time.Hour))
		if s.cluster != logCluster || s.shard != 7 || s.first != 5 || s.last != 40 || s.sealed != (what == "encrypted") ||
			!s.from.Equal(entries[0].AppendedAt.Truncate(time.Millisecond)) || !s.until.Equal(noon.Add(time.Hour).Truncate(time.Millisecond)) {
			t.Errorf("%s: the listing has %+v", what, s)
		}
		got, err := readAll(t.Context(), a, &s)
		same := slices.EqualFunc(got, entries, func(a, b cluster.LogEntry) bool {
			return a.Index == b.Index && a.Term == b.Term && a.AppendedAt.Equal(b.AppendedAt) && a.Command == b.Command && bytes.Equal(a.Data, b.Data)
		})
		if err != nil || !same {
			t.Errorf("%s: %d entries came back, %v", what, len(got), err)
		}
		file := filepath.Join(a.place.Dir(), s.name())
		text, err := os.ReadFile(file)
		if err != nil || len(text) > 36*3000/4 || bytes.Contains(text, []byte("switchyard log")) == (what == "encrypted") {
			t.Errorf("%s: the file has %d bytes, %v", what, len(text), err)
		}
	}
}

func TestSegment_TakesEntriesInOrderOnly(t *testing.T) {
	t.Parallel()
	a := archives(t)["plain"]
	for _, index := range []uint64{1, 2, 4} {
		d, err := a.createSegment(logCluster, 1, 2)
		if err != nil {
			t.Fatal(err)
		}
		err = d.add(&cluster.LogEntry{Index: index})
		if (err == nil) != (index == 2) {
			t.Errorf("entry %d where 2 is due: %v", index, err)
		}
		if err := d.discard(); err != nil {
			t.Error(err)
		}
	}
	if left, err := a.place.List(t.Context(), logDir); err != nil || len(left) != 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// No entry of a damaged segment is used.
func TestSegment_RefusesDamage(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for what, a := range archives(t) {
		s := keepSegment(t, a, 7, logEntries(5, 40, 100), noon)
		file := filepath.Join(a.place.Dir(), s.name())
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		refuses := func(how string, text []byte, s segment) {
			t.Helper()
			to := filepath.Join(a.place.Dir(), s.name())
			if err := os.WriteFile(to, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := readAll(t.Context(), a, &s); err == nil || errors.Is(err, io.EOF) {
				t.Errorf("%s: a segment that %s gave %d entries, %v", what, how, len(got), err)
			}
		}
		for _, at := range []int{0, 1, len(text) / 3, len(text) / 2, len(text) - 1, random.IntN(len(text)), random.IntN(len(text))} {
			other := bytes.Clone(text)
			other[at] ^= 1
			refuses(fmt.Sprintf("has another byte %d", at), other, s)
		}
		refuses("is cut", text[:len(text)-1], s)
		refuses("is empty", nil, s)
		refuses("goes on", append(bytes.Clone(text), 0), s)
		for how, change := range map[string]func(*segment){
			"is called another shard's":   func(s *segment) { s.shard++ },
			"is called another cluster's": func(s *segment) { s.cluster = "other" },
			"is called later":             func(s *segment) { s.first, s.last = s.first+1, s.last+1 },
			"is called longer":            func(s *segment) { s.last++ },
			"is called to reach further":  func(s *segment) { s.until = s.until.Add(time.Hour) },
			"is called to begin earlier":  func(s *segment) { s.from = s.from.Add(-time.Hour) },
		} {
			other := s
			change(&other)
			refuses(how, text, other)
		}
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(t.Context(), a, &s); err != nil {
			t.Errorf("%s: the segment itself: %v", what, err)
		}
	}
}

func TestSegment_NeedsItsKey(t *testing.T) {
	t.Parallel()
	sealed := archives(t)["encrypted"]
	s := keepSegment(t, sealed, 1, logEntries(1, 3, 10), noon)
	other := NewArchive(sealed.place, madeKey(t))
	if _, err := readAll(t.Context(), other, &s); err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("with another key: %v", err)
	}
	open := NewArchive(sealed.place, nil)
	if all, err := open.segments(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("without a key there are %+v, %v", all, err)
	}
	// A segment that is not encrypted is passed over among those that are.
	keepSegment(t, open, 1, logEntries(4, 6, 10), noon)
	if all, err := sealed.segments(t.Context()); err != nil || len(all) != 1 || all[0].first != 1 {
		t.Errorf("with the key there are %+v, %v", all, err)
	}
}

func TestSegment_NamesOfOthers(t *testing.T) {
	t.Parallel()
	good := (&segment{cluster: logCluster, shard: 3, first: 1, last: 9, from: noon, until: noon, sum: "abcd"}).name()
	if _, ok := parseSegment(good); !ok {
		t.Fatal(good)
	}
	for _, name := range []string{
		"", "log/", "log/.log", "shards/" + good, strings.Replace(good, "-0003-", "-3-", 1), strings.Replace(good, "-0003-", "--003-", 1), good + ".age.age",
		strings.Replace(good, "00000000009-", "00000000000-", 1), strings.Replace(good, "abcd", "xyz", 1), strings.TrimPrefix(good, "log/"+logCluster), strings.Replace(good, "T", "t", 1),
	} {
		if s, ok := parseSegment(name); ok {
			t.Errorf("%q is taken as %+v", name, s)
		}
	}
}

// A chain of segments has no gap; where two overlap, one entry is as good as the other.
func TestLogs_Chain(t *testing.T) {
	t.Parallel()
	of := logOf{logCluster, 1}
	for _, c := range []struct {
		have  [][2]uint64
		after uint64
		last  uint64
		count int
	}{
		{nil, 4, 4, 0},
		{[][2]uint64{{5, 9}}, 4, 9, 1},
		{[][2]uint64{{6, 9}}, 4, 4, 0},
		{[][2]uint64{{1, 9}}, 4, 9, 1},
		{[][2]uint64{{1, 4}}, 4, 4, 0},
		{[][2]uint64{{10, 12}, {5, 9}, {13, 13}}, 4, 13, 3},
		{[][2]uint64{{5, 9}, {11, 12}}, 4, 9, 1},
		{[][2]uint64{{5, 9}, {7, 12}, {8, 10}}, 4, 12, 2},
		{[][2]uint64{{5, 6}, {5, 20}, {5, 7}, {21, 22}}, 4, 22, 2},
		{[][2]uint64{{5, 5}, {6, 6}, {5, 6}, {6, 9}}, 0, 0, 0},
	} {
		l := &logs{segments: map[logOf][]segment{}}
		for _, r := range c.have {
			l.segments[of] = append(l.segments[of], segment{cluster: of.cluster, shard: of.shard, first: r[0], last: r[1]})
		}
		slices.SortStableFunc(l.segments[of], func(a, b segment) int { return int(a.first) - int(b.first) })
		chain, last, err := l.chain(t.Context(), of, c.after)
		if last != c.last || len(chain) != c.count || err != nil {
			t.Errorf("%v behind %d: up to %d by %+v, %v", c.have, c.after, last, chain, err)
		}
	}
}

// Entries of an owner whose clock is behind are counted: a restore leaves them out, as it does all
// entries behind the first one of a later time.
func TestRestoring_CountsEntriesOfAClockThatWasBehind(t *testing.T) {
	t.Parallel()
	a := archives(t)["plain"]
	entries := logEntries(1, 9, 10)
	for i := 6; i < 9; i++ { // entries 7, 8 and 9, of which 9 is Raft's own
		entries[i].AppendedAt = entries[0].AppendedAt
	}
	s := keepSegment(t, a, 1, entries, noon.Add(time.Minute))
	for at, want := range map[time.Duration]int64{0: 0, 4 * time.Second: 2, 5 * time.Second: 2} {
		r := &Restoring{From: a, At: noon.Add(at)}
		o, err := a.openSegment(t.Context(), &s)
		if err != nil {
			t.Fatal(err)
		}
		var e cluster.LogEntry
		for !e.AppendedAt.After(r.At) {
			if err := o.read(&e); err != nil {
				t.Fatal(err)
			}
		}
		if late, err := r.finish(t.Context(), &cluster.Creation{}, &e, o, &logReader{opened: map[string]bool{}}); err != nil || late != want {
			t.Errorf("%d entries are late at %s, not %d, %v", late, at, want, err)
		}
	}
}
