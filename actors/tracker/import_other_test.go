package tracker

import (
	"bytes"
	"errors"
	"testing"
)

// The exports of a workspace begin with the same line for as long as nobody changes its settings. So
// the last line decides whether a file is the one that was taken.
func TestImport_RefusesANewerExport(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.work(PriorityLow)
	older, to := f.exportedLines(), f.copied()
	f.work(PriorityLow)
	newer := f.exportedLines()
	if !bytes.Equal(older[0], newer[0]) || len(newer) <= len(older) {
		t.Fatalf("the newer export begins with %s, the older one with %s", newer[0], older[0])
	}
	send := func(lines ...[]byte) (Import, error) {
		reply, err := to.try(to.admin, ImportLines, &ImportLinesIn{Body: bytes.Join(lines, nil)})
		if err != nil {
			return Import{}, err
		}
		return decode[ImportAnswer](t, reply.Body).Import, nil
	}
	end := older[len(older)-1]
	for name, lines := range map[string][][]byte{
		"all lines":      newer,
		"the later ones": newer[len(older)-1:],
		"its last line":  newer[len(newer)-1:],
		"other counts":   {bytes.Replace(end, []byte(`"issue":1`), []byte(`"issue":2`), 1)},
	} {
		_, err := send(lines...)
		if told := (*Error)(nil); !errors.As(err, &told) || told.Code != CodeConflict || told.Message != "The workspace has the import of another file." {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, lines := range map[string][][]byte{"all lines": older, "the last line": {end}} {
		if got, err := send(lines...); err != nil || got.State != ImportDone || got.Next != int64(len(older)-1) {
			t.Errorf("a repeat of %s: %+v, %v", name, got, err)
		}
	}
	to.verify()
}
