package tracker

import (
	"slices"
	"testing"
)

// A rank is the place in the list of values, which is written to disk.
func TestEnums_RanksArePlaces(t *testing.T) {
	t.Parallel()
	check := func(values []string, rank func(string) byte) {
		t.Helper()
		for i, value := range values {
			if value == "" || rank(value) != byte(i) || slices.Index(values, value) != i {
				t.Errorf("%q has rank %d at place %d of %v", value, rank(value), i, values)
			}
		}
		if got := rank("another"); got != 0xff {
			t.Errorf("an unknown value has rank %d among %v", got, values)
		}
	}
	check(IssueStatus("").EnumValues(), func(s string) byte { return IssueStatus(s).rank() })
	check(IssuePriority("").EnumValues(), func(s string) byte { return IssuePriority(s).rank() })
	check(SessionStatus("").EnumValues(), func(s string) byte { return SessionStatus(s).rank() })
	check(DraftStatus("").EnumValues(), func(s string) byte { return DraftStatus(s).rank() })
	check(TicketStatus("").EnumValues(), func(s string) byte { return TicketStatus(s).rank() })
}
