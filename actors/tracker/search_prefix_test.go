package tracker

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"switchyard/internal/testkit"
)

// slowBegins compares every word of a query with every word of a text.
func slowBegins(query, text string) bool {
	has := wordsOf(text)
	return !slices.ContainsFunc(wordsOf(query), func(q string) bool {
		return !slices.ContainsFunc(has, func(w string) bool { return strings.HasPrefix(w, q) })
	})
}

// TestPrefixesMet_AgreesWithComparison draws queries and texts of words that often begin with each other.
func TestPrefixesMet_AgreesWithComparison(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	word := func() string {
		if random.IntN(10) == 0 {
			return randomText(random, 8)
		}
		var b strings.Builder
		for range 1 + random.IntN(4) {
			b.WriteByte("aab1B"[random.IntN(5)])
		}
		return b.String()
	}
	phrase := func(most int) string {
		var words []string
		for range random.IntN(most) {
			words = append(words, word())
		}
		return strings.Join(words, " ")
	}
	met := 0
	for range 20_000 {
		query, text := phrase(2+random.IntN(12)), phrase(60)
		if random.IntN(4) == 0 {
			text += " " + query
		}
		words := prefixWords(query)
		if !slices.IsSortedFunc(words, bytes.Compare) {
			t.Fatalf("words %q", words)
		}
		found := prefixesMet{words: words, met: make([]bool, len(words)), left: len(words)}
		if more := found.look(text); more != (found.left > 0) {
			t.Fatalf("%d words are left, more is %t", found.left, more)
		}
		want := slowBegins(query, text)
		if (found.left == 0) != want {
			t.Fatalf("words that begin with those of %+q are in %+q: %t, want %t", query, text, !want, want)
		}
		if want {
			met++
		}
	}
	if met < 1000 {
		t.Errorf("only %d texts have all words", met)
	}
}

func TestPrefixWords_LeavesOutBeginnings(t *testing.T) {
	t.Parallel()
	if got := bytes.Join(prefixWords("a aa b aaa B ba a"), []byte(" ")); string(got) != "aaa ba" {
		t.Errorf("words %q", got)
	}
}

// TestEachPiece_KeepsWords cuts long texts. Where a character of ASCII is in no word the marks behind it begin a piece with it.
func TestEachPiece_KeepsWords(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for range 50 {
		var b strings.Builder
		for b.Len() < 3*textPiece {
			b.WriteString(randomText(random, 100))
			b.WriteString([]string{" ", ",\u0301", "x", "\u0345\u302e"}[random.IntN(4)])
		}
		var got []string
		pieces := 0
		if err := (&View{}).eachPiece(b.String(), func(piece string) bool {
			got = append(got, wordsOf(piece)...)
			pieces++
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if want := wordsOf(b.String()); !slices.Equal(got, want) || pieces < 2 {
			t.Fatalf("%d pieces have %d words, want %d", pieces, len(got), len(want))
		}
	}
}
