package tracker

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"switchyard/storage"
)

// Every byte at every place among eight, and behind them.
func TestAppendLower(t *testing.T) {
	t.Parallel()
	for _, around := range []byte{'@', 'A', 'Z', '[', 'z', 0, 0x7f} {
		for at := range 19 {
			for c := range 256 {
				text := bytes.Repeat([]byte{around}, 19)
				text[at] = byte(c)
				got, ascii := appendLower([]byte("X"), text)
				if ascii != (c < 0x80) {
					t.Fatalf("%q is ASCII: %t", text, ascii)
				}
				if want := "X" + string(bytes.ToLower(text)); ascii && string(got) != want {
					t.Fatalf("%q became %q, want %q", text, got, want)
				}
			}
		}
	}
}

// A search reads no segment whose issues are all older than those that it has found.
func TestSearch_ReadsFewSegments(t *testing.T) {
	t.Parallel()
	const segments, each = 4, 8
	w := newIssueFixture(t)
	var newest []storage.Doc
	for segment := range segments {
		for i := range each {
			issue := w.create(CreateIssueIn{Title: fmt.Sprintf("Parcel %d", each*segment+i)})
			id, _ := storage.ParseID(issue.ID)
			newest = append(newest, storage.DocOf(id))
		}
		if err := w.flow(indexSearchOp, nil); err != nil {
			t.Fatal(err)
		}
	}
	slices.Reverse(newest)
	v := NewView(storage.NewView(w.db, 1, w.workspace), &w.ann, w.now, nil)
	s, err := v.search("parcel")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.docs.Close(); err != nil {
			t.Error(err)
		}
	}()
	in := s.docs.(*searchStreams).AnyDocs[0].(*storage.DocsExcept).From.(*searchedSegments)
	most := ^storage.Doc(0)
	for i, want := range newest {
		doc, found, err := s.docs.Next(most)
		if err != nil || !found || doc != want {
			t.Fatalf("issue %d is %d, %t, want %d (%v)", i, doc, found, want, err)
		}
		read := 0
		for _, docs := range in.docs {
			if docs != nil {
				read++
			}
		}
		if want := i/each + 1; read != want {
			t.Errorf("%d of %d segments are read for %d issues, want %d", read, len(in.docs), i+1, want)
		}
		most = doc - 1
	}
	if doc, found, err := s.docs.Next(most); found || err != nil {
		t.Errorf("there is %d too (%v)", doc, err)
	}
}
