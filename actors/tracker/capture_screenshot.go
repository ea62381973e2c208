package tracker

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// MediaType is the content type of a file.
type MediaType string

// The media types of attachments. None of them can contain a script.
const (
	MediaPNG  MediaType = "image/png"
	MediaJPEG MediaType = "image/jpeg"
	MediaWebP MediaType = "image/webp"
)

// EnumValues implements Enumerated.
func (MediaType) EnumValues() []string {
	return enumTexts([]MediaType{MediaPNG, MediaJPEG, MediaWebP})
}

// extension returns the extension of a file's name.
func (m MediaType) extension() string {
	switch m {
	case MediaPNG:
		return "png"
	case MediaJPEG:
		return "jpg"
	case MediaWebP:
		return "webp"
	}
	return "bin"
}

// begins reports whether bytes begin as those of the media type do. A file of another
// kind could be a page with scripts, served under the service's address.
func (m MediaType) begins(b []byte) bool {
	switch m {
	case MediaPNG:
		return bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n"))
	case MediaJPEG:
		return bytes.HasPrefix(b, []byte("\xff\xd8\xff"))
	case MediaWebP:
		return len(b) >= 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WEBP"
	}
	return false
}

// maxScreenshot limits a screenshot in bytes, decoded. With the issue, its event and
// its answer it fits into what one command may write.
const maxScreenshot = 5 << 20

// Screenshot is an image in Base64, of at most maxScreenshot bytes when decoded.
type Screenshot struct {
	ContentBase64 string    `json:"contentBase64" rules:"required,min=1,max=6990508"`
	ContentType   MediaType `json:"contentType" default:"image/png"`
}

// upload is a checked and hashed file to attach.
type upload struct {
	content []byte
	media   MediaType
	sum     [sha256.Size]byte
}

// read decodes a screenshot. It adds a fault and returns nil if it is not valid.
func (s *Screenshot) read(faults *Faults) *upload {
	const at = "screenshot.contentBase64"
	f := &upload{media: s.ContentType}
	var err error
	f.content, err = base64.StdEncoding.Strict().DecodeString(s.ContentBase64)
	switch {
	// The decoder skips line breaks.
	case err != nil || strings.ContainsAny(s.ContentBase64, "\r\n"):
		faults.Add(at, "Must be Base64 in the standard alphabet, with its padding and nothing else.")
	case len(f.content) > maxScreenshot:
		faults.Add(at, fmt.Sprintf("Must be at most %d bytes when decoded.", maxScreenshot))
	case !f.media.begins(f.content):
		faults.Add(at, "Not a valid "+string(f.media)+": it does not begin like one.")
	default:
		f.sum = sha256.Sum256(f.content)
		return f
	}
	return nil
}
