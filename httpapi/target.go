package httpapi

import (
	"bytes"
	"unicode/utf8"
)

const (
	// maxSegments bounds the parts of a path; no route has as many.
	maxSegments = 16
	// maxSegment bounds one part of a path in bytes, decoded.
	maxSegment = 1024
)

// target is the parsed target of a request line: the segments of the path, each decoded
// by itself, and the query as sent. The path is split before it is decoded, so that %2F
// is a character of a segment and never a boundary, and nothing is collapsed or resolved:
// "//" has an empty segment and ".." is a name.
//
// Its slices point into the request or into scratch and live no longer than the
// request.
type target struct {
	// authority is the host that an absolute URI names; nil for a path.
	authority []byte

	path     []byte // as sent, without the query
	query    []byte // as sent, without the question mark
	segments [maxSegments][]byte
	n        int
	scratch  []byte
	masked   []byte // the path without values, for the router
}

type targetProblem uint8

const (
	targetFine targetProblem = iota
	// targetNowhere is a path that no route can have.
	targetNowhere
	// targetBroken is a request line that means nothing.
	targetBroken
)

// parse takes a request target apart: "/path?query" or an absolute URI.
func (t *target) parse(uri []byte) targetProblem {
	t.n, t.query, t.authority, t.scratch = 0, nil, nil, t.scratch[:0]
	if len(uri) == 0 || uri[0] != '/' {
		if t.authority, uri = splitAbsolute(uri); uri == nil {
			return targetBroken
		}
	}
	t.path = uri
	if q := bytes.IndexByte(uri, '?'); q >= 0 {
		t.path, t.query = uri[:q], uri[q+1:]
	}
	for rest := t.path; len(rest) > 0; {
		rest = rest[1:] // the slash
		segment := rest
		if slash := bytes.IndexByte(rest, '/'); slash >= 0 {
			segment = rest[:slash]
		}
		rest = rest[len(segment):]
		if t.n == maxSegments {
			return targetNowhere
		}
		if problem := t.add(segment); problem != targetFine {
			return problem
		}
	}
	return targetFine
}

// relative returns the target without the host that an absolute URI names.
func (t *target) relative() []byte {
	uri := bytes.Clone(t.path)
	if t.query != nil {
		uri = append(append(uri, '?'), t.query...)
	}
	return uri
}

func (t *target) add(segment []byte) targetProblem {
	if bytes.IndexByte(segment, '%') >= 0 {
		start := len(t.scratch)
		var ok bool
		if t.scratch, ok = appendUnescaped(t.scratch, segment, false); !ok {
			return targetBroken
		}
		segment = t.scratch[start:len(t.scratch):len(t.scratch)]
	}
	if !isText(segment) {
		return targetBroken
	}
	if len(segment) > maxSegment {
		return targetNowhere
	}
	t.segments[t.n] = segment
	t.n++
	return targetFine
}

// splitAbsolute splits "http://host/path?query" into host and path. The path is nil if
// uri does not have this form. A user's name in front of the host is not allowed
// (RFC 9110, 4.2.4).
func splitAbsolute(uri []byte) (authority, path []byte) {
	for _, scheme := range [...]string{"http://", "https://"} {
		if len(uri) > len(scheme) && bytes.EqualFold(uri[:len(scheme)], []byte(scheme)) {
			rest := uri[len(scheme):]
			end := bytes.IndexAny(rest, "/?")
			if end < 0 {
				end = len(rest)
			}
			authority, path = rest[:end], rest[end:]
			switch {
			case end == 0 || bytes.IndexByte(authority, '@') >= 0:
				return nil, nil
			case len(path) == 0 || path[0] == '?':
				path = append([]byte("/"), path...)
			}
			return authority, path
		}
	}
	return nil, nil
}

// appendUnescaped decodes percent-encoding, and "+" as a space where plus is set;
// false when an escape is broken.
func appendUnescaped(dst, src []byte, plus bool) ([]byte, bool) {
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == '%':
			if i+2 >= len(src) {
				return dst, false
			}
			hi, lo := unhex(src[i+1]), unhex(src[i+2])
			if hi > 15 || lo > 15 {
				return dst, false
			}
			dst = append(dst, hi<<4|lo)
			i += 2
		case c == '+' && plus:
			dst = append(dst, ' ')
		default:
			dst = append(dst, c)
		}
	}
	return dst, true
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}

// isText reports whether b is UTF-8 without NUL.
func isText(b []byte) bool {
	for i, c := range b {
		if c >= utf8.RuneSelf {
			return utf8.Valid(b[i:]) && bytes.IndexByte(b[i:], 0) < 0
		}
		if c == 0 {
			return false
		}
	}
	return true
}
