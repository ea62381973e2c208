package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// rowKey of a test row.
func rowKey(shard Shard, n int) []byte {
	start, _ := WorkspaceRange(shard, ID{9})
	return Key(append(start, 7)).U64(uint64(n))
}

// scatter writes rows of all sizes, overwrites and deletes some, and leaves them
// partly in tables, partly in the memtable.
func scatter(t testing.TB, s *Store, shard Shard, rows int, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, uint64(shard)))
	filler := make([]byte, 2<<20)
	for i := range filler {
		filler[i] = byte(random.Uint32())
	}
	db := s.State()
	for i := range rows {
		size := []int{0, 20, 700, 3000}[random.IntN(4)]
		if i == rows/2 {
			size = len(filler)
		}
		must(t, db.Set(rowKey(shard, random.IntN(2*rows)), filler[:size], pebble.NoSync))
		must(t, db.Merge(rowKey(shard, 4*rows+i%10), []byte{byte(i)}, pebble.NoSync))
		switch random.IntN(rows) {
		case 0:
			must(t, s.FlushState())
		case 1, 2:
			must(t, db.Delete(rowKey(shard, random.IntN(2*rows)), pebble.NoSync))
		case 3:
			from := random.IntN(2 * rows)
			must(t, db.DeleteRange(rowKey(shard, from), rowKey(shard, from+5), pebble.NoSync))
		}
	}
}

func fingerprint(t testing.TB, db pebble.Reader, shard Shard) Fingerprint {
	t.Helper()
	return ok(FingerprintOf(context.Background(), db, shard))(t)
}

// stream exports a shard into memory.
func stream(t testing.TB, s *Store, shard Shard) []byte {
	t.Helper()
	e := ok(s.Export(t.Context(), shard, time.Second))(t)
	b := ok(io.ReadAll(e))(t)
	if int64(len(b)) != e.Size() {
		t.Fatalf("the stream has %d bytes, its size is %d", len(b), e.Size())
	}
	must(t, e.Close())
	return b
}

// receive imports a stream. After an error nothing is left of it.
func receive(t testing.TB, s *Store, shard Shard, r io.Reader) error {
	t.Helper()
	i := ok(s.Import(shard))(t)
	_, err := io.Copy(i, r)
	if err == nil {
		err = i.Finish(t.Context())
	}
	if err == nil {
		err = i.Ingest(t.Context())
	}
	must(t, i.Close())
	if left, _ := s.transfer.fs.List(s.transfer.dir); len(left) > 0 {
		t.Errorf("an import left %v", left)
	}
	return err
}

func TestExport_TakesThePlaceOfAnotherRange(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string][2]int{
		"over nothing": {300, 0}, "over another state": {300, 400}, "nothing over a state": {0, 300}, "nothing over nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := memory(t), memory(t)
			scatter(t, from, 5, rows[0], 1)
			scatter(t, to, 5, rows[1], 2)
			for _, s := range []*Store{from, to} { // neighbors on both sides
				scatter(t, s, 4, 50, 3)
				scatter(t, s, 6, 50, 4)
			}
			before := map[Shard]Fingerprint{4: fingerprint(t, to.State(), 4), 6: fingerprint(t, to.State(), 6)}
			old := to.State().NewSnapshot()
			replaced := fingerprint(t, old, 5)
			must(t, receive(t, to, 5, bytes.NewReader(stream(t, from, 5))))
			want := fingerprint(t, from.State(), 5)
			if got := fingerprint(t, to.State(), 5); got != want {
				t.Errorf("the copy is %s, the original %s", got, want)
			}
			for shard, want := range before {
				if got := fingerprint(t, to.State(), shard); got != want {
					t.Errorf("shard %d was %s and is %s", shard, want, got)
				}
			}
			if got := fingerprint(t, old, 5); got != replaced {
				t.Errorf("a snapshot from before sees %s, and saw %s", got, replaced)
			}
			must(t, old.Close())
			// Later writes are above it, also after compactions.
			must(t, to.State().Set(rowKey(5, 1), []byte("later"), pebble.NoSync))
			must(t, from.State().Set(rowKey(5, 1), []byte("later"), pebble.NoSync))
			must(t, to.FlushState())
			must(t, to.State().Compact(t.Context(), []byte{0}, []byte{0xff}, false))
			if got, want := fingerprint(t, to.State(), 5), fingerprint(t, from.State(), 5); got != want {
				t.Errorf("after a compaction the copy is %s, the original %s", got, want)
			}
		})
	}
}

