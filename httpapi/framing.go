package httpapi

import "bytes"

// framing follows the requests on a client's connection as their bytes arrive, in
// front of fasthttp. It finds bytes that HTTP forbids and fasthttp accepts: a line
// that ends in a bare line feed, a field name that is not a token, a header over several
// lines, a length given twice, a transfer encoding without a length, a space behind a
// chunk's size, chunk extensions without end. A proxy in front of the service may read
// such bytes otherwise than fasthttp does, and take a request hidden among them for a
// body (request smuggling).
//
// It copies nothing but lines that arrive in parts, and changes nothing but the
// minor version of HTTP. It is owned by the connection's goroutine.
type framing struct {
	state framingState
	// left is the number of bytes of a body or chunk that have not arrived.
	left int
	// line is the beginning of a line whose end has not arrived.
	line []byte
	// digits is the length of a chunk's size, and extensions that of all chunk
	// extensions of the request, in bytes.
	digits, extensions int
	// ended is how many requests have been read to their end.
	ended int
	// These are set when the header has such a field.
	length, encoding, chunked, credential, typed bool
	// origins are those whose pages may read answers, and origin the one that the last
	// header has, if it is among them. fasthttp forgets a header that it refuses.
	origins origins
	origin  []byte
}

type framingState uint8

const (
	atRequestLine framingState = iota
	inHeader
	inBody
	inChunkSize
	inChunkExtension
	atChunkSizeEnd // behind its CR
	inChunk
	atChunkCR
	atChunkLF
	inTrailer
)

// maxChunkExtensions bounds the extensions of all chunks of a request, in bytes.
const maxChunkExtensions = 16 << 10

// maxSizeDigits is as many digits as fasthttp reads of a chunk's size.
const maxSizeDigits = 15

// scan checks the bytes that have arrived. With a fault it returns how many of them to
// pass on: the line with the fault is passed on without its end, so that its request is
// never complete.
func (f *framing) scan(p []byte) (sound int, fault error) {
	for i := 0; i < len(p); {
		switch f.state {
		case atRequestLine, inHeader, inTrailer:
			end := bytes.IndexByte(p[i:], '\n')
			if f.state == atRequestLine {
				f.lowerMinor(p[i:], end)
			}
			if end < 0 {
				f.line = append(f.line, p[i:]...) // no more than fasthttp takes of a header
				return len(p), nil
			}
			line := p[i : i+end]
			if f.line != nil {
				line = append(f.line, line...)
				f.line = nil
			}
			i += end
			if fault := f.endLine(line); fault != nil {
				return i, fault
			}
			i++
		case inBody, inChunk:
			n := min(f.left, len(p)-i)
			i += n
			if f.left -= n; f.left > 0 {
				break
			}
			if f.state == inChunk {
				f.state = atChunkCR
			} else {
				f.state = atRequestLine
				f.ended++
			}
		case inChunkExtension:
			n := bytes.IndexByte(p[i:], '\r')
			if n < 0 {
				n = len(p) - i
			}
			if left := maxChunkExtensions - f.extensions; n > left {
				return i + left, errChunkExtensions()
			}
			f.extensions += n
			if i += n; i < len(p) {
				i++
				f.state = atChunkSizeEnd
			}
		default:
			if !f.chunkByte(p[i]) {
				return i, errMalformed()
			}
			i++
		}
	}
	return len(p), nil
}

// chunkByte reads a byte of a chunk's framing; it returns false if the byte is not valid
// there.
func (f *framing) chunkByte(c byte) bool {
	switch f.state {
	case inChunkSize:
		d := unhex(c)
		switch {
		case d <= 15 && f.digits < maxSizeDigits:
			f.left = f.left<<4 | int(d)
			f.digits++
		case f.digits == 0:
			return false
		case c == ';':
			f.state = inChunkExtension
		case c == '\r':
			f.state = atChunkSizeEnd
		default:
			return false
		}
		return true
	case atChunkSizeEnd:
		f.digits = 0
		f.state = inChunk
		if f.left == 0 {
			f.state = inTrailer
		}
		return c == '\n'
	case atChunkCR:
		f.state = atChunkLF
		return c == '\r'
	default:
		f.state = inChunkSize
		return c == '\n'
	}
}

