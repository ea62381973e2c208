package storage

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"switchyard/internal/testkit"
)

// TestKeys_Golden pins how keys lie on disk. A difference means that stores
// written by earlier builds can't be read.
func TestKeys_Golden(t *testing.T) {
	t.Parallel()
	id := ID{0, 1, 2, 3, 4, 5, 0x76, 7, 0x88, 9, 10, 11, 12, 13, 14, 15}
	parent := ID{15: 7}
	var out strings.Builder
	line := func(what string, key []byte) { fmt.Fprintf(&out, "%-28s %x\n", what, key) }
	for _, shard := range []Shard{0, 1, 16, 0x0102} {
		start, end := ShardRange(shard)
		line(fmt.Sprintf("shard %d from", shard), start)
		line(fmt.Sprintf("shard %d to", shard), end)
	}
	start, end := WorkspaceRange(3, id)
	line("workspace from", start)
	line("workspace to", end)
	start, end = WorkspaceRange(0, DirectoryID)
	line("directory from", start)
	line("directory to", end)
	line("system id", SystemID[:])
	line("ID", Key(nil).ID(id))
	line("Newest", Key(nil).DescID(id))
	line("Str", Key(nil).Str("todo"))
	line("Str empty", Key(nil).Str(""))
	line("Str control", Key(nil).Str("\x00\x01\x02"))
	line("Byte", Key(nil).Byte(7))
	line("U64", Key(nil).U64(1<<40+5))
	line("record header", AppendHeader(nil, Header{Flags: 5, Version: 258, Team: id}))
	line("referred record header", AppendHeader(nil, Header{Flags: 5, Version: 258, Team: id, ReferredBy: 1<<40 + 5}))
	for _, shards := range []int{1, 4, 16} {
		fmt.Fprintf(&out, "%-28s %d %d\n", fmt.Sprintf("shard of %d", shards), ShardOf(id, shards), ShardOf(DirectoryID, shards))
	}
	n := &note{Hex: id.String(), Status: "open", Owner: "ann", Up: parent.String(), Labels: []string{"a", "b", "a"}, Ref: "r-1", Due: 99}
	out.WriteString(Explain(notes, n))
	out.WriteString(ok(Describe(noteSchema))(t))

	golden := filepath.Join("testdata", "keys.golden")
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(golden, []byte(out.String()), 0o644))
	}
	if want := string(ok(os.ReadFile(golden))(t)); out.String() != want {
		t.Errorf("key layout changed\ngot:\n%s\nwant:\n%s", out.String(), want)
	}
}

func drawID(t *rapid.T, label string) ID {
	var id ID
	copy(id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, label))
	return id
}

// text draws texts that are often alike, and that have the bytes which keys use themselves.
func text() *rapid.Generator[string] {
	return rapid.StringOfN(rapid.RuneFrom([]rune{0, 1, 2, 'a', 'b', 0xff, '世'}), 0, 5, -1)
}

func TestKeys_KeepTheOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s1, s2 := text().Draw(t, "s1"), text().Draw(t, "s2")
		n1, n2 := rapid.Uint64().Draw(t, "n1"), rapid.Uint64().Draw(t, "n2")
		i1, i2 := drawID(t, "i1"), drawID(t, "i2")
		if bytes.Compare(Key(nil).Str(s1), Key(nil).Str(s2)) != strings.Compare(s1, s2) {
			t.Fatalf("Str(%q), Str(%q)", s1, s2)
		}
		if bytes.Compare(Key(nil).U64(n1), Key(nil).U64(n2)) != cmp.Compare(n1, n2) {
			t.Fatalf("U64(%d), U64(%d)", n1, n2)
		}
		if bytes.Compare(Key(nil).ID(i1), Key(nil).ID(i2)) != bytes.Compare(i1[:], i2[:]) {
			t.Fatalf("ID(%s), ID(%s)", i1, i2)
		}
		if bytes.Compare(Key(nil).DescID(i1), Key(nil).DescID(i2)) != -bytes.Compare(i1[:], i2[:]) {
			t.Fatalf("DescID(%s), DescID(%s)", i1, i2)
		}
		// Fields one behind another compare like the tuples.
		want := cmp.Or(strings.Compare(s1, s2), cmp.Compare(n1, n2), -bytes.Compare(i1[:], i2[:]))
		if got := bytes.Compare(Key(nil).Str(s1).U64(n1).DescID(i1), Key(nil).Str(s2).U64(n2).DescID(i2)); got != want {
			t.Fatalf("tuples: %d, want %d", got, want)
		}
		if s1 != s2 && bytes.HasPrefix(Key(nil).Str(s1), Key(nil).Str(s2)) {
			t.Fatalf("Str(%q) begins with Str(%q)", s1, s2)
		}
		if descID(Key(nil).DescID(i1)) != i1 {
			t.Fatalf("DescID(%s) does not read back", i1)
		}
	})
}