func TestExport_SeveralSections(t *testing.T) {
	t.Parallel()
	from, to := memory(t), memory(t)
	random := rand.New(rand.NewPCG(1, 1))
	value := make([]byte, 1<<20)
	for n := range 80 {
		for i := range value {
			value[i] = byte(random.Uint32())
		}
		must(t, from.State().Set(rowKey(2, n), value, pebble.NoSync))
		must(t, to.State().Set(rowKey(2, n*3), value[:100], pebble.NoSync))
	}
	e := ok(from.Export(t.Context(), 2, time.Second))(t)
	if len(e.sections) != 3 {
		t.Errorf("%d sections", len(e.sections))
	}
	must(t, receive(t, to, 2, e))
	must(t, e.Close())
	if got, want := fingerprint(t, to.State(), 2), fingerprint(t, from.State(), 2); got != want {
		t.Errorf("the copy is %s, the original %s", got, want)
	}
	if left, _ := from.transfer.fs.List(from.transfer.dir); len(left) > 0 {
		t.Errorf("an export left %v", left)
	}
}

func TestExport_IsOfOneMoment(t *testing.T) {
	t.Parallel()
	from, to := memory(t), memory(t)
	scatter(t, from, 1, 200, 1)
	want := fingerprint(t, from.State(), 1)
	e := ok(from.Export(t.Context(), 1, time.Second))(t)
	scatter(t, from, 1, 200, 2)
	must(t, receive(t, to, 1, e))
	must(t, e.Close())
	if got := fingerprint(t, to.State(), 1); got != want {
		t.Errorf("the copy is %s, the original was %s", got, want)
	}
}

func TestImport_RefusesWhatIsNoWholeExport(t *testing.T) {
	t.Parallel()
	from, to := memory(t), memory(t)
	scatter(t, from, 1, 60, 1)
	scatter(t, to, 1, 60, 2)
	whole, other := stream(t, from, 1), stream(t, to, 2)
	want := fingerprint(t, to.State(), 1)
	flip := func(at int) []byte {
		b := bytes.Clone(whole)
		b[at] ^= 0x40
		return b
	}
	cases := map[string][]byte{
		"nothing":                 nil,
		"another shard":           other,
		"a header only":           whole[:streamHeaderLen],
		"half a header":           whole[:streamHeaderLen/2],
		"half":                    whole[:len(whole)/2],
		"all but a byte":          whole[:len(whole)-1],
		"a byte too many":         append(bytes.Clone(whole), 0),
		"another format":          flip(7),
		"another count":           flip(13),
		"another length":          flip(streamHeaderLen),
		"a length slightly off":   flip(streamHeaderLen + 7),
		"another sum":             flip(streamHeaderLen + 8),
		"a damaged row":           flip(streamHeaderLen + sectionHeaderLen + 1000),
		"a damaged end":           flip(len(whole) - 1),
		"a table of another kind": append(append(streamHeader(1, 1), sectionHeader(4, 0x1234)...), "junk"...),
		// A table whose rows are another shard's.
		"a neighbor's table": append(streamHeader(1, 1), other[streamHeaderLen:]...),
	}
	for i := range 40 {
		cases[fmt.Sprintf("cut at %d/40", i)] = whole[:len(whole)*i/40]
	}
	for name, b := range cases {
		err := receive(t, to, 1, bytes.NewReader(b))
		if !errors.Is(err, ErrStream) {
			t.Errorf("%s: gave %v", name, err)
		}
		if err := CheckStream(bytes.NewReader(b), 1); !errors.Is(err, ErrStream) && name != "a neighbor's table" {
			t.Errorf("%s: CheckStream gave %v", name, err)
		}
		if got := fingerprint(t, to.State(), 1); got != want {
			t.Fatalf("%s: the old state was %s and is %s", name, want, got)
		}
	}
	if err := CheckStream(bytes.NewReader(whole), 1); err != nil {
		t.Errorf("CheckStream of a whole export gave %v", err)
	}
	// One section of two: the range is not covered.
	gap := append(streamHeader(1, 2), whole[streamHeaderLen:]...)
	if err := receive(t, to, 1, bytes.NewReader(append(gap, whole[streamHeaderLen:]...))); !errors.Is(err, ErrStream) {
		t.Errorf("a section twice gave %v", err)
	}
}

