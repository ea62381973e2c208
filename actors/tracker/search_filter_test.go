package tracker

import (
	"bytes"
	"testing"
)

// Every byte at every place among eight, and behind them.
func TestAppendLower(t *testing.T) {
	t.Parallel()
	for _, around := range []byte{'@', 'A', 'Z', '[', 'z', 0, 0x7f} {
		for at := range 19 {
			for c := range 256 {
				text := bytes.Repeat([]byte{around}, 19)
				text[at] = byte(c)
				got, ascii := appendLower([]byte("X"), text)
				if ascii != (c < 0x80) {
					t.Fatalf("%q is ASCII: %t", text, ascii)
				}
				if want := "X" + string(bytes.ToLower(text)); ascii && string(got) != want {
					t.Fatalf("%q became %q, want %q", text, got, want)
				}
			}
		}
	}
}
