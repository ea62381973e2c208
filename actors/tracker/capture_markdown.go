package tracker

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxTitle       = 1_000   // characters
	maxDescription = 262_144 // characters
	// screenshotLink is reserved in a capture's description for the link to its
	// screenshot, whose address is known only when the issue is stored.
	screenshotLink = 160
	// headings is reserved for the headings of the parts that follow, and for the note
	// that one of them was cut.
	headings = 200
	// shownAddress is the number of an address's characters in the text of its link.
	shownAddress = 200
)

const (
	selectionCut = "\n\n*The selection was cut: there was more of it than fits here.*"
	pageTextCut  = "\n\n*The page's text was cut: there was more of it than fits here.*"
)

// describeCapture returns the description of a captured page in Markdown, without the
// link to its screenshot. Text from the page is escaped: none of it becomes markup or
// HTML.
func describeCapture(in *CaptureIssueIn) string {
	d := &description{left: maxDescription - screenshotLink}
	origin := captureOrigin(in)
	selection := cleanText(in.Selection)
	if selection != "" {
		if !d.prose("> ", selection, utf8.RuneCountInString(origin)+len(selectionCut)+2+headings) {
			d.markup(selectionCut)
		}
		d.markup("\n\n")
	}
	d.markup(origin)
	text := ""
	if in.IncludeFullText || in.Summarize {
		text = cleanText(in.PageText)
	}
	if in.Summarize {
		about := text
		if about == "" {
			about = selection
		}
		if summary := summarize(about); summary != "" {
			d.markup("\n\n## Summary\n\n")
			d.prose("", summary, headings)
		}
	}
	if in.IncludeFullText && text != "" {
		d.markup("\n\n## Page text\n\n")
		if !d.prose("", text, len(pageTextCut)) {
			d.markup(pageTextCut)
		}
	}
	return d.String()
}

// captureOrigin returns the line with the source and address of a capture.
func captureOrigin(in *CaptureIssueIn) string {
	d := &description{left: maxDescription}
	d.markup("Source: ")
	if source := oneLine(in.Source); source != "" {
		d.prose("", source, 0)
		d.markup(", ")
	}
	shown := firstRunes(in.URL, shownAddress)
	d.markup("[")
	d.prose("", oneLine(shown), 0)
	if len(shown) < len(in.URL) {
		d.markup("…")
	}
	d.markup("](" + linkTarget(in.URL) + ")")
	return d.String()
}

// oneLine returns a text cleaned like cleanText does, in one line.
func oneLine(text string) string { return strings.Join(strings.Fields(cleanText(text)), " ") }

// description is Markdown under construction, with a limited number of characters.
type description struct {
	strings.Builder
	left int
}

// markup writes a text of the service, which must fit.
func (d *description) markup(text string) {
	d.WriteString(text)
	d.left -= utf8.RuneCountInString(text)
}

// prose writes a clean text from the page, each line behind prefix, escaped. It stops
// when less than reserve characters would be left, and reports whether it wrote
// everything.
func (d *description) prose(prefix, text string, reserve int) (whole bool) {
	first := true
	for line := range strings.SplitSeq(text, "\n") {
		lead := prefix
		if !first {
			lead = "\n" + prefix
		}
		first = false
		if !d.put(lead, reserve) || !d.line(line, reserve) {
			return false
		}
	}
	return true
}

// put writes a text unless less than reserve characters would be left.
func (d *description) put(text string, reserve int) bool {
	n := utf8.RuneCountInString(text)
	if d.left-n < reserve {
		return false
	}
	d.WriteString(text)
	d.left -= n
	return true
}

// line writes one line and escapes characters with a meaning in Markdown or HTML:
// everywhere those that begin emphasis, code, links, tags and references; at the start of
// the line also those that begin headings, lists, quotes, rules and tables.
func (d *description) line(line string, reserve int) bool {
	marker := orderedMarker(line)
	before := rune(' ')
	for at, r := range line {
		rest := line[at+utf8.RuneLen(r):]
		next, _ := utf8.DecodeRuneInString(rest)
		text := line[at : at+utf8.RuneLen(r)]
		switch {
		case r == '<':
			text = "&lt;"
		case r == '&' && continuesReference(rest):
			text = "&amp;"
		case strings.ContainsRune("\\`*[]~|", r),
			r == '_' && !(wordly(before) && wordly(next)),
			at == 0 && strings.ContainsRune("#+-=>:", r),
			at == marker:
			text = "\\" + text
		}
		if !d.put(text, reserve) {
			return false
		}
		before = r
	}
	return true
}

// continuesReference reports whether a text that follows an "&" makes it a character
// reference, as in "&lt;", "&#60;" or "&#x3C;". Markdown reads none without its
// semicolon, so that the "&" of most addresses needs no escape.
func continuesReference(text string) bool {
	const digits, letters = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	allowed := digits + letters
	if number, ok := strings.CutPrefix(text, "#"); ok {
		text, allowed = number, digits
		if number != "" && (number[0] == 'x' || number[0] == 'X') {
			text, allowed = number[1:], digits+"ABCDEFabcdef"
		}
	}
	rest := strings.TrimLeft(text, allowed)
	return len(rest) < len(text) && rest != "" && rest[0] == ';'
}

func wordly(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// orderedMarker returns the position of the mark that makes a line an item of a
// numbered list, as in "12. ", or -1.
func orderedMarker(line string) int {
	digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
	if digits == 0 || digits == len(line) || line[digits] != '.' && line[digits] != ')' {
		return -1
	}
	return digits
}

// linkTarget escapes an address for the parentheses of a link: characters that could
// end it, or are not ASCII, are percent-encoded, which does not change the address. An
// "&" that would begin a character reference becomes one itself.
func linkTarget(address string) string {
	var b strings.Builder
	for i := range len(address) {
		c := address[i]
		switch {
		case c == '&' && continuesReference(address[i+1:]):
			b.WriteString("&amp;") // else &copy; in a query would be another character
		case c <= ' ' || c >= 0x7f || strings.IndexByte("()<>\\`\"^{}|", c) >= 0:
			const digits = "0123456789ABCDEF"
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// cleanText normalizes a page's text: one kind of line break, no other control
// characters, no space around lines, and at most one empty line in a row.
func cleanText(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\v' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029:
			return '\n'
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, text)
	var b strings.Builder
	b.Grow(len(text))
	empty := true // nothing was written since the last empty line
	gap := false
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			gap = true
			continue
		}
		if !empty {
			b.WriteByte('\n')
			if gap {
				b.WriteByte('\n')
			}
		}
		b.WriteString(line)
		empty, gap = false, false
	}
	return b.String()
}
