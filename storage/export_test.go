package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func exportStore(t testing.TB, fs vfs.FS, dir string) *Store {
	t.Helper()
	s, err := Open(Config{Dir: dir, FS: fs, CacheBytes: 8 << 20, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fillShard writes rows of many sizes, overwrites some and deletes others.
func fillShard(t testing.TB, s *Store, shard Shard, rows int, rng *rand.Rand) {
	t.Helper()
	start, _ := WorkspaceRange(shard, ID{7})
	key := func(n int) []byte { return fmt.Appendf(bytes.Clone(start), "row %06d", n) }
	for n := range rows {
		size := 100
		switch n % 10 {
		case 0:
			size = 5000 // kept apart
		case 1:
			size = 0
		}
		value := make([]byte, size)
		for i := range value {
			value[i] = byte(rng.Uint32())
		}
		if err := s.State().Set(key(n), value, pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		if n == rows/2 {
			if err := s.FlushState(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.State().DeleteRange(key(rows/4), key(rows/3), pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	if err := s.State().Delete(key(rows-1), pebble.NoSync); err != nil {
		t.Fatal(err)
	}
}

func print(t testing.TB, s *Store, shard Shard) uint64 {
	t.Helper()
	sum, err := Fingerprint(s.State(), shard, func([]byte) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func exported(t testing.TB, s *Store, shard Shard) []byte {
	t.Helper()
	e, err := s.Export(shard, nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := io.ReadAll(e)
	if err != nil {
		t.Fatal(err)
	}
	if e.Size != int64(len(stream)) {
		t.Errorf("%d bytes announced, %d came", e.Size, len(stream))
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return stream
}

func TestExport_ReplacesAShard(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for _, row := range []struct {
		name         string
		there, flush int // rows the receiver has before; flushed or not
		sent         int
	}{
		{"into an empty store", 0, 0, 1000},
		{"over rows in memory", 1500, 0, 1000},
		{"over rows on disk", 1500, 1, 1000},
		{"an empty shard over rows", 1500, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			mem := vfs.NewMem()
			from, to := exportStore(t, mem, "from"), exportStore(t, mem, "to")
			if row.sent > 0 {
				fillShard(t, from, 5, row.sent, rng)
			}
			for _, shard := range []Shard{4, 5, 6} { // with neighbours
				if row.there > 0 {
					fillShard(t, to, shard, row.there, rng)
				}
			}
			if row.flush > 0 {
				if err := to.FlushState(); err != nil {
					t.Fatal(err)
				}
			}
			before := [2]uint64{print(t, to, 4), print(t, to, 6)}
			stream := exported(t, from, 5)
			i := to.Import(5)
			for len(stream) > 0 { // in pieces of any size
				n := min(len(stream), 1+rng.IntN(3000))
				if _, err := i.Write(stream[:n]); err != nil {
					t.Fatal(err)
				}
				stream = stream[n:]
			}
			if err := i.Ingest(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, want := print(t, to, 5), print(t, from, 5); got != want {
				t.Errorf("fingerprint %x, want %x", got, want)
			}
			if after := [2]uint64{print(t, to, 4), print(t, to, 6)}; after != before {
				t.Error("a neighbour changed")
			}
			if err := errors.Join(from.Close(), to.Close()); err != nil {
				t.Fatal(err)
			}
			to = exportStore(t, mem, "to")
			from = exportStore(t, mem, "from")
			if got, want := print(t, to, 5), print(t, from, 5); got != want {
				t.Errorf("fingerprint %x after a restart, want %x", got, want)
			}
			if err := errors.Join(from.Close(), to.Close()); err != nil {
				t.Fatal(err)
			}
			if left, err := mem.List(filepath.Join("to", exportDir)); err == nil && len(left) > 0 {
				t.Errorf("files were left: %v", left)
			}
		})
	}
}

func TestImport_RefusesWhatIsNoExport(t *testing.T) {
	t.Parallel()
	s := exportStore(t, vfs.NewMem(), "store")
	defer func() { _ = s.Close() }()
	fillShard(t, s, 5, 100, rand.New(rand.NewPCG(1, 2)))
	good := exported(t, s, 5)
	before := print(t, s, 5)
	huge := append(append([]byte(nil), good[:exportHeader]...), 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)
	for name, stream := range map[string][]byte{
		"nothing":       {},
		"half":          good[:len(good)/2],
		"without end":   good[:len(good)-1],
		"more":          append(bytes.Clone(good), 1),
		"other shard":   append([]byte(exportMagic+"\x00\x06"), good[exportHeader:]...),
		"no export":     []byte(strings.Repeat("garbage ", 100)),
		"huge section":  huge,
		"no table":      append(append(bytes.Clone(good[:exportHeader]), 0, 0, 0, 0, 0, 0, 0, 8), []byte("no table\x00\x00\x00\x00\x00\x00\x00\x00")...),
		"damaged table": func() []byte { b := bytes.Clone(good); b[len(b)-100] ^= 0xff; return b }(),
	} {
		i := s.Import(5)
		_, err := i.Write(stream)
		if err == nil {
			err = i.Ingest(t.Context())
		}
		if err == nil {
			t.Errorf("%s was taken", name)
		}
		if err := i.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if print(t, s, 5) != before {
		t.Error("the shard changed")
	}
}

func TestExport_IsGivenUp(t *testing.T) {
	t.Parallel()
	s := exportStore(t, vfs.NewMem(), "store")
	defer func() { _ = s.Close() }()
	fillShard(t, s, 5, 3000, rand.New(rand.NewPCG(1, 2)))
	quit := make(chan struct{})
	e, err := s.Export(5, quit)
	if err != nil {
		t.Fatal(err)
	}
	close(quit)
	if _, err := e.Read(make([]byte, 10)); !errors.Is(err, errQuit) {
		t.Errorf("reading: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Export(5, quit); !errors.Is(err, errQuit) {
		t.Errorf("exporting: %v", err)
	}
}

func BenchmarkExport(b *testing.B) {
	dir := b.TempDir()
	from, to := exportStore(b, vfs.Default, filepath.Join(dir, "from")), exportStore(b, vfs.Default, filepath.Join(dir, "to"))
	defer func() { _, _ = from.Close(), to.Close() }()
	start, _ := WorkspaceRange(5, ID{7})
	rng := rand.New(rand.NewPCG(1, 2))
	const rows = 64 << 10
	for n := range rows {
		value := make([]byte, 1000)
		for i := range value {
			value[i] = "abcdefghijklmnop"[rng.IntN(16)]
		}
		if err := from.State().Set(fmt.Appendf(bytes.Clone(start), "%08d", n), value, pebble.NoSync); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(rows * 1000)
	for b.Loop() {
		e, err := from.Export(5, nil)
		if err != nil {
			b.Fatal(err)
		}
		i := to.Import(5)
		if _, err := io.Copy(i, e); err != nil {
			b.Fatal(err)
		}
		if err := i.Ingest(b.Context()); err != nil {
			b.Fatal(err)
		}
		_ = e.Close()
	}
}
