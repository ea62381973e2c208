package httpapi

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"switchyard/actors/tracker"
)

// fieldError is what is wrong with a value; empty when nothing is.
type fieldError = string

// maxInteger is the largest integer that survives every JSON implementation.
const maxInteger = 1<<53 - 1

// checkText judges a text by its shape. Lengths count characters.
func (s *fieldSchema) checkText(text string) fieldError {
	if s.max.set && len(text) > int(s.max.n) && utf8.RuneCountInString(text) > int(s.max.n) {
		return "Must be at most " + count(s.max, "character") + " long."
	}
	if s.min.set && (s.min.n > 1 || text == "") && utf8.RuneCountInString(text) < int(s.min.n) {
		return "Must be at least " + count(s.min, "character") + " long."
	}
	switch {
	case s.enum != nil && !slices.Contains(s.enum, text):
		return "Must be one of " + strings.Join(s.enum, ", ") + "."
	case s.uri && !isURI(text):
		return "Must be an absolute URI."
	case s.datetime && !isDateTime(text):
		return "Must be a date and time as in RFC 3339, such as 2026-11-20T21:30:00Z."
	case s.form != nil && s.form.Fault != nil:
		return s.form.Fault(text)
	}
	return ""
}

func (s *fieldSchema) checkNumber(n float64) fieldError {
	switch {
	case s.min.set && n < s.min.n:
		return "Must be at least " + number(s.min.n) + "."
	case s.max.set && n > s.max.n:
		return "Must be at most " + number(s.max.n) + "."
	}
	return ""
}

func (s *fieldSchema) checkCount(n int) fieldError {
	switch {
	case s.min.set && n < int(s.min.n):
		return "Must have at least " + count(s.min, "item") + "."
	case s.max.set && n > int(s.max.n):
		return "Must have at most " + count(s.max, "item") + "."
	}
	return ""
}

func count(b bound, noun string) string {
	if b.n != 1 {
		noun += "s"
	}
	return number(b.n) + " " + noun
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// isURI reports whether text is an absolute URI with something behind its scheme.
func isURI(text string) bool {
	for i := range len(text) {
		if text[i] <= ' ' || text[i] == 0x7f {
			return false
		}
	}
	u, err := url.Parse(text)
	return err == nil && u.Scheme != "" && (u.Host != "" || u.Opaque != "" || u.Path != "")
}

func isDateTime(text string) bool {
	if len(text) > 64 {
		return false
	}
	_, ok := tracker.ParseDateTime(text)
	return ok
}

// parseInteger reads an integer as JSON may write it, 1e2 and 2.0 included.
func parseInteger(text string) (int64, fieldError) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil:
			return 0, outOfRange
		case f > maxInteger || f < -maxInteger:
			return 0, outOfRange
		case f != float64(int64(f)):
			return 0, "Must be an integer."
		}
		n = int64(f)
	}
	if n > maxInteger || n < -maxInteger {
		return 0, outOfRange
	}
	return n, ""
}

var outOfRange = fmt.Sprintf("Is out of range: at most %d, and at least the negative of that.", int64(maxInteger))

func parseFloat(text string) (float64, fieldError) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, "Is out of the range of a double-precision number."
	}
	return f, ""
}