func TestImport_Value(t *testing.T) {
	t.Parallel()
	from, to := memory(t), memory(t)
	must(t, from.State().Set(rowKey(1, 5), []byte("five"), pebble.NoSync))
	i := ok(to.Import(1))(t)
	ok(i.Write(stream(t, from, 1)))(t)
	must(t, i.Finish(t.Context()))
	if v := ok(i.Value(t.Context(), rowKey(1, 5)))(t); string(v) != "five" {
		t.Errorf("the row is %q", v)
	}
	for _, n := range []int{4, 6} {
		if v := ok(i.Value(t.Context(), rowKey(1, n)))(t); v != nil {
			t.Errorf("row %d is %q", n, v)
		}
	}
	must(t, i.Close())
}

func TestExport_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := memory(t)
	scatter(t, s, 1, 100, 1)
	reason := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	e := ok(s.Export(ctx, 1, time.Second))(t)
	ok(e.Read(make([]byte, 100)))(t)
	cancel(reason)
	if _, err := e.Read(make([]byte, 100)); !errors.Is(err, reason) {
		t.Errorf("reading gave %v", err)
	}
	must(t, e.Close())
	if _, err := s.Export(ctx, 1, time.Second); !errors.Is(err, reason) {
		t.Errorf("exporting gave %v", err)
	}
}

func TestOpen_RemovesWhatATransferLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := ok(Open(Config{Dir: dir, Logger: quiet}))(t)
	i := ok(s.Import(1))(t)
	ok(i.Write(stream(t, s, 1)[:30]))(t)
	must(t, s.Close())
	left := ok(filepath.Glob(filepath.Join(dir, "export", "*")))(t)
	if len(left) != 1 {
		t.Fatalf("there is %v", left)
	}
	if info := ok(vfs.Default.Stat(filepath.Join(dir, "export")))(t); info.Mode().Perm() != 0o700 {
		t.Errorf("others may read it: %v", info.Mode())
	}
	s = ok(Open(Config{Dir: dir, Logger: quiet}))(t)
	if left := ok(filepath.Glob(filepath.Join(dir, "export")))(t); len(left) > 0 {
		t.Errorf("there is still %v", left)
	}
	must(t, s.Close())
}

// The result of Ingest survives a crash as soon as Ingest returns, although rows of the same
// range were in the memtable.
func TestIngest_IsDurable(t *testing.T) {
	t.Parallel()
	from := memory(t)
	scatter(t, from, 1, 100, 1)
	whole, want := stream(t, from, 1), fingerprint(t, from.State(), 1)
	for seed := range uint64(6) {
		fs := vfs.NewCrashableMem()
		cfg := Config{Dir: "store", FS: fs, CacheBytes: 1 << 20, Logger: quiet}
		s := ok(Open(cfg))(t)
		scatter(t, s, 1, 80, seed)
		must(t, receive(t, s, 1, bytes.NewReader(whole)))
		must(t, s.State().Set(rowKey(1, 1), []byte("lost"), pebble.NoSync))
		cfg.FS = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: int(seed) * 20, RNG: rand.New(rand.NewPCG(seed, 1))})
		must(t, s.Close())
		s = ok(Open(cfg))(t)
		got := fingerprint(t, s.State(), 1)
		if got != want {
			value, closer, err := s.State().Get(rowKey(1, 1))
			if err != nil || string(value) != "lost" {
				t.Errorf("seed %d: %s is where %s should be", seed, got, want)
			}
			if err == nil {
				must(t, closer.Close())
			}
		}
		must(t, s.Close())
	}
}

