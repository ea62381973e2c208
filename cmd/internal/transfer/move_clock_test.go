package transfer

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// Clusters whose clocks differ by more than a minute don't move workspaces, and nothing is changed. A
// workspace that an earlier run has closed moves all the same.
func TestMove_RefusesClocksApart(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		old, new time.Duration // by which the clocks are ahead
		mode     string
		fails    string
	}{
		{0, 0, "", ""},
		{50 * time.Second, 0, "", ""},
		{0, 50 * time.Second, "", ""},
		{time.Hour, time.Hour, "", ""},
		{time.Hour, 0, "", "differ by "},
		{-time.Hour, 0, "", "differ by "},
		{0, time.Hour, "", "differ by "},
		{-time.Minute, time.Minute, "", "differ by "},
		{time.Hour, 0, movingTo + "there", ""},
	} {
		from := &fakeCluster{id: "old", ahead: row.old, mode: row.mode}
		from.rows = func(w http.ResponseWriter, after string) { sendRows(w, after, "rows") }
		to := &fakeCluster{id: "new", ahead: row.new, end: func(http.ResponseWriter) {}}
		moved, err := runMove(t, t.Context(), from, to, 0)
		switch {
		case row.fails == "" && (err != nil || !slices.Contains(to.changes, "POST /arrival/a/end")):
			t.Errorf("%s and %s ahead: %+v, %v", row.old, row.new, moved, err)
		case row.fails != "" && (err == nil || !strings.Contains(err.Error(), row.fails) || len(from.changes)+len(to.changes) > 0):
			t.Errorf("%s and %s ahead: %+v, %v; asked for %q and %q", row.old, row.new, moved, err, from.changes, to.changes)
		}
	}
}

// The difference is at least what the date says, in whole seconds, whenever it was written between two
// moments.
func TestMove_AheadOf(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 20, 12, 0, 0, 500_000_000, time.UTC)
	ended := began.Add(2 * time.Second)
	for date, want := range map[string]time.Duration{
		"12:00:00": 0, "12:00:02": 0, "12:00:03": 500 * time.Millisecond, "12:01:02": 59500 * time.Millisecond,
		"11:59:59": -500 * time.Millisecond, "11:00:00": -time.Hour + 500*time.Millisecond,
	} {
		at, err := time.Parse("2006-01-02 15:04:05", "2026-11-20 "+date)
		if err != nil {
			t.Fatal(err)
		}
		if got := aheadOf(at, began, ended); got != want {
			t.Errorf("%s: %s ahead, want %s", date, got, want)
		}
	}
}
