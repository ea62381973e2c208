package tracker

import (
	"bytes"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"github.com/kljensen/snowball/english"
)

// maxWord limits a word in bytes; longer words are cut.
const maxWord = 64

// eachWord splits text into words and calls fn for each: runs of letters and digits,
// folded to lower case without accents (NFKD, Unicode case folding). In scripts without
// spaces between words every character is a word. word is valid until fn returns.
func eachWord(text string, fn func(word []byte)) {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			foldWords(text, fn)
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

// wordForms are what is derived from a folded word. They are not to be changed.
type wordForms struct {
	stem []byte
	term term // of the stem
	stop bool // the word says so little that it doesn't count in a comparison
}

// cachedWord is a folded word with its derived forms, in one line of the processor's
// cache: to find a word is mostly to wait for memory.
type cachedWord struct {
	term       term
	length     uint8 // of the word
	from, stem uint8 // where the stem begins, and its length
	stop       bool
	text       [52]byte // the word, and its stem behind it unless the word begins with the stem
}

// newCachedWord returns nil for a word that is too long to be cached.
func newCachedWord(word []byte, forms *wordForms) *cachedWord {
	c := &cachedWord{term: forms.term, length: uint8(len(word)), stem: uint8(len(forms.stem)), stop: forms.stop}
	text := append(c.text[:0], word...)
	if !bytes.HasPrefix(word, forms.stem) {
		c.from = c.length
		text = append(text, forms.stem...)
	}
	if len(text) > len(c.text) {
		return nil
	}
	return c
}

// is reports whether it is the given word.
func (c *cachedWord) is(word []byte) bool {
	return c != nil && string(c.text[:c.length]) == string(word)
}

func (c *cachedWord) forms() wordForms {
	return wordForms{c.text[c.from:][:c.stem:c.stem], c.term, c.stop}
}

// cachedWords has the last words: finding a word's stem costs more than the rest of
// indexing the word. A word has one of two places, which follow from its hash; a new word
// replaces an old one. All goroutines share the cache, because its values don't depend on
// the workspace. It takes some 9 MB at most.
var cachedWords [1 << 16]atomic.Pointer[cachedWord]

// formsOf returns the forms of a folded word: its stem (Snowball's for English; words of
// other languages mostly stay as they are) and what follows from it. A word with digits is
// no language's word, and is its own stem. The stem may be a part of word.
func formsOf(word []byte) wordForms {
	hash := xxhash.Sum64(word)
	places := cachedWords[hash%uint64(len(cachedWords))&^1:][:2]
	first := places[0].Load()
	if first.is(word) {
		return first.forms()
	}
	if second := places[1].Load(); second.is(word) {
		return second.forms()
	}
	if bytes.ContainsAny(word, "0123456789") {
		return wordForms{stem: word, term: term{hash}} // there is no end of them
	}
	forms := wordForms{stem: []byte(english.Stem(string(word), true)), stop: english.IsStopWord(string(word))}
	if len(forms.stem) == 0 {
		forms.stem = word
	}
	forms.term = term{xxhash.Sum64(forms.stem)}
	if made := newCachedWord(word, &forms); made != nil {
		if first != nil {
			places[1].Store(first)
		}
		places[0].Store(made)
	}
	return forms
}

// A term is the hash of the stem of a significant word in a title.
type term struct{ hash uint64 }

// maxTerms limits the terms of a title. A title of 1,000 characters rarely has as many.
const maxTerms = 255

// titleTerms returns the terms of a title without duplicates, sorted by hash (Decision
// 19). A title of stop words only has all its words as terms, and a title without words
// is one term, so that equal titles have equal terms.
func titleTerms(title string) []term {
	terms := make([]term, 0, 8)
	eachWord(title, func(word []byte) {
		if forms := formsOf(word); !forms.stop {
			terms = append(terms, forms.term)
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
