package tracker

import "testing"

// The length of an activity is counted in milliseconds: in nanoseconds it would end at 292 years.
func TestActivityFields_DurationFollowsFromTheTimes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		started, ended string
		want           float64
	}{
		{"2026-11-20T21:30:00Z", "2026-11-20T21:30:01.5Z", 1500},
		{"0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", 315537897599000},
		{"2026-11-20T21:30:00Z", "2026-11-20T21:29:59Z", 0}, // the agent's clock was set back
	} {
		a := (&ActivityFields{Message: Some("m"), StartedAt: Some(row.started), EndedAt: Some(row.ended)}).activity()
		if a.DurationMs == nil || *a.DurationMs != row.want {
			t.Errorf("%s to %s: %v, want %.0f ms", row.started, row.ended, a.DurationMs, row.want)
		}
	}
}
