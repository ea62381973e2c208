package cluster

import (
	"math/rand/v2"
	"testing"
)

// A large text that is in a batch again, behind other large texts, takes room once.
func TestPack_RepeatedLargeTexts(t *testing.T) {
	t.Parallel()
	r := rand.NewChaCha8([32]byte{1})
	data := make([]byte, entryHeader)
	const texts, size = 16, 250 << 10
	for range texts {
		text := make([]byte, size)
		_, _ = r.Read(text)
		data = append(append(append(data, text...), "another"...), text...)
	}
	packed, ok := pack(nil, data)
	if !ok || len(packed) > texts*size*11/10 {
		t.Fatalf("%d bytes are packed as %d", len(data), len(packed))
	}
	_, _, body, err := splitEntry(packed)
	if err != nil {
		t.Fatal(err)
	}
	if batch, err := unpack(nil, body); err != nil || string(batch) != string(data[entryHeader:]) {
		t.Errorf("unpacked %d bytes: %v", len(batch), err)
	}
}
