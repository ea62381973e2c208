package tracker

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// TooDeep returns the position of the bracket at which a JSON text is nested more than
// most levels deep, or -1. It is called before the text is parsed.
func TooDeep(body []byte, most int) int {
	if bytes.Count(body, []byte{'['})+bytes.Count(body, []byte{'{'}) <= most {
		return -1 // the case of most texts
	}
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > most {
				return i
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return -1
}

// TooMany reports whether a JSON text has more than most values: objects, arrays and all that
// they contain, without the names. It is called before the text is decoded into maps or into
// values of any type, of which each takes up to some hundred bytes.
func TooMany(text []byte, most int) bool {
	if bytes.Count(text, []byte{','})+bytes.Count(text, []byte{'['})+bytes.Count(text, []byte{'{'}) < most {
		return false // the case of most texts
	}
	count, opened, quoted := 1, false, false
	for i := 0; i < len(text) && count <= most; i++ {
		c := text[i]
		if quoted {
			switch c {
			case '\\':
				i++
			case '"':
				quoted = false
			}
			continue
		}
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case ']', '}':
			opened = false
		case ',':
			count++
		}
		if opened {
			count++ // the first in an array or object
		}
		opened = c == '[' || c == '{'
		quoted = c == '"'
	}
	return count > most
}

// errNoObject is the error of eachProperty for a value that is not an object.
var errNoObject = errors.New("the value is not an object")

// eachProperty calls use with each name and value of a JSON object, one after another, until use
// returns an error. A map of all of them would take many times the memory of their text. Names may
// be given twice. A value is good until use returns.
func eachProperty(object []byte, use func(name string, value []byte) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '{' {
		return errNoObject
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := token.String() // the token is good until the next call
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if err := use(name, value); err != nil {
			return err
		}
	}
	return nil
}
