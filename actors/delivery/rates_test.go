package delivery

import (
	"fmt"
	"testing"
	"time"
)

func TestHostRates_AreBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_763_000_000, 0)
	h := newHostRates(Rate{Requests: 1})
	for i := range hostsKept + 100 {
		h.reserve(fmt.Sprint(i), now, 1)
		if len(h.buckets) > hostsKept {
			t.Fatalf("%d hosts are kept", len(h.buckets))
		}
	}
	h.sweep(now.Add(time.Minute))
	if len(h.buckets) != 0 {
		t.Errorf("%d full buckets are kept", len(h.buckets))
	}
}
