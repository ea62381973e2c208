package testkit

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// failures is a TB that records the reported errors.
type failures struct {
	TB
	texts []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

func TestEqual_NamesTheFieldsThatDiffer(t *testing.T) {
	t.Parallel()
	type value struct {
		Same, Other string
		Pointer     *int
	}
	one, two := 1, 2
	f := &failures{}
	Equal(f, "the value", value{"a", "b", &one}, value{"a", "b", &one})
	if len(f.texts) != 0 {
		t.Errorf("equal values: %q", f.texts)
	}
	Equal(f, "the value", value{"a", "b", &one}, value{"a", "c", &two})
	if len(f.texts) != 1 || !strings.Contains(f.texts[0], "Other") || !strings.Contains(f.texts[0], "Pointer") {
		t.Errorf("different values: %q", f.texts)
	}
}

func TestEventually_WaitsForTheCondition(t *testing.T) {
	t.Parallel()
	var looks atomic.Int64
	Eventually(t, "the third look", func() bool { return looks.Add(1) == 3 })
	if n := looks.Load(); n != 3 {
		t.Errorf("%d looks", n)
	}
}
