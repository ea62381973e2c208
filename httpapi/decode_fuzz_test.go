package httpapi

import (
	"strings"
	"testing"

	"switchyard/internal/testkit"
)

// FuzzFraming has the bytes of a connection arrive at once and in parts.
func FuzzFraming(f *testing.F) {
	testkit.Corpus(f)
	for _, sent := range sound {
		f.Add(sent, byte(7))
	}
	f.Add("000 HTTP/1.2\r\n0", byte(1))
	f.Add("GET / HTTP/1.2\r\n\r\n", byte(13)) // the line ends behind the version
	f.Add("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;"+strings.Repeat("x", maxChunkExtensions)+"\r\n", byte(100))
	f.Add("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;"+strings.Repeat("x", maxChunkExtensions+300)+"\r\n", byte(100))
	f.Fuzz(func(t *testing.T, sent string, size byte) {
		whole, fault := inParts(sent, len(sent)+1)
		parts, faultOfParts := inParts(sent, int(size)+1)
		if whole != parts || (fault == nil) != (faultOfParts == nil) {
			t.Fatalf("%q passed with %v, and %q, %v in parts of %d", whole, fault, parts, faultOfParts, int(size)+1)
		}
		if !passedOf(sent, whole) || fault == nil && len(whole) != len(sent) {
			t.Fatalf("%q became %q, %v", sent, whole, fault)
		}
	})
}

// passedOf reports whether bytes are the beginning of those that were sent, but for minor versions
// that were lowered.
func passedOf(sent, passed string) bool {
	if len(passed) > len(sent) {
		return false
	}
	for i := range len(passed) {
		lowered := passed[i] == '1' && '1' < sent[i] && sent[i] <= '9' && strings.HasSuffix(sent[:i], " HTTP/1.")
		if passed[i] != sent[i] && !lowered {
			return false
		}
	}
	return true
}

// FuzzTraceparent reads the header of W3C Trace Context.
func FuzzTraceparent(f *testing.F) {
	testkit.Corpus(f)
	for _, text := range []string{
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00-more",
		"ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, ok := parseTraceparent(text)
		if !ok {
			return
		}
		if written := "-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + c.TraceFlags().String(); !strings.HasPrefix(string(text[2:]), written) {
			t.Fatalf("%q was read as %q", text, written)
		}
	})
}
