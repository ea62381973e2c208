package httpapi

import (
	"slices"
	"strings"
	"testing"
)

// An empty If-Match must not count as none: the write would be made without its condition.
func TestRoutes_IfMatchNeedsATag(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Engine: &fakeEngine{}, Cluster: &fakeCluster{}, PublicURL: "https://switchyard.example"})
	if err != nil {
		t.Fatal(err)
	}
	conditional := 0
	for _, rt := range s.routes {
		if rt.plan == nil {
			continue
		}
		i := slices.IndexFunc(rt.plan.header, func(f *field) bool { return strings.EqualFold(f.name, "If-Match") })
		if i < 0 {
			continue
		}
		if conditional++; rt.plan.header[i].checkText("") == "" {
			t.Errorf("%s takes an empty If-Match", rt.label)
		}
	}
	if conditional < 10 {
		t.Errorf("only %d operations take If-Match", conditional)
	}
}
