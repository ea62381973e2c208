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

// maxWord limits a word in bytes; longer words are cut.
const maxWord = 64

// eachWord splits text into words and calls fn for each: runs of letters and digits,
// folded to lower case without accents (NFKD, Unicode case folding). In scripts without
// spaces between words every character is a word. word is valid until fn returns.
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

// singly are the scripts that do not separate words by spaces.
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
		case unicode.Is(unicode.Mn, r): // an accent, which NFKD has separated from its letter
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

// stem returns the stem of a folded word (Snowball's for English; words of other
// languages mostly stay unchanged), and whether the word is a stop word, which
// comparisons ignore.
func stem(word []byte) (s string, stop bool) {
	text := string(word)
	if strings.ContainsAny(text, "0123456789") { // numbers, hashes and names are no words of a language
		return text, false
	}
	if s = english.Stem(text, true); s == "" {
		s = text
	}
	return s, english.IsStopWord(text)
}

// stems caches the terms of recent words: stemming costs more than the rest of
// splitting a title. The zero value is ready.
type stems struct{ slots []knownWord }

type knownWord struct {
	word string
	term term
	stop bool
}

const knownWords = 256

// term returns the term of a folded word, and whether it is a stop word.
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

// A term is the hash of the stem of a significant word in a title.
type term struct{ hash uint64 }

// maxTerms limits the terms of a title. A title of 1,000 characters rarely has as many.
const maxTerms = 255

// titleTerms returns the terms of a title without duplicates, sorted by hash (Decision
// 19). A title of stop words only has all its words as terms, and a title without words
// is one term, so that equal titles have equal terms.
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

// signature is a set of terms in 64 bits: if a term is in the set, its bit is set.
func signature(terms []term) (s uint64) {
	for _, t := range terms {
		s |= t.bit()
	}
	return s
}

// secondSignature is like signature, with independent bits.
func secondSignature(terms []term) (s uint64) {
	for _, t := range terms {
		s |= t.secondBit()
	}
	return s
}

func (t term) secondBit() uint64 { return 1 << (t.hash >> 6 & 63) }

func (t term) bit() uint64 { return 1 << (t.hash & 63) }
