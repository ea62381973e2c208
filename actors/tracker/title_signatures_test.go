package tracker

import (
	"math/rand/v2"
	"testing"

	"switchyard/storage"
)

// A signature that is found is the one that was put last. The memory stays within the node's bound.
func TestTitleSignatures_AgreeWithModel(t *testing.T) {
	t.Parallel()
	const most = 64 << 10
	rng := rand.New(rand.NewPCG(1, 2))
	tails := NewTails(most / 2)
	var s, other titleSignatures
	model := map[storage.Doc]uint64{}
	docs := make([]storage.Doc, 20_000)
	for i := range docs {
		docs[i] = storage.Doc(0x0193_1f6e_7a3c_0000 + uint64(i)*5)
	}
	known := 0
	for range 100_000 {
		doc := docs[rng.IntN(len(docs))]
		second, there := s.find(doc)
		if want, put := model[doc]; there && (!put || second != want) {
			t.Fatalf("%x has %x, want %x (put: %t)", doc, second, want, put)
		}
		if there {
			known++
		}
		model[doc] = rng.Uint64()
		s.put(doc, model[doc], tails)
		if got, there := s.find(doc); !there || got != model[doc] {
			t.Fatalf("%x has %x right after %x was put", doc, got, model[doc])
		}
	}
	if bytes := tails.Use().Signatures; bytes > most || bytes < most/4 || bytes != int64(len(s.slots))*signatureBytes {
		t.Errorf("%d bytes for %d slots, of at most %d", bytes, len(s.slots), most)
	}
	if known < 5_000 {
		t.Errorf("only %d of 100,000 were remembered", known)
	}
	for _, doc := range docs[:1000] { // another workspace finds no more room than is left
		other.put(doc, 1, tails)
	}
	if bytes := tails.Use().Signatures; bytes > most {
		t.Errorf("%d bytes with a second workspace, of at most %d", bytes, most)
	}
	s.forget(tails)
	other.forget(tails)
	if bytes := tails.Use().Signatures; bytes != 0 {
		t.Errorf("%d bytes are left", bytes)
	}
	if _, there := s.find(docs[0]); there {
		t.Error("a forgotten signature is found")
	}
}

// All docs that there is room for are remembered.
func TestTitleSignatures_RememberAll(t *testing.T) {
	t.Parallel()
	var s titleSignatures
	const many = 50_000
	for i := range many {
		s.put(storage.Doc(0x0193_1f6e_7a3c_0000+uint64(i)*3), uint64(i), nil)
	}
	known := 0
	for i := range many {
		if second, there := s.find(storage.Doc(0x0193_1f6e_7a3c_0000 + uint64(i)*3)); there && second == uint64(i) {
			known++
		}
	}
	if known < many*9/10 {
		t.Errorf("%d of %d are remembered, in %d slots", known, many, len(s.slots))
	}
}