func TestKeys_RangesHoldExactlyTheirKeys(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		shard := Shard(rapid.Uint16().Draw(t, "shard"))
		workspace, other := drawID(t, "workspace"), drawID(t, "other")
		if rapid.Bool().Draw(t, "edge") {
			for i := range workspace {
				workspace[i] = 0xff
			}
		}
		fields := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "fields")
		key := func(id ID) []byte {
			p := rangePrefix(shard, id)
			return append(append(p[:], rapid.Byte().Draw(t, "table")), fields...)
		}
		within := func(key, start, end []byte) bool {
			return bytes.Compare(key, start) >= 0 && (end == nil || bytes.Compare(key, end) < 0)
		}
		start, end := WorkspaceRange(shard, workspace)
		if !within(key(workspace), start, end) {
			t.Fatalf("a key of %s lies outside its range", workspace)
		}
		if other != workspace && within(key(other), start, end) {
			t.Fatalf("a key of %s lies in the range of %s", other, workspace)
		}
		start, end = ShardRange(shard)
		if !within(key(workspace), start, end) {
			t.Fatalf("a key lies outside its shard %d", shard)
		}
		k := key(workspace)
		gotShard, gotID, _, gotFields, err := SplitKey(k)
		if err != nil || gotShard != shard || gotID != workspace || !bytes.Equal(gotFields, fields) {
			t.Fatalf("SplitKey(%x) = %d %s %x %v", k, gotShard, gotID, gotFields, err)
		}
	})
}

func TestParseID_RoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := drawID(t, "id")
		text := id.String()
		if got, ok := ParseID(text); !ok || got != id {
			t.Fatalf("ParseID(%q) = %s, %v", text, got, ok)
		}
		if got, ok := ParseID([]byte(text)); !ok || got != id {
			t.Fatalf("ParseID of bytes %q = %s, %v", text, got, ok)
		}
		if up := strings.ToUpper(text); up != text {
			if _, ok := ParseID(up); ok {
				t.Fatalf("ParseID(%q) accepted", up)
			}
		}
	})
}

func TestParseID_RefusesWhatIsNotCanonical(t *testing.T) {
	t.Parallel()
	const good = "0190e0a1-7b3c-7def-8123-456789abcdef"
	if _, ok := ParseID(good); !ok {
		t.Fatalf("ParseID(%q) refused", good)
	}
	for _, bad := range []string{
		"", good[:35], good + "0", strings.ToUpper(good), "{" + good[1:], strings.ReplaceAll(good, "-", "0"),
		strings.Replace(good, "-", "_", 1), good[:35] + "g", good[:35] + "\x00", strings.Repeat("-", 36),
		"0190e0a17-b3c-7def-8123-456789abcdef", "٠190e0a1-7b3c-7def-8123-456789abcde",
	} {
		if id, ok := ParseID(bad); ok {
			t.Errorf("ParseID(%q) = %s", bad, id)
		}
	}
}

// FuzzParseID proves that ParseID accepts canonical texts only.
func FuzzParseID(f *testing.F) {
	testkit.Corpus(f)
	f.Add("0190e0a1-7b3c-7def-8123-456789abcdef")
	f.Add("0190E0A1-7b3c-7def-8123-456789abcdef")
	f.Fuzz(func(t *testing.T, s string) {
		if id, ok := ParseID(s); ok && id.String() != s {
			t.Errorf("ParseID(%q) = %s", s, id)
		}
	})
}

func TestSplitKey_TooShort(t *testing.T) {
	t.Parallel()
	if _, _, _, _, err := SplitKey(make([]byte, prefixLen)); err == nil {
		t.Error("a key without a table id was taken apart")
	}
}

// CutStr removes the text that Str wrote, and leaves the rest of the key.
func TestCutStr(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.SampledFrom([]byte{0, 1, 2, 'a', 0xff})).Draw(t, "text"))
		behind := rapid.SliceOf(rapid.Byte()).Draw(t, "behind")
		got, rest, ok := CutStr(append(Key(nil).Str(text), behind...))
		if !ok || got != text || !bytes.Equal(rest, behind) {
			t.Fatalf("%q with %x behind it is %q, %x, %t", text, behind, got, rest, ok)
		}
	})
	for _, bad := range []string{"", "a", "\x01", "a\x01\x00", "\x01\x03\x00"} {
		if text, _, ok := CutStr([]byte(bad)); ok {
			t.Errorf("%q is read as %q", bad, text)
		}
	}
}

// descID decodes the id that Key.DescID wrote.
func descID(b []byte) (id ID) {
	for i := range id {
		id[i] = ^b[i]
	}
	return id
}
