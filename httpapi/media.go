package httpapi

import (
	"bytes"
	"slices"
	"strings"

	"github.com/valyala/fasthttp"

	"switchyard/actors/tracker"
)

// media is a type of body that an operation takes raw.
type media struct {
	name string
	is   func(contentType []byte) bool
}

// rawMedia are the media types by their names in a raw tag.
var rawMedia = map[string]media{
	"json":   {"application/json", isJSON},
	"value":  {"application/json", isJSON},
	"form":   {"application/x-www-form-urlencoded", isForm},
	"ndjson": {"application/x-ndjson", isLines},
	"rows":   {RowsMedia, isRows},
}

// refuseRaw says why a body that an operation takes raw is not of its media types; nil
// when it is.
func (p *inputSchema) refuseRaw(header *fasthttp.RequestHeader) *tracker.Error {
	contentType, encoding := header.ContentType(), header.PeekCanonical(headerContentEncoding)
	taken := len(contentType) == 0 || slices.ContainsFunc(p.media, func(m media) bool { return m.is(contentType) })
	if taken && (len(encoding) == 0 || string(encoding) == "identity") {
		return nil
	}
	names := make([]string, 0, len(p.media))
	for _, m := range p.media {
		names = append(names, m.name)
	}
	return &tracker.Error{
		Code: tracker.CodeUnsupportedMediaType, Message: "The body's type is not supported.",
		Hint: "Send it without Content-Encoding, and with Content-Type: " + strings.Join(names, " or ") + ".",
	}
}

// isLines reports whether a Content-Type is that of lines of JSON.
func isLines(contentType []byte) bool {
	name, _, _ := bytes.Cut(contentType, []byte{';'})
	return bytes.EqualFold(bytes.TrimSpace(name), []byte("application/x-ndjson"))
}

// isRows reports whether a Content-Type is that of a block of rows.
func isRows(contentType []byte) bool { return string(contentType) == RowsMedia }

// isForm reports whether a Content-Type is that of an HTML form.
func isForm(contentType []byte) bool {
	name, _, _ := bytes.Cut(contentType, []byte{';'})
	return bytes.EqualFold(bytes.TrimSpace(name), []byte("application/x-www-form-urlencoded"))
}
