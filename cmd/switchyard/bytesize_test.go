package main

import "testing"

func TestByteSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]byteSize{"0": 0, "1048576": 1 << 20, "512MiB": 512 << 20, "2 GiB": 2 << 30, "3KiB": 3 << 10, "1TiB": 1 << 40} {
		var b byteSize
		if err := b.UnmarshalText([]byte(text)); err != nil || b != want {
			t.Errorf("%q reads as %d, %v", text, b, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1.5GiB", "1GB", "99999999TiB", "1e9"} {
		var b byteSize
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q reads as %d", text, b)
		}
	}
}

func TestPerSecond(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]perSecond{"off": -1, "50": 50, "2MiB": 2 << 20} {
		var r perSecond
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want {
			t.Errorf("%q reads as %d, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "0", "-1", "50/s", "never", "2TiB"} {
		var r perSecond
		if err := r.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q reads as %d", text, r)
		}
	}
}
