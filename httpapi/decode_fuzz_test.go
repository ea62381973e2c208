package httpapi

import (
	"strings"
	"testing"
)

// FuzzFraming has the bytes of a connection arrive at once and in parts.
func FuzzFraming(f *testing.F) {
	for _, sent := range sound {
		f.Add(sent, byte(7))
	}
	f.Add("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;"+strings.Repeat("x", maxChunkExtensions)+"\r\n", byte(100))
	f.Fuzz(func(t *testing.T, sent string, size byte) {
		whole, fault := inParts(sent, len(sent)+1)
		parts, faultOfParts := inParts(sent, int(size)+1)
		if whole != parts || (fault == nil) != (faultOfParts == nil) {
			t.Fatalf("%q passed with %v, and %q, %v in parts of %d", whole, fault, parts, faultOfParts, int(size)+1)
		}
		if !strings.HasPrefix(sent, whole) || fault == nil && whole != sent {
			t.Fatalf("%q became %q, %v", sent, whole, fault)
		}
	})
}

// FuzzTraceparent reads the header of W3C Trace Context.
func FuzzTraceparent(f *testing.F) {
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
