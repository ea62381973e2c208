package tracker

import "bytes"

// TooDeep gives the place of the bracket with which a JSON text is nested more than
// most levels deep; -1 when it never is. It is asked before anything parses the text.
func TooDeep(body []byte, most int) int {
	if bytes.Count(body, []byte{'['})+bytes.Count(body, []byte{'{'}) <= most {
		return -1 // as for most texts
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
