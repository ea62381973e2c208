package cluster

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
)

// TestPack_GivesTheBatchBack packs batches of many sizes, one after another into the
// same space, and applies them.
func TestPack_GivesTheBatchBack(t *testing.T) {
	t.Parallel()
	random := rand.NewChaCha8([32]byte{3})
	mt := newMachine(t)
	mt.claim(2, "a")
	var space []byte
	for i, size := range []int{10, packedFrom, 3000, 700_000, 2000, 40_000, 1500} {
		noise := make([]byte, size)
		_, _ = random.Read(noise)
		for name, value := range map[string][]byte{"text": []byte(strings.Repeat("an issue and its event ", size/20)), "noise": noise} {
			row := fmt.Sprintf("%s %d", name, i)
			b := &pebble.Batch{}
			for _, key := range []string{row, row + " again"} {
				if err := b.Set([]byte(key), value, nil); err != nil {
					t.Fatal(err)
				}
			}
			entry := mergeBatches(nil, 2, []proposal{{batch: b.Repr()}})
			packed, ok := pack(space, entry)
			if want := size >= packedFrom && (name == "text" || len(value) < 60_000); ok != want {
				t.Errorf("%s: packed: %v", row, ok)
			}
			if !ok {
				packed = entry
			} else if space = packed; 3*len(packed) > 2*len(entry) {
				t.Errorf("%s: %d bytes of %d", row, len(packed), len(entry))
			}
			before := bytes.Clone(packed)
			mt.want(mt.m.Apply(mt.log(2, packed)), nil)
			if !bytes.Equal(before, packed) {
				t.Fatal("the log's bytes were changed")
			}
			for _, key := range []string{row, row + " again"} {
				got, closer, err := mt.m.store.State().Get([]byte(key))
				if err != nil || !bytes.Equal(got, value) {
					t.Fatalf("%s: %d bytes, want %d; %v", key, len(got), len(value), err)
				}
				_ = closer.Close()
			}
		}
	}
}
