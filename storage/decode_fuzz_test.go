package storage

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2"

	"switchyard/internal/testkit"
)

// FuzzParseManifest reads the list of a workspace's search segments.
func FuzzParseManifest(f *testing.F) {
	testkit.Corpus(f)
	f.Add((&Manifest{Through: 9, Next: 3, Merging: 2, Replaced: 1, Segments: []Segment{{1, 1, 700, 9000, 8}, {2, 2, 10, 90, 9}}}).Encode(nil))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseManifest(b)
		if err != nil {
			return
		}
		if again, err := ParseManifest(m.Encode(nil)); err != nil || !reflect.DeepEqual(again, m) {
			t.Fatalf("%+v came back as %+v, %v", m, again, err)
		}
		if from, to := m.ToMerge(); from < 0 || from > to || to > len(m.Segments) {
			t.Fatalf("of %d segments [%d, %d) are to be merged", len(m.Segments), from, to)
		}
	})
}

// FuzzImport receives a shard whose tables are anything, with right checksums or not. A refused shard
// changes nothing.
func FuzzImport(f *testing.F) {
	testkit.Corpus(f)
	const shard = Shard(3)
	from, to := memory(f), memory(f)
	for n := range 20 {
		must(f, from.State().Set(rowKey(shard, n), []byte("a row of the shard"), pebble.NoSync))
	}
	whole := stream(f, from, shard)
	f.Add(whole[streamHeaderLen+sectionHeaderLen:], true, byte(1))
	f.Add(whole[streamHeaderLen+sectionHeaderLen:], false, byte(2))
	f.Add([]byte("not a table"), true, byte(1))
	must(f, to.State().Set(rowKey(shard, 0), []byte("kept"), pebble.NoSync))
	before := fingerprint(f, to.State(), shard)
	f.Fuzz(func(t *testing.T, table []byte, right bool, sections byte) {
		sum := xxhash.Sum64(table)
		if !right {
			sum++
		}
		sent := streamHeader(shard, max(1, int(sections)))
		sent = append(append(sent, sectionHeader(int64(len(table)), sum)...), table...)
		i := ok(to.Import(shard))(t)
		_, err := bytes.NewReader(sent).WriteTo(i)
		if err == nil {
			err = i.Finish(t.Context())
		}
		must(t, i.Close())
		if err == nil && (!right || sections > 1) {
			t.Fatalf("%d bytes with sum %x were taken", len(table), binary.BigEndian.AppendUint64(nil, sum))
		}
		if after := fingerprint(t, to.State(), shard); after != before {
			t.Fatalf("the rows are %v, and were %v", after, before)
		}
	})
}
