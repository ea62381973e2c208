package backup

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"testing"
	"time"

	"switchyard/cluster"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

// FuzzSegment reads the entries of a segment, and the name of it.
func FuzzSegment(f *testing.F) {
	testkit.Corpus(f)
	s := segment{cluster: logCluster, shard: 2, first: 7, last: 8, from: noon, until: noon.Add(time.Minute), sum: "00ff"}
	end, err := json.Marshal(segmentEnd{Version: segmentVersion, ClusterID: s.cluster, Shard: s.shard, First: s.first, Last: s.last, From: s.from, Until: s.until, Format: storage.FormatNewest})
	if err != nil {
		f.Fatal(err)
	}
	var content []byte
	for _, e := range logEntries(7, 8, 40) {
		entry := binary.AppendUvarint([]byte{flagCommand}, e.Term)
		entry = append(binary.BigEndian.AppendUint64(entry, uint64(e.AppendedAt.UnixNano())), e.Data...)
		content = append(binary.AppendUvarint(content, uint64(len(entry))), entry...)
	}
	f.Add(append(append(content, 0), end...), s.name())
	f.Add(append([]byte{0}, end...), s.name()+sealedSuffix)
	f.Add(content, "log/x-0001-1-2-3-4-5.log")
	f.Fuzz(func(t *testing.T, content []byte, name string) {
		if parsed, ok := parseSegment(name); ok && (parsed.name() != name || parsed.first > parsed.last) {
			t.Fatalf("%q is %+v", name, parsed)
		}
		o := &openedSegment{segment: s, in: bufio.NewReader(bytes.NewReader(content)), next: s.first}
		var e cluster.LogEntry
		var err error
		size := 0
		for want := s.first; err == nil; want++ {
			if err = o.read(&e); err == nil && (e.Index != want || want > s.last) {
				t.Fatalf("entry %d came where %d is due", e.Index, want)
			}
			size += len(e.Data)
			e.Data = nil
		}
		if size > len(content) {
			t.Fatalf("%d bytes of entries of %d", size, len(content))
		}
		if err == io.EOF && o.next != s.last+1 { //nolint:errorlint // a cut segment wraps it
			t.Fatalf("it ended behind entry %d", o.next-1)
		}
	})
}
