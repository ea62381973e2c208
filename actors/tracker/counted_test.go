package tracker

import "testing"

func TestCounted(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 entries", 1: "1 entry", 2: "2 entries"} {
		if got := Counted(n, "entry", "entries"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
