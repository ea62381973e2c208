package storage

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"
)

var testPostings = Postings{ID: 99, Name: "test postings", Width: 2}

// postingWorld keeps what lists should hold beside what they do.
type postingWorld struct {
	db    *pebble.DB
	model map[string]map[Doc][2]byte
}

func (w *postingWorld) apply(t *rapid.T, list string, changes map[Doc]*[2]byte) {
	var sorted []Posting
	for doc, p := range changes {
		posting := Posting{Doc: doc}
		if p != nil {
			posting.Payload = p[:]
		}
		sorted = append(sorted, posting)
	}
	slices.SortFunc(sorted, func(a, b Posting) int { return -compareDocs(a.Doc, b.Doc) })
	tx := NewTx(w.db, 1, ID{1})
	defer func() { _ = tx.Close() }()
	writer := NewPostingWriter(tx, &testPostings)
	had, has, err := writer.Apply(Key(nil).Str(list), sorted)
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if had != (len(w.model[list]) > 0) {
		t.Fatalf("had is %t with %d docs", had, len(w.model[list]))
	}
	if w.model[list] == nil {
		w.model[list] = map[Doc][2]byte{}
	}
	for doc, p := range changes {
		if p == nil {
			delete(w.model[list], doc)
		} else {
			w.model[list][doc] = *p
		}
	}
	if has != (len(w.model[list]) > 0) {
		t.Fatalf("has is %t with %d docs", has, len(w.model[list]))
	}
	if err := tx.batch.Commit(pebble.NoSync); err != nil {
		t.Fatal(err)
	}
}

func (w *postingWorld) docs(list string) []Doc {
	var docs []Doc
	for doc := range w.model[list] {
		docs = append(docs, doc)
	}
	slices.SortFunc(docs, func(a, b Doc) int { return -compareDocs(a, b) })
	return docs
}

func (w *postingWorld) read(t *rapid.T) *PostingReader {
	v := NewView(w.db, 1, ID{1})
	return testPostings.Read(&v)
}

// check walks a list, and seeks in it.
func (w *postingWorld) check(t *rapid.T, list string, seeks []Doc) {
	want := w.docs(list)
	r := w.read(t)
	defer func() { _ = r.Close() }()
	var got []Doc
	if err := r.List(Key(nil).Str(list), ^Doc(0)); err != nil {
		t.Fatal(err)
	}
	for r.Valid() {
		got = append(got, r.Doc())
		if p := w.model[list][r.Doc()]; string(p[:]) != string(r.Payload()) {
			t.Fatalf("doc %d has payload %x, want %x", r.Doc(), r.Payload(), p)
		}
		if err := r.Step(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("list %q holds %v, want %v", list, got, want)
	}
	slices.SortFunc(seeks, func(a, b Doc) int { return -compareDocs(a, b) })
	if err := r.List(Key(nil).Str(list), ^Doc(0)); err != nil {
		t.Fatal(err)
	}
	for _, most := range seeks {
		doc, ok, err := r.Next(most)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(want, func(d Doc) bool { return d <= most })
		if ok != (at >= 0) || ok && doc != want[at] {
			t.Fatalf("the newest not newer than %d is %d (%t), of %v", most, doc, ok, want)
		}
	}
}

func TestPostings_AgreeWithModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, err := Open(Config{Dir: "store", FS: vfs.NewMem(), CacheBytes: 1 << 20, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close() }()
		w := &postingWorld{db: s.State(), model: map[string]map[Doc][2]byte{}}
		lists := []string{"a", "ab", "b"}
		next := Doc(1 << 40)
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			list := rapid.SampledFrom(lists).Draw(t, "list")
			changes := map[Doc]*[2]byte{}
			for range rapid.IntRange(0, 400).Draw(t, "new") {
				next += Doc(rapid.IntRange(1, 5000).Draw(t, "step"))
				changes[next] = &[2]byte{byte(next), 7}
			}
			there := w.docs(list)
			for range rapid.IntRange(0, 60).Draw(t, "old") {
				doc := Doc(rapid.Uint64Range(1<<40-100, uint64(next)+10).Draw(t, "doc"))
				if len(there) > 0 && rapid.Bool().Draw(t, "existing") {
					doc = rapid.SampledFrom(there).Draw(t, "there")
				}
				changes[doc] = nil
				if rapid.Bool().Draw(t, "put") {
					changes[doc] = &[2]byte{byte(doc), 9}
				}
			}
			if rapid.IntRange(0, 5).Draw(t, "clear") == 0 {
				for _, doc := range there {
					changes[doc] = nil
				}
			}
			w.apply(t, list, changes)
			var seeks []Doc
			for range 20 {
				seeks = append(seeks, Doc(rapid.Uint64Range(1<<40-200, uint64(next)+200).Draw(t, "seek")))
			}
			w.check(t, list, seeks)
		}
	})
}

