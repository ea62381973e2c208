package tracker

import (
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// singly are the scripts that do not separate words by spaces.
var singly = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}

// foldPage has the folded forms of 256 characters. NFKD, case folding and the tables of scripts take
// some hundred nanoseconds for a character, and a text may have a million of them.
type foldPage struct {
	text  string // of all of them
	runes [256]foldedRune
}

// foldedRune is what a character adds to words, as a part of its page's text: letters and
// digits, and a space where a word ends. A character that is a word of its own has a space on each side.
type foldedRune struct {
	from   uint16
	length uint8
	flags  uint8
}

const (
	// foldedPlain is set for characters without a space in their text.
	foldedPlain = 1 << iota
	// foldedMark is set for characters whose decomposition begins with a combining mark, which
	// normalization sorts with the marks around it.
	foldedMark
	// foldedSorted is set for characters with combining marks that are in words. Their order depends on
	// the marks around them. Nearly all marks are accents, which words lack.
	foldedSorted
)

// foldPages are the pages of all characters; each is made when it is needed first. All of them together take
// less than 10 MB.
var foldPages [(unicode.MaxRune + 1) / 256]atomic.Pointer[foldPage]

// foldedAt returns the form of the first character of a text, with its page and its length in the text.
func foldedAt(text string) (page *foldPage, form foldedRune, size int) {
	r, size := utf8.DecodeRuneInString(text)
	at := &foldPages[r>>8]
	if page = at.Load(); page == nil {
		page = newFoldPage(r &^ 0xff)
		at.Store(page)
	}
	return page, page.runes[r&0xff], size
}

func newFoldPage(first rune) *foldPage {
	page := &foldPage{}
	fold := cases.Fold()
	text := make([]byte, 0, 1024)
	for i := range page.runes {
		form := foldedRune{from: uint16(len(text)), flags: foldedPlain}
		for j, r := range []rune(norm.NFKD.String(string(first + rune(i)))) {
			mark := norm.NFKD.PropertiesString(string(r)).CCC() != 0
			if mark && j == 0 {
				form.flags |= foldedMark
			}
			from := len(text)
			text = appendFolded(text, fold.String(string(r)))
			for _, c := range text[from:] {
				if c == ' ' {
					form.flags &^= foldedPlain
				}
			}
			if mark && len(text) > from {
				form.flags |= foldedSorted
			}
		}
		form.length = uint8(len(text) - int(form.from))
		page.runes[i] = form
	}
	page.text = string(text)
	return page
}

// appendFolded appends what a decomposed and case-folded text adds to words, in the form of foldedRune.
func appendFolded(b []byte, folded string) []byte {
	for _, r := range folded {
		switch {
		case unicode.Is(unicode.Mn, r): // an accent, which NFKD has separated from its letter
		case !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.Is(unicode.Mc, r):
			b = append(b, ' ')
		case unicode.In(r, singly...):
			b = append(utf8.AppendRune(append(b, ' '), r), ' ')
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

// foldWords is eachWord for any text, in UTF-8 as all texts are that the service accepts.
func foldWords(text string, fn func(word []byte)) {
	f := wordFolder{fn: fn}
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf && (i+1 == len(text) || text[i+1] < utf8.RuneSelf) { // no mark follows
			i++
			switch {
			case 'A' <= c && c <= 'Z':
				f.letter(c + 'a' - 'A')
			case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
				f.letter(c)
			default:
				f.end()
			}
			continue
		}
		page, form, _ := foldedAt(text[i:])
		behind, isSorted := marksBehind(text, i)
		if !isSorted {
			f.add(page.text[form.from:][:form.length], form.flags&foldedPlain != 0)
			i = behind // the marks are accents
			continue
		}
		for isSorted && behind < len(text) {
			var next int
			if next, isSorted = marksBehind(text, behind); isSorted {
				behind = next
			}
		}
		f.add(string(appendFolded(nil, cases.Fold().String(norm.NFKD.String(text[i:behind])))), false)
		i = behind
	}
	f.end()
}

// marksBehind returns the end of the marks behind the character at a place of a text. sorted reports whether there are
// some whose order matters.
func marksBehind(text string, at int) (end int, sorted bool) {
	_, form, size := foldedAt(text[at:])
	end = at + size
	flags := form.flags
	for end < len(text) && text[end] >= utf8.RuneSelf {
		_, next, size := foldedAt(text[end:])
		if next.flags&foldedMark == 0 {
			break
		}
		flags |= next.flags
		end += size
	}
	return end, end > at+size && flags&foldedSorted != 0
}

// wordFolder makes words of letters and calls fn with them.
type wordFolder struct {
	fn  func(word []byte)
	buf [maxWord]byte
	n   int
}

func (f *wordFolder) letter(c byte) {
	if f.n < maxWord {
		f.buf[f.n] = c
		f.n++
	}
}

func (f *wordFolder) end() {
	if f.n > 0 {
		f.fn(f.buf[:f.n])
		f.n = 0
	}
}

// add adds text in the form of foldedRune; plain says that it has no space.
func (f *wordFolder) add(text string, plain bool) {
	for !plain {
		letters, rest, found := strings.Cut(text, " ")
		if !found {
			break
		}
		f.letters(letters)
		f.end()
		text = rest
	}
	f.letters(text)
}

func (f *wordFolder) letters(text string) {
	if f.n+len(text) <= maxWord {
		f.n += copy(f.buf[f.n:], text)
		return
	}
	for i, r := range text {
		if size := utf8.RuneLen(r); f.n+size <= maxWord {
			f.n += copy(f.buf[f.n:], text[i:i+size])
		}
	}
}
