package httpapi

import "bytes"

// media is a type of body that an operation takes raw.
type media struct {
	name string
	is   func(contentType []byte) bool
}

// rawMedia are the media types by their names in a raw tag.
var rawMedia = map[string]media{
	"json": {"application/json", isJSON},
	"form": {"application/x-www-form-urlencoded", isForm},
}

// takes tells whether an operation takes a body of this Content-Type.
func (p *plan) takes(contentType []byte) bool {
	if p.raw == nil {
		return isJSON(contentType)
	}
	for _, m := range p.media {
		if m.is(contentType) {
			return true
		}
	}
	return false
}

// isForm tells whether a Content-Type is that of an HTML form.
func isForm(contentType []byte) bool {
	name, _, _ := bytes.Cut(contentType, []byte{';'})
	return bytes.EqualFold(bytes.TrimSpace(name), []byte("application/x-www-form-urlencoded"))
}