// endLine reads a line, without its line feed.
func (f *framing) endLine(line []byte) error {
	last := len(line) - 1
	if last < 0 || line[last] != '\r' {
		return errMalformed()
	}
	line = line[:last]
	switch {
	case f.state == atRequestLine:
		return f.requestLine(line)
	case last > 0:
		return f.fieldLine(line)
	case f.state == inTrailer:
		f.next(framing{ended: f.ended + 1})
		return nil
	}
	return f.endHeader()
}

// lowerMinor changes a minor version of HTTP that is newer than the service to the newest one it
// knows (RFC 9110, 2.5), in the bytes of the request line that have arrived now, which end at end unless
// that is negative. It decides by what is in front of the digit, so that it makes no difference in how
// many parts the line arrives.
func (f *framing) lowerMinor(part []byte, end int) {
	if end >= 0 {
		part = part[:end]
	}
	line, before := part, len(f.line)
	if before > 0 {
		f.line = append(f.line, part...)
		line, f.line = f.line, f.line[:before]
	}
	if at := minorAt(line); at >= before && '1' < line[at] && line[at] <= '9' {
		part[at-before] = '1'
	}
}

// minorAt returns the place of the minor version in a request line, behind its second space; -1 if it
// has none.
func minorAt(line []byte) int {
	const version = "HTTP/1."
	at := 0
	for range 2 {
		space := bytes.IndexByte(line[at:], ' ')
		if space < 0 {
			return -1
		}
		at += space + 1
	}
	if len(line) <= at+len(version) || string(line[at:at+len(version)]) != version {
		return -1
	}
	return at + len(version)
}

// requestLine reads a request's first line; empty ones may be in front of it.
func (f *framing) requestLine(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	f.state, f.origin = inHeader, nil
	version := line[bytes.LastIndexByte(line, ' ')+1:]
	if len(version) != len("HTTP/1.1") || string(version[:5]) != "HTTP/" || version[6] != '.' {
		return nil // fasthttp refuses it
	}
	if major := version[5]; major != '1' && '0' <= major && major <= '9' {
		return errVersion()
	}
	return nil
}

// fieldLine reads a line of the header or of the trailer.
func (f *framing) fieldLine(line []byte) error {
	end := 0
	for end < len(line) && isTokenByte[line[end]] {
		end++
	}
	if end == 0 || end == len(line) || line[end] != ':' {
		return errFieldName()
	}
	if f.state == inTrailer {
		return nil
	}
	name := line[:end]
	switch {
	case isName(name, "content-length"):
		f.length = true
		f.left = bodyLength(bytes.Trim(line[end+1:], " \t"))
	case isName(name, "transfer-encoding"):
		f.encoding = true
		f.chunked = bytes.EqualFold(bytes.Trim(line[end+1:], " \t"), []byte("chunked"))
	case len(f.origins) > 0 && isName(name, "origin"):
		f.origin = f.origins[string(bytes.Trim(line[end+1:], " \t"))]
	case isName(name, "authorization"):
		if f.credential {
			return errTwo("Authorization")
		}
		f.credential = true
	case isName(name, "content-type"):
		if f.typed {
			return errTwo("Content-Type")
		}
		f.typed = true
	}
	return nil
}

// endHeader finds out what follows the header.
func (f *framing) endHeader() error {
	switch {
	case f.length && f.encoding:
		return errFraming()
	case f.encoding && !f.chunked: // its length is not known (RFC 9112, 6.3)
		return errEncoding()
	case f.chunked:
		f.next(framing{state: inChunkSize, ended: f.ended})
	case f.left > 0:
		f.next(framing{state: inBody, left: f.left, ended: f.ended})
	default:
		f.next(framing{ended: f.ended + 1})
	}
	return nil
}

// next begins another part of the bytes with what holds for the whole connection.
func (f *framing) next(state framing) {
	state.origins, state.origin = f.origins, f.origin
	*f = state
}

// bodyLength reads a Content-Length. It returns 0 for a value that is not a length,
// which fasthttp refuses.
func bodyLength(value []byte) int {
	n := 0
	for _, c := range value {
		if c < '0' || '9' < c || n > 1<<58 {
			return 0
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// isName reports whether a field name is the one given, in lower case.
func isName(given []byte, name string) bool {
	return len(given) == len(name) && bytes.EqualFold(given, []byte(name))
}

// isTokenByte has the characters of a token (RFC 9110, 5.6.2).
var isTokenByte = func() (table [256]bool) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		table[c] = true
	}
	return table
}()