func TestFingerprint_LeavesOutAndTellsApart(t *testing.T) {
	t.Parallel()
	a, b := memory(t), memory(t)
	for _, s := range []*Store{a, b} {
		scatter(t, s, 1, 50, 1)
	}
	must(t, b.FlushState())
	if fingerprint(t, a.State(), 1) != fingerprint(t, b.State(), 1) {
		t.Error("equal rows in another layout differ")
	}
	must(t, b.State().Set(rowKey(1, 3), []byte("x"), pebble.NoSync))
	must(t, a.State().Delete(rowKey(1, 3), pebble.NoSync))
	if fingerprint(t, a.State(), 1) == fingerprint(t, b.State(), 1) {
		t.Error("a row more makes no difference")
	}
	without := ok(FingerprintOf(t.Context(), b.State(), 1, rowKey(1, 3)))(t)
	if want := fingerprint(t, a.State(), 1); without != want {
		t.Errorf("without the row it is %s, want %s", without, want)
	}
}

func BenchmarkTransfer(b *testing.B) {
	const rows = 64 << 10
	from := ok(Open(Config{Dir: b.TempDir(), Logger: quiet}))(b)
	random := rand.New(rand.NewPCG(1, 1))
	value := make([]byte, 1000)
	for n := range rows {
		for i := range value {
			value[i] = "abcdefghijklmnopqrstuvwxyz 0123456789"[random.IntN(37)]
		}
		must(b, from.State().Set(rowKey(1, n), value, pebble.NoSync))
	}
	must(b, from.FlushState())
	whole := stream(b, from, 1)
	b.Run("export", func(b *testing.B) {
		b.SetBytes(rows * 1000)
		for b.Loop() {
			e := ok(from.Export(b.Context(), 1, time.Second))(b)
			ok(io.Copy(io.Discard, e))(b)
			must(b, e.Close())
		}
		b.ReportMetric(float64(len(whole))/(rows*1000), "stream/rows")
	})
	b.Run("import", func(b *testing.B) {
		to := ok(Open(Config{Dir: b.TempDir(), Logger: quiet}))(b)
		b.SetBytes(rows * 1000)
		for b.Loop() {
			must(b, receive(b, to, 1, bytes.NewReader(whole)))
		}
		must(b, to.Close())
	})
	b.Run("fingerprint", func(b *testing.B) {
		b.SetBytes(rows * 1000)
		for b.Loop() {
			fingerprint(b, from.State(), 1)
		}
	})
	must(b, from.Close())
}

// An export asks for its rests while it works, and ends with its context in the middle of one.
func TestExport_Rests(t *testing.T) {
	t.Parallel()
	s := memory(t)
	value := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(value) // never fails
	for n := range 64 {                            // much more work than there is between two rests
		must(t, s.State().Set(rowKey(1, n), value, pebble.NoSync))
	}
	reason := errors.New("the node stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := 0
	_, err := s.ExportWith(ctx, 1, ExportOptions{Wait: time.Second, Rests: func(work time.Duration) time.Duration {
		if work < readWork || work > longestWork {
			t.Errorf("it rests after %s of work", work)
		}
		if asked++; asked == 1 {
			return time.Microsecond
		}
		cancel(reason)
		return time.Hour
	}})
	if !errors.Is(err, reason) || asked != 2 {
		t.Errorf("after %d rests it gave %v", asked, err)
	}
	if left := ok(s.transfer.fs.List(s.transfer.dir))(t); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}
