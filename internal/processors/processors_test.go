package processors

import (
	"runtime"
	"testing"
)

func TestOversubscribe(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	if Count() != before {
		t.Errorf("%d processors, and Go runs %d goroutines at once", Count(), before)
	}
	Oversubscribe()
	if now := runtime.GOMAXPROCS(0); now != before+spare || Count() != before {
		t.Errorf("%d at once and %d processors, want %d and %d", now, Count(), before+spare, before)
	}
}
