package storage

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A set streams what a sorted list of the same ordinals does.
func TestOrdSet_LikeAList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		docs := rapid.Uint32Range(1, 300).Draw(t, "docs")
		ords := rapid.SliceOf(rapid.Uint32Range(0, docs-1)).Draw(t, "ords")
		set := NewOrdSet(append(ords, docs, docs+64), docs)
		sorted := slices.Clone(ords)
		slices.Sort(sorted)
		list := OrdList(sorted)
		for from := uint32(0); ; {
			ord, there, err := set.Next(from)
			want, due, _ := list.Next(from)
			if err != nil || there != due || ord != want {
				t.Fatalf("from %d on comes %d, %t, %v; want %d, %t", from, ord, there, err, want, due)
			}
			if from > docs+64 {
				return
			}
			from += rapid.Uint32Range(1, 90).Draw(t, "leap")
		}
	})
}