func inMemory(t *testing.T) *pebble.DB {
	t.Helper()
	s := ok(Open(Config{Dir: "store", FS: vfs.NewMem(), CacheBytes: 1 << 20, Logger: quiet}))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s.State()
}

func TestPostings_ListsByPrefix(t *testing.T) {
	t.Parallel()
	w := &postingWorld{db: inMemory(t), model: map[string]map[Doc][2]byte{}}
	tx := NewTx(w.db, 1, ID{1})
	writer := NewPostingWriter(tx, &testPostings)
	for _, list := range []string{"run", "runner", "running", "rust"} {
		var many []Posting
		for doc := range Doc(300) {
			if list == "run" || doc < 3 {
				many = append(many, Posting{Doc: 300 - doc, Payload: []byte{1, 2}})
			}
		}
		if _, _, err := writer.Apply(Key(nil).Str(list), many); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tx.batch.Commit(pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	v := NewView(w.db, 1, ID{1})
	r := testPostings.Read(&v)
	defer func() { _ = r.Close() }()
	for _, row := range []struct {
		prefix string
		blocks int
		want   string
		more   bool
	}{
		{"run", 100, "run:3 runner:1 running:1 ", false},
		{"runn", 100, "runner:1 running:1 ", false},
		{"x", 100, "", false},
		{"run", 4, "run:3 runner:1 ", true},
		{"run", 3, "run:3 ", true},
		{"run", 2, "", true},
		{"ru", 6, "run:3 runner:1 running:1 rust:1 ", false},
	} {
		got := ""
		more, err := r.Lists([]byte(row.prefix), row.blocks, func(list []byte, blocks int) bool {
			got += fmt.Sprintf("%s:%d ", list[:len(list)-1], blocks)
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		if got != row.want || more != row.more {
			t.Errorf("lists under %q within %d blocks: %q, more %t, want %q, %t", row.prefix, row.blocks, got, more, row.want, row.more)
		}
	}
}

func TestBlock_RefusesBrokenBytes(t *testing.T) {
	t.Parallel()
	docs := &block{docs: []Doc{5, 9}, payloads: []byte{1, 1, 2, 2}}
	var b block
	for _, kind := range []blockKind{sealedBlock, wholeHead, frontHead} {
		good := docs.encode(nil, kind, 0, 2, 2)
		key := blockKey(nil, 5)
		if err := b.decode(key, good, 2); err != nil || !slices.Equal(b.docs, docs.docs) {
			t.Fatalf("%x is read as %v, %v", good, b.docs, err)
		}
		for n := range good {
			if err := b.decode(key, good[:n], 2); err == nil {
				t.Errorf("%x was taken for a block", good[:n])
			}
		}
		if err := b.decode(key, append(slices.Clone(good), 0), 2); err == nil {
			t.Error("a block with something behind it was taken")
		}
	}
	for _, bad := range [][]byte{{9, 1, 1, 1}, {0, 0}, {0, 2, 0, 1, 1, 2, 2}, {0, 200, 1, 1}} {
		if err := b.decode(blockKey(nil, 5), bad, 2); err == nil {
			t.Errorf("%x was taken for a block", bad)
		}
	}
}
