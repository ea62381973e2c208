package httpapi

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"switchyard/actors/tracker"
)

// The answer gives the number of the faults that it does not list only if all were counted.
func TestBind_CountsFaults(t *testing.T) {
	t.Parallel()
	const listed = tracker.MaxFaults
	repeat := func(n int, text string) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }
	const items = `"items":[{"title":"t"}]`
	for name, row := range map[string]struct{ body, last string }{
		"names twice, all listed":    {`{"title":"t",` + repeat(listed+1, `"a":1`) + `}`, ""},
		"names twice, one more":      {`{"title":"t",` + repeat(listed+2, `"a":1`) + `}`, "There is 1 more fault."},
		"names twice, many":          {`{"title":"t",` + repeat(5001, `"a":1`) + `}`, "There are 4744 more faults."},
		"names twice, before items":  {`{` + items + `,` + repeat(listed+2, `"a":1`) + `}`, "There are more faults, at least 1."},
		"names twice, and another":   {`{` + repeat(listed+1, `"a":1`) + `}`, "There is 1 more fault."},
		"NUL":                        {`{` + items + `,"any":[` + repeat(500, `"\u0000"`) + `]}`, "There are 244 more faults."},
		"items":                      {`{"items":[` + repeat(listed, `{"title":1}`) + `]}`, ""},
		"more items than are read":   {`{"items":[` + repeat(listed+1, `{"title":1}`) + `]}`, "There may be more faults."},
		"more items, and another":    {`{"items":[` + repeat(500, `{"title":1}`) + `],"dryRun":1}`, "There are more faults, at least 1."},
		"items, and texts in others": {`{"items":[` + repeat(200, `{"title":1}`) + `],"any":[` + repeat(100, `"\u0000"`) + `]}`, "There are 44 more faults."},
	} {
		op := opMake
		if strings.Contains(row.body, "items") || strings.HasPrefix(row.body, `{"a"`) {
			op = tracker.CreateIssues
		}
		_, faults := bindFaults(t, op, row.body)
		last := faults[""]
		if last != row.last {
			t.Errorf("%s: %d faults, the last %q, want %q", name, len(faults), last, row.last)
		}
	}
}

// An integer that no field can hold is beyond every bound, and past the end where there is no bound.
func TestBind_LargeIntegersInQueries(t *testing.T) {
	t.Parallel()
	bind := func(op *tracker.Op, query string) (any, string) {
		p, err := newPlan(op, []string{workspaceParam})
		if err != nil {
			t.Fatal(err)
		}
		in := op.New()
		var b binder
		var told *tracker.Error
		if err := b.bind(p, in, &source{query: []byte(query), header: noHeaders{}, caller: &tracker.Caller{}, now: time.Now}); errors.As(err, &told) {
			return in, told.Details.(tracker.BadRequestDetails).Issues[0].Message
		}
		return in, ""
	}
	for text, want := range map[string]int64{
		"0": 0, "9007199254740992": 1 << 53, "9223372036854775807": math.MaxInt64, "9223372036854775808": math.MaxInt64, strings.Repeat("9", 400): math.MaxInt64,
	} {
		in, wrong := bind(opLines, "after="+text)
		if got := in.(*tracker.ExportIn).After; wrong != "" || got != tracker.Some(want) {
			t.Errorf("after=%s: %v %s", text, got, wrong)
		}
	}
	for query, want := range map[string]string{
		"after=-9223372036854775809": "Must be at least 0.", "after=-1": "Must be at least 0.", "after=1e99": "Must be an integer.", "after=099999999999999999999": "Must be an integer.",
		"after=99999999999999999999.5": "Must be an integer.",
	} {
		if _, wrong := bind(opLines, query); wrong != want {
			t.Errorf("%s: %q, want %q", query, wrong, want)
		}
	}
	for _, limit := range []string{"101", "99999999999999999999"} {
		if _, wrong := bind(opList, "limit="+limit); wrong != "Must be at most 100." {
			t.Errorf("limit=%s: %q", limit, wrong)
		}
	}
}
