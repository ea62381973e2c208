package tracker

import (
	"slices"
	"strings"
	"testing"

	"github.com/kljensen/snowball/english"
)

// TestFormsOf asks for words twice, the second time from the cache, and for words that are
// too long for it.
func TestFormsOf(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("y", 40) + "happy"
	for _, word := range []string{"happy", "running", "the", "x", "v2", long, strings.Repeat("z", maxWord), "größe", "語"} {
		for range 3 {
			want := english.Stem(word, true)
			if word == "v2" {
				want = word
			}
			got := formsOf([]byte(word))
			if string(got.stem) != want || got.term != termOf(want) || got.stop != english.IsStopWord(word) {
				t.Errorf("%q: %q %v %v, want %q", word, got.stem, got.term, got.stop, want)
			}
		}
	}
}

// TestTermShares remembers the more frequent of two terms that share a place.
func TestTermShares(t *testing.T) {
	t.Parallel()
	var s termShares
	rare, common, unknown := term{1<<40 | 7}, term{2<<40 | 7}, term{3}
	s.note(rare, 1, 100)
	s.note(common, 50, 100)
	s.note(rare, 10, 100)
	terms := []term{common, unknown, rare}
	if s.sort(terms); !slices.Equal(terms, []term{unknown, rare, common}) {
		t.Errorf("sorted as %v", terms)
	}
	if s.note(common, 200, 100); s.of(common) != 65535 || s.of(rare) != 0 {
		t.Errorf("shares %d and %d", s.of(common), s.of(rare))
	}
}
