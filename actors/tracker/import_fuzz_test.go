package tracker

import (
	"bytes"
	"testing"

	"switchyard/internal/testkit"
)

// FuzzParseLines reads the body of an import. The lines that are taken are the body's, in its order.
func FuzzParseLines(f *testing.F) {
	testkit.Corpus(f)
	f.Add([]byte(`{"n":0,"type":"export","version":1,"data":{}}` + "\n" + `{"n":1,"type":"team","data":{"id":"x"}}` + "\n" + `{"type":"end","counts":{"team":1},"sha256":"00"}` + "\n"))
	f.Add([]byte(`{"n":5,"type":"issue","data":null}`))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		lines, err := parseLines(body)
		if err != nil {
			return
		}
		var all []byte
		for i := range lines {
			if l := &lines[i]; i > 0 && l.n() >= 0 && l.n() != lines[i-1].n()+1 || i < len(lines)-1 && l.n() < 0 {
				t.Fatalf("line %d is %d", i, l.n())
			}
			all = append(all, lines[i].text...)
		}
		if len(body) > 0 && body[len(body)-1] != '\n' {
			body = append(bytes.Clone(body), '\n')
		}
		if len(lines) > maxImportLines || !bytes.Equal(all, body) {
			t.Fatalf("%d lines are %q, not %q", len(lines), all, body)
		}
	})
}
