package tracker

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
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

// A client that goes on with an import can see whether its file is the one that was begun.
func TestImport_ShowsTheChecksumOfItsLines(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.work(PriorityLow)
	lines := f.exportedLines()
	sum, taken := sha256.New(), 0
	f.copiedIn(lines, 1, 0, func(to *agentFixture) {
		if taken < len(lines)-1 {
			sum.Write(lines[taken])
			taken++
		}
		want := hex.EncodeToString(sum.Sum(nil))
		shown := decode[ImportAnswer](t, to.run(to.admin, ShowImport, &None{}).Body).Import
		again := decode[ImportAnswer](t, to.run(to.admin, ImportLines, &ImportLinesIn{Body: lines[0]}).Body).Import
		for _, got := range []Import{shown, again} {
			if got.Next != int64(taken) || got.SHA256 != want {
				t.Errorf("after %d lines the progress is %+v", taken, got)
			}
		}
		view := to.view(to.home.Workspace.ID.raw())
		row, err := imports.Get(&view, nil)
		if err != nil || row.Value.SHA256 != "" {
			t.Errorf("the import is stored as %+v, %v", row, err)
		}
	})
}
