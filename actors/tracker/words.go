package tracker

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"github.com/kljensen/snowball/english"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// maxWord bounds a word in bytes; of a longer one the beginning counts.
const maxWord = 64

// eachWord splits text into words and calls fn for each: runs of letters and digits,
// folded to lower case without accents (NFKD, Unicode case folding). Scripts written
// without spaces count every character as a word. A word is valid until fn returns.
func eachWord(text string, fn func(word []byte)) {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			foldedWords(text, fn)
			return
		}
	}
	var buf [maxWord]byte
	n := 0
	for i := range len(text) {
		c := text[i]
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		default:
			if n > 0 {
				fn(buf[:n])
				n = 0
			}
			continue
		}
		if n < maxWord {
			buf[n] = c
			n++
		}
	}
	if n > 0 {
		fn(buf[:n])
	}
}

// singly are the scripts in which words are not told apart by spaces.
var singly = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

func foldedWords(text string, fn func(word []byte)) {
	folded := cases.Fold().String(norm.NFKD.String(text))
	word := make([]byte, 0, maxWord)
	end := func() {
		if len(word) > 0 {
			fn(word)
			word = word[:0]
		}
	}
	for _, r := range folded {
		switch {
		case unicode.Is(unicode.Mn, r): // accents, parted from their letters
			continue
		case !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.Is(unicode.Mc, r):
			end()
			continue
		}
		if unicode.In(r, singly...) {
			end()
			word = utf8.AppendRune(word, r)
			end()
			continue
		}
		if len(word)+utf8.RuneLen(r) <= maxWord {
			word = utf8.AppendRune(word, r)
		}
	}
	end()
}

// stem gives the stem of a folded word (Snowball's for English; words of other
// languages mostly stay as they are), and whether the word says so little that it
// doesn't count in a comparison.
func stem(word []byte) (s string, stop bool) {
	text := string(word)
	if strings.ContainsAny(text, "0123456789") { // numbers, hashes, names: no language's words
		return text, false
	}
	if s = english.Stem(text, true); s == "" {
		s = text
	}
	return s, english.IsStopWord(text)
}

// stems remembers the terms of words met of late: stemming costs more than all the
// rest of taking a title apart. The zero value is ready.
type stems struct{ slots []knownWord }

type knownWord struct {
	word string
	term term
	stop bool
}

const knownWords = 256

// term gives the term of a folded word, and whether it doesn't count.
func (k *stems) term(word []byte) (term, bool) {
	if k == nil {
		s, stop := stem(word)
		return termOf(s), stop
	}
	if k.slots == nil {
		k.slots = make([]knownWord, knownWords)
	}
	slot := &k.slots[xxhash.Sum64(word)%uint64(len(k.slots))]
	if slot.word != string(word) {
		s, stop := stem(word)
		*slot = knownWord{string(word), termOf(s), stop}
	}
	return slot.term, slot.stop
}

// A term is a significant word of a title: the hash of its stem.
type term struct{ hash uint64 }

// maxTerms bounds the terms of a title. A title of 1,000 characters rarely has as
// many.
const maxTerms = 255

// titleTerms gives the terms of a title, each once, sorted by their hash (Decision
// 19). A title without significant words is compared by all its words, and one
// without words as a whole, so that equal titles have equal terms.
func titleTerms(title string) []term { return (*stems)(nil).terms(title) }

func (k *stems) terms(title string) []term {
	terms := make([]term, 0, 8)
	eachWord(title, func(word []byte) {
		if t, stop := k.term(word); !stop {
			terms = append(terms, t)
		}
	})
	if len(terms) == 0 {
		eachWord(title, func(word []byte) { terms = append(terms, termOf(string(word))) })
	}
	if len(terms) == 0 {
		terms = append(terms, termOf(strings.TrimSpace(title)))
	}
	slices.SortFunc(terms, func(a, b term) int { return compare(a.hash, b.hash) })
	terms = slices.CompactFunc(terms, func(a, b term) bool { return a.hash == b.hash })
	return terms[:min(len(terms), maxTerms)]
}

func termOf(s string) term {
	return term{hash: xxhash.Sum64String(s)}
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// common counts the terms that two sorted lists share.
func common(a, b []term) (n int) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].hash == b[0].hash:
			n++
			a, b = a[1:], b[1:]
		case a[0].hash < b[0].hash:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return n
}

// signature is a set of terms in 64 bits: a term may be in it if its bit is.
func signature(terms []term) (s uint64) {
	for _, t := range terms {
		s |= t.bit()
	}
	return s
}

// secondSignature is a signature that is independent of the first.
func secondSignature(terms []term) (s uint64) {
	for _, t := range terms {
		s |= t.secondBit()
	}
	return s
}

func (t term) secondBit() uint64 { return 1 << (t.hash >> 6 & 63) }

func (t term) bit() uint64 { return 1 << (t.hash & 63) }
