package tracker

import "bytes"

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
