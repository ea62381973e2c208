package top

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// safe replaces the characters of a text that a terminal would not show as themselves:
// control characters, which can move the cursor and set titles, marks of the writing
// direction, which can swap what is shown, and bytes that are not UTF-8.
func safe(text string) string {
	clean := true
	for _, r := range text {
		if !shown(r) {
			clean = false
			break
		}
	}
	if clean {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if !shown(r) {
			r = '?'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// shown reports whether a terminal shows a character, in one or two cells.
func shown(r rune) bool {
	return r != utf8.RuneError && unicode.IsPrint(r) && !unicode.In(r, unicode.Mn, unicode.Me)
}

// cellsOf returns the number of cells that a character takes.
func cellsOf(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// cells returns the number of cells of a text that safe has made.
func cells(text string) int {
	n := 0
	for _, r := range text {
		n += cellsOf(r)
	}
	return n
}

// cut shortens a text to a number of cells. A text that was cut ends with an ellipsis.
func cut(text string, most int) string {
	if cells(text) <= most {
		return text
	}
	if most <= 0 {
		return ""
	}
	n := 0
	for i, r := range text {
		if n+cellsOf(r) > most-1 {
			return text[:i] + "…"
		}
		n += cellsOf(r)
	}
	return text
}

// pad adds spaces to a text until it has a number of cells, before it or behind it.
func pad(text string, to int, before bool) string {
	space := strings.Repeat(" ", max(0, to-cells(text)))
	if before {
		return space + text
	}
	return text + space
}

// perSecond is the text of a rate; a dash if it is unknown.
func perSecond(rate float64) string {
	switch {
	case math.IsNaN(rate):
		return "-"
	case rate == 0:
		return "0"
	case rate < 10:
		return fmt.Sprintf("%.1f", rate)
	}
	return fmt.Sprintf("%.0f", rate)
}

// share is the text of a share of one, in percent.
func share(of float64) string {
	if math.IsNaN(of) {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*of)
}

// bytesText is a number of bytes with its unit, a power of 1024.
func bytesText(n uint64) string {
	const units = "BKMGTPE"
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 || value >= 10 {
		return fmt.Sprintf("%.0f%c", value, units[unit])
	}
	return fmt.Sprintf("%.1f%c", value, units[unit])
}

// ageText is an age without the parts that don't matter.
func ageText(age time.Duration) string {
	switch {
	case age >= 48*time.Hour:
		return fmt.Sprintf("%dd", int(age.Hours())/24)
	case age >= time.Hour:
		return fmt.Sprintf("%dh%dm", int(age.Hours()), int(age.Minutes())%60)
	case age >= time.Minute:
		return fmt.Sprintf("%dm%ds", int(age.Minutes()), int(age.Seconds())%60)
	}
	return fmt.Sprintf("%ds", int(age.Seconds()))
}

// slowText is how long a request took.
func slowText(took time.Duration) string {
	switch {
	case took < time.Second:
		return fmt.Sprintf("%dms", took.Milliseconds())
	case took < 10*time.Second:
		return fmt.Sprintf("%.1fs", took.Seconds())
	}
	return fmt.Sprintf("%.0fs", took.Seconds())
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
