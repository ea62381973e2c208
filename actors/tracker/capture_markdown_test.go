package tracker

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestTitleOf_WeirdAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://example.com":                             "example.com",
		"https://example.com/":                            "example.com",
		"HTTPS://Example.com:8443/A/b/?q#f":               "Example.com:8443/A/b",
		"https://user:secret@example.com/x":               "example.com/x",
		"http://[::1]:80/x":                               "[::1]:80/x",
		"https://example.com/caf%C3%A9%20x":               "example.com/café x",
		"https://example.com/a%0Ab%00":                    "example.com/a%0Ab%00",
		"https://example.com/%ff":                         "example.com/%ff",
		"https://example.com/%E2%80%AEgpj.exe":            "example.com/%E2%80%AEgpj.exe",
		"https://éxample.com//":                           "éxample.com/",
		"https://example.com/" + strings.Repeat("é", 999): "example.com/" + strings.Repeat("é", maxTitle-len("example.com/")),
	} {
		page := webAddress(address)
		if page == nil {
			t.Errorf("%s is no address", address)
		} else if got := titleOf(page); got != want {
			t.Errorf("%s gives %q, want %q", address, got, want)
		}
	}
}

func TestDescribeCapture_TextShowsAsItIs(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ text, want string }{
		"HTML":              {"<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"},
		"an entity":         {"&lt;b&gt; AT&T a & b &#60;", "&amp;lt;b&amp;gt; AT&T a & b &amp;#60;"},
		"no entity":         {"&lt &#60 &#x3C &#x; &#; &; &é; &a=1; &a-b; && ", "&lt &#60 &#x3C &#x; &#; &; &é; &a=1; &a-b; &&"},
		"numbers":           {"&#0060; &#x3c; &#X3C; &&#60;", "&amp;#0060; &amp;#x3c; &amp;#X3C; &&amp;#60;"},
		"a link":            {"[x](javascript:alert(1)) ![](http://a)", `\[x\](javascript:alert(1)) !\[\](http://a)`},
		"a reference":       {"[x]: http://a", `\[x\]: http://a`},
		"emphasis":          {"**a** _b_ __c__ snake_case ~~d~~", `\*\*a\*\* \_b\_ \_\_c\_\_ snake_case \~\~d\~\~`},
		"code":              {"`a` ```\n    indented", "\\`a\\` \\`\\`\\`\nindented"},
		"blocks":            {"# a\n> b\n- c\n+ d\n1. e\n12) f\n===\n---\n: g\n2020 h\n3.14", "\\# a\n\\> b\n\\- c\n\\+ d\n1\\. e\n12\\) f\n\\===\n\\---\n\\: g\n2020 h\n3\\.14"},
		"a table":           {"a | b\n--- | ---", "a \\| b\n\\--- \\| ---"},
		"backslashes":       {`\<b> \`, `\\&lt;b> \\`},
		"lines of any kind": {"a\r\nb\rc\vd\fe\u0085f\u2028g\u2029h", "a\nb\nc\nd\ne\nf\ng\nh"},
		"control":           {"a\tb\x1b[31m\x7fc\x01", `a b \[31m c`},
		"empty lines":       {"\n\n  a  \n\n \n\nb\n\n", "a\n\nb"},
	} {
		got := describeCapture(&CaptureIssueIn{URL: "http://a", PageText: row.text, IncludeFullText: true})
		if want := "Source: [http://a](http://a)\n\n## Page text\n\n" + row.want; got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestDescribeCapture_HostileAddressAndSource(t *testing.T) {
	t.Parallel()
	got := describeCapture(&CaptureIssueIn{
		URL:    "https://a/](javascript:alert(1))<img/onerror=x>\"`|\\&copy;é\u2028\u2028x",
		Source: "## a\n\n<b>[x](http://b)",
	})
	want := `Source: \## a &lt;b>\[x\](http://b), [https://a/\](javascript:alert(1))&lt;img/onerror=x>"` + "\\`" + `\|\\&amp;copy;é x](https://a/]%28javascript:alert%281%29%29%3Cimg/onerror=x%3E%22%60%7C%5C&amp;copy;%C3%A9%E2%80%A8%E2%80%A8x)`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The description contains the address as it was sent.
func TestDescribeCapture_AddressWithQuery(t *testing.T) {
	t.Parallel()
	const address = "https://example.com/p?a=1&b=2&copy=3&#x1F"
	want := "Source: [" + address + "](" + address + ")"
	if got := describeCapture(&CaptureIssueIn{URL: address}); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A reader of Markdown shows each line as the page has it.
func TestDescription_LineReadsBack(t *testing.T) {
	t.Parallel()
	marks := regexp.MustCompile(`\\([[:punct:]])|&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);`)
	read := func(markdown string) string {
		return marks.ReplaceAllStringFunc(markdown, func(mark string) string {
			if mark[0] == '\\' {
				return mark[1:]
			}
			return html.UnescapeString(mark)
		})
	}
	text := rapid.StringOf(rapid.SampledFrom([]rune("&&&;;##xX1fltamp<>\\*_ é")))
	rapid.Check(t, func(t *rapid.T) {
		line := oneLine(text.Draw(t, "line"))
		d := &description{left: maxDescription}
		d.prose("", line, 0)
		if got := read(d.String()); got != line {
			t.Fatalf("%q is written as %q, which reads %q", line, d.String(), got)
		}
		target := linkTarget(line)
		if got, err := url.PathUnescape(read(target)); got != line || err != nil {
			t.Fatalf("the link to %q is %q, which reads %q: %v", line, target, got, err)
		}
	})
}

func TestDescribeCapture_CutsAndSaysSo(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]CaptureIssueIn{
		"page text":     {PageText: strings.Repeat("a ", 4<<20/2), IncludeFullText: true},
		"escaped":       {PageText: strings.Repeat("<", 1<<20), IncludeFullText: true, Selection: "s"},
		"selection":     {Selection: strings.Repeat("<", 1<<16), PageText: "More of it than there is room for.", IncludeFullText: true, Summarize: true},
		"summary, too":  {PageText: strings.Repeat("Every sentence here has something to say about sentences. ", 20_000), IncludeFullText: true, Summarize: true},
		"empty lines":   {PageText: strings.Repeat("\n\na", 1<<20), IncludeFullText: true},
		"long address":  {PageText: strings.Repeat("x", 1<<20), IncludeFullText: true},
		"long sentence": {PageText: strings.Repeat("word ", 1<<18), Summarize: true, IncludeFullText: true},
	} {
		in.URL = "https://example.com/" + strings.Repeat("<", 2000)
		in.Source = strings.Repeat("*", 255)
		got := describeCapture(&in)
		if n := utf8.RuneCountInString(got); n > maxDescription-screenshotLink || n < maxDescription-screenshotLink-2*headings && name != "selection" {
			t.Errorf("%s: %d characters", name, n)
		}
		if !strings.Contains(got, "was cut: there was more of it than fits here.*") || !strings.Contains(got, "](https://example.com/%3C") {
			t.Errorf("%s: does not say so, or has no link", name)
		}
	}
	fits := describeCapture(&CaptureIssueIn{URL: "http://a", Selection: strings.Repeat("a", 65536), PageText: strings.Repeat("b", 190_000), IncludeFullText: true})
	if strings.Contains(fits, "cut") {
		t.Error("says that something was cut though everything fits")
	}
}

// No text of a page becomes a tag, code, link or quote.
func TestDescribeCapture_AnyText(t *testing.T) {
	t.Parallel()
	text := rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune("<>[]()!*_`~|#&;\\\n\r\t -+=:1.aé😀")), rapid.Rune()))
	rapid.Check(t, func(t *rapid.T) {
		in := CaptureIssueIn{URL: "https://a/" + text.Draw(t, "path"), Selection: text.Draw(t, "selection"), Source: text.Draw(t, "source"), PageText: text.Draw(t, "text"), IncludeFullText: true, Summarize: true}
		got := describeCapture(&in)
		if !utf8.ValidString(got) || strings.ContainsRune(got, '<') || strings.IndexFunc(got, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) >= 0 {
			t.Fatalf("described as %q", got)
		}
		links, escaped := 0, false
		// In the address of the link only its end has a meaning.
		target := "](" + linkTarget(in.URL) + ")"
		for _, r := range strings.Replace(got, target, "](", 1) {
			switch {
			case escaped:
				escaped = false
			case r == '\\':
				escaped = true
			case r == '[':
				links++
			case r == '`' || r == '*' || r == '|' || r == '~':
				t.Fatalf("%q is markup in %q", r, got)
			}
		}
		if links != 1 {
			t.Fatalf("%d links in %q", links, got)
		}
		quote, rest, _ := strings.Cut(got, "Source: ")
		for line := range strings.SplitSeq(strings.TrimSuffix(quote, "\n\n"), "\n") {
			if line != "" && !strings.HasPrefix(line, "> ") {
				t.Fatalf("the quote ends early in %q", got)
			}
		}
		if line, _, _ := strings.Cut(rest, "\n"); !strings.HasSuffix(line, target) {
			t.Fatalf("the link is not in one line in %q", got)
		}
	})
}
