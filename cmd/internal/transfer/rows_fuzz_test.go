package transfer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/cespare/xxhash/v2"

	"switchyard/internal/testkit"
)

// FuzzReadBlocks reads the rows that a cluster sends of a workspace. The rows that are taken are those that were sent.
func FuzzReadBlocks(f *testing.F) {
	testkit.Corpus(f)
	head := []byte(`{"version":1,"workspace":"x","index":9,"after":0}` + "\n")
	block := []byte("rows of a workspace")
	whole := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(bytes.Clone(head), uint32(len(block))), xxhash.Sum64(block))
	whole = append(append(whole, block...), make([]byte, 4+8)...)
	f.Add(whole)
	f.Add(whole[:len(whole)-5])
	f.Add(binary.BigEndian.AppendUint32(bytes.Clone(head), maxBlock+1))
	f.Fuzz(func(t *testing.T, sent []byte) {
		in := bufio.NewReader(bytes.NewReader(sent))
		if _, err := readHead(in); err != nil {
			return
		}
		_, rest, _ := bytes.Cut(sent, []byte{'\n'})
		var got []byte
		for {
			block, err := readBlock(in, nil)
			if err != nil {
				break
			}
			got = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(got, uint32(len(block))), xxhash.Sum64(block))
			got = append(got, block...)
			if !bytes.HasPrefix(rest, got) {
				t.Fatalf("%d bytes were read as another block", len(sent))
			}
			rest, got = rest[len(got):], got[:0]
		}
	})
}
