package httpapi

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxDepth bounds how deeply a body may be nested.
	maxDepth = 64
	// maxNameShown bounds a stranger's property name in a fault, in bytes.
	maxNameShown = 64
)

func (k kind) accepts(token jsontext.Kind) bool {
	switch k {
	case kindText:
		return token == '"'
	case kindBool:
		return token == 't' || token == 'f'
	case kindInt, kindFloat:
		return token == '0'
	case kindList:
		return token == '['
	case kindObject, kindDict:
		return token == '{'
	}
	return true
}

func (k kind) noun() string {
	return [...]string{"a string", "true or false", "an integer", "a number", "an array", "an object", "an object", "any value"}[k]
}

func nounOf(token jsontext.Kind) string {
	switch token {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "an array"
	case '{':
		return "an object"
	}
	return "nothing"
}

// checkObject checks a body of which no property is read.
func (b *binder) checkObject(body []byte) bool {
	if len(bytes.TrimLeft(body, " \t\r\n")) == 0 {
		return true
	}
	if !b.checkValue(body) {
		return false
	}
	kind := jsontext.NewDecoder(bytes.NewReader(body)).PeekKind()
	if kind != '{' {
		b.faults.Add("", "The body must be a JSON object, not "+nounOf(kind)+".")
	}
	return kind == '{'
}

// reportNUL reports every string with a NUL, also in ignored properties. JSON can write
// a NUL only as an escape.
func (b *binder) reportNUL(body []byte) {
	if !bytes.Contains(body, []byte(`\u0000`)) {
		return
	}
	// The body was decoded before, so it can't be broken.
	_ = walk(body, func(at func() string, raw []byte) {
		if !bytes.Contains(raw, []byte(`\u0000`)) {
			return
		}
		if text, err := unquote(raw); err == nil && strings.IndexByte(text, 0) >= 0 {
			b.faultAt(at, "Must not contain NUL.")
		}
	}, nil)
}

// reportNames names every property that is given twice in its object.
func (b *binder) reportNames(body []byte) error {
	return walk(body, nil, func(at func() string) { b.faultAt(at, again) })
}

// faultAt notes a fault at a place, which is asked for only if the answer will show the fault.
func (b *binder) faultAt(at func() string, message string) {
	path := ""
	if !b.faults.Full() {
		path = at()
	}
	b.faults.Add(path, message)
}

// passesOver reports whether item n is not looked at: the list has too many already, or the answer has too many faults.
func (b *binder) passesOver(s *fieldSchema, n int) bool {
	if s.max.set && n >= int(s.max.n) {
		return true
	}
	if b.faults.Full() {
		b.faults.Unsure()
		return true
	}
	return false
}

// walk goes through a body, calling text for every string, names included, and
// twice for every name that its object already has. at gives the place.
func walk(body []byte, text func(at func() string, raw []byte), twice func(at func() string)) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))
	var names []map[string]struct{} // of the objects around
	at := func() string { return dotted(string(dec.StackPointer())) }
	for {
		kind := dec.PeekKind()
		switch kind {
		case '{', '}', '[', ']':
			if _, err := dec.ReadToken(); err != nil {
				return err
			}
			switch kind {
			case '{':
				names = append(names, map[string]struct{}{})
			case '[':
				names = append(names, nil)
			default:
				names = names[:len(names)-1]
			}
			continue
		}
		raw, err := dec.ReadValue()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if kind != '"' {
			continue
		}
		if text != nil {
			text(at, raw)
		}
		// Within an object every second value is a name.
		if inside, length := dec.StackIndex(dec.StackDepth()); twice == nil || inside != '{' || length%2 == 0 {
			continue
		}
		name, err := unquote(raw)
		if err != nil {
			return err
		}
		seen := names[len(names)-1]
		if _, again := seen[name]; again {
			twice(at)
		}
		seen[name] = struct{}{}
	}
}

// dotted turns a JSON pointer into a path as faults have it.
func dotted(pointer string) string {
	var path strings.Builder
	for token := range jsontext.Pointer(pointer).Tokens() {
		if _, err := strconv.ParseUint(token, 10, 32); err == nil {
			path.WriteString("[" + token + "]")
			continue
		}
		if path.Len() > 0 {
			path.WriteByte('.')
		}
		path.WriteString(shorten([]byte(token)))
	}
	return path.String()
}

// shorten makes a stranger's name fit to be shown.
func shorten(name []byte) string {
	if len(name) <= maxNameShown {
		return string(name)
	}
	cut := maxNameShown
	for cut > 0 && !utf8.RuneStart(name[cut]) {
		cut--
	}
	return string(name[:cut]) + "…"
}

// describeSyntax returns the fault of a body that is not JSON, and its position.
func describeSyntax(err error) string {
	if errors.Is(err, errTrailing) {
		return "The body has something after its JSON object."
	}
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return "The body is not valid JSON."
	}
	at := " at byte " + strconv.FormatInt(syntax.ByteOffset, 10)
	cause := syntax.Err
	switch {
	case errors.Is(cause, io.ErrUnexpectedEOF):
		return "The body is not valid JSON: it ends too early" + at + "."
	case cause == nil:
		return "The body is not valid JSON" + at + "."
	}
	return "The body is not valid JSON" + at + ": " + cause.Error() + "."
}

// isStrings reports whether a valid JSON value is an array of strings.
func isStrings(raw []byte) bool {
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw))
	if dec.PeekKind() != '[' {
		return false
	}
	if _, err := dec.ReadToken(); err != nil {
		return false
	}
	for dec.PeekKind() != ']' {
		if dec.PeekKind() != '"' || dec.SkipValue() != nil {
			return false
		}
	}
	return true
}

// numbersFit reports whether every number in a valid JSON value fits a double.
func numbersFit(raw []byte) bool {
	if !bytes.ContainsAny(raw, "eE") && len(raw) < 300 {
		return true // no such number can be written
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true))
	for {
		kind := dec.PeekKind()
		token, err := dec.ReadToken()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		if kind == '0' {
			if _, err := strconv.ParseFloat(token.String(), 64); err != nil {
				return false
			}
		}
	}
}
