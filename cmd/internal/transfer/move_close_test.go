package transfer

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// A run of the command that copies while another one moves the workspace to another cluster does not move it a
// second time, and leaves the old place closed. Clusters of older versions take no conditions.
func TestMove_OfTwoTargetsOneTakesChanges(t *testing.T) {
	t.Parallel()
	for _, older := range []bool{false, true} {
		var began []string
		cluster := func(id string) (*fakeCluster, *Client) {
			f := &fakeCluster{id: id, older: older}
			f.rows = func(w http.ResponseWriter, after string) { sendRows(w, after, "rows") }
			f.end = func(w http.ResponseWriter) { began = append(began, id); _, _ = io.WriteString(w, `{}`) }
			server := httptest.NewServer(f)
			t.Cleanup(server.Close)
			client, err := NewClient(server.URL, "token")
			if err != nil {
				t.Fatal(err)
			}
			return f, client
		}
		from, old := cluster("old")
		_, first := cluster("first")
		_, second := cluster("second")
		runs := 0
		move := Move{From: old, To: second, Workspace: "moving", Where: "second", Progress: func(string, int64) {
			if runs++; runs > 1 {
				return
			}
			other := Move{From: old, To: first, Workspace: "moving", Where: "first"}
			if _, err := other.Run(t.Context()); err != nil {
				t.Error(err)
			}
		}}
		_, err := move.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "("+movedTo+"first)") {
			t.Errorf("the second run says %v", err)
		}
		if !slices.Equal(began, []string{"first"}) || from.mode != movedTo+"first" {
			t.Errorf("the workspace has begun in %q, and its old place says %q", began, from.mode)
		}
	}
}

// A mode that somebody else sets while the rows are copied stays, whether the move sees it before it closes the
// workspace or is refused. A mode that an earlier try of the same request has set is the move's own.
func TestMove_ClosesOnlyWhatIsOpen(t *testing.T) {
	t.Parallel()
	const lock, mine = "PUT /read-only", "Disks are replaced."
	for name, row := range map[string]struct {
		left   bool   // an earlier run has left the workspace closed
		copied string // mode that is set while rows are copied
		preset string // mode that is set before the move's own
		cut    bool   // the answer to the closing is lost
		mode   string // at the end
		old    []string
	}{
		"while rows are copied":                        {copied: mine, mode: mine},
		"while rows are copied, behind an earlier run": {left: true, copied: mine, mode: mine},
		"just before":                          {preset: mine, mode: mine, old: []string{lock}},
		"just before, behind an earlier run":   {left: true, preset: mine, mode: mine, old: []string{lock}},
		"a lost answer":                        {cut: true, mode: movedTo + "there", old: []string{lock, lock, lock}},
		"a lost answer, behind an earlier run": {left: true, cut: true, mode: movedTo + "there", old: []string{lock, lock, lock}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := &fakeCluster{id: "old", cutSet: row.cut}, &fakeCluster{id: "new", end: func(http.ResponseWriter) {}}
			if row.left {
				from.mode = movingTo + "there"
			}
			set := func(reason string) {
				if reason != "" {
					from.mode, from.modes = reason, from.modes+1
				}
			}
			from.rows = func(w http.ResponseWriter, after string) {
				from.mu.Lock()
				set(row.copied)
				from.mu.Unlock()
				sendRows(w, after, "rows")
			}
			from.preset = func() { set(row.preset) }
			_, err := runMove(t, t.Context(), from, to, 0)
			if moved := row.mode != mine; moved != (err == nil) || !moved && !strings.Contains(err.Error(), "("+mine+")") {
				t.Error(err)
			}
			if from.mode != row.mode || !slices.Equal(from.changes, row.old) {
				t.Errorf("the old cluster was asked for %q, and its mode is %q, want %q", from.changes, from.mode, row.mode)
			}
		})
	}
}
