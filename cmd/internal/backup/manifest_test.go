package backup

import (
	"bytes"
	"testing"
	"time"

	"switchyard/internal/testkit"
	"switchyard/storage"
)

// FuzzManifest reads any text as a manifest: one that is taken is, byte for byte, what a backup
// writes, and names no file outside of the archive.
func FuzzManifest(f *testing.F) {
	testkit.Corpus(f)
	good, err := manifestOf("cluster", time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte(`{"version":1,"shards":-1,"files":null,"complete":true}`))
	f.Add([]byte(`{"version":99999999999999999999}`))
	f.Add([]byte(`[]`))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseManifest(text)
		if err != nil {
			return
		}
		again, err := m.encode()
		if err != nil || !bytes.Equal(again, text) {
			t.Errorf("%q is taken for %q, %v", text, again, err)
		}
		if m.check(false) != nil {
			return
		}
		for i := range m.Files {
			if name := NewArchive(InDir("x"), nil).shardName(&m.Files[i]); len(name) != len(shardDir)+64+len(shardSuffix) || bytes.ContainsAny([]byte(name[len(shardDir):]), "/\\") {
				t.Errorf("a file is called %q", name)
			}
		}
	})
}

// A backup of the first format is one that older versions read; of a later one they say that they
// don't.
func TestManifest_Format(t *testing.T) {
	t.Parallel()
	for format, want := range map[storage.Format]string{
		storage.FormatFirst: `"version": 1,`, storage.FormatNumbered: `"format": 2,`, storage.FormatReferences: `"format": 3,`,
	} {
		m := manifestOf("cluster", time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC))
		m.setFormat(format)
		text, err := m.encode()
		if err != nil || !bytes.Contains(text, []byte(want)) || bytes.Contains(text, []byte(`"format"`)) != (format > storage.FormatFirst) {
			t.Errorf("format %d: %s, %v", format, text, err)
		}
		read, err := parseManifest(text)
		if err != nil || read.format() != format {
			t.Errorf("format %d is read as %+v, %v", format, read, err)
		}
	}
}
