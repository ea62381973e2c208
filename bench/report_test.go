package bench

import (
	"bytes"
	"strings"
	"testing"
)

func sound() *Report {
	r := &Report{
		Machine: Machine{Go: "go1.26", OS: "linux", Arch: "amd64", CPUs: 2},
		Results: []Result{
			{Scenario: "create", Connections: 16, Requests: 10, Rate: 5000, P50: 1, P99: 4, Limit: pebbleLimit, Target: 0.4},
			{Scenario: pebbleLimit, Connections: 16, Requests: 10, Rate: 10_000},
			{Scenario: pebbleLimit, Connections: 64, Requests: 10, Rate: 20_000},
			{Scenario: "create", Connections: 16, Requests: 10, Rate: 3500, Offered: 3500, P99: 2, Limit: pebbleLimit},
			{Scenario: "get", Connections: 16, Requests: 10, Rate: 40_000, Limit: emptyLimit, Target: 0.5},
		},
	}
	r.judge()
	return r
}

func TestReport_RatiosAreToTheLimitAtTheSameConnections(t *testing.T) {
	t.Parallel()
	r := sound()
	if got := r.Results[0].Ratio; got != 0.5 {
		t.Errorf("ratio %g, want 0.5", got)
	}
	if got := r.Results[3].Ratio; got != 0 {
		t.Errorf("an open load has the ratio %g", got)
	}
	if got := r.Results[4].Ratio; got != 0 {
		t.Errorf("a limit that was not measured gives %g", got)
	}
	r.Results[1].Errors = 1
	r.Results[0].Ratio = 0
	r.judge()
	if got := r.Results[0].Ratio; got != 0 {
		t.Errorf("a limit with errors gives %g", got)
	}
}

// A result that misses one of its targets is marked in the table.
func TestReport_MarksMissedTargets(t *testing.T) {
	t.Parallel()
	for want, one := range map[string]Result{
		"0.50":                 {Rate: 10, Limit: emptyLimit, Ratio: 0.5, Target: 0.5},
		"missed: 0.60":         {Rate: 10, Limit: emptyLimit, Ratio: 0.5, Target: 0.6},
		"0.60":                 {Rate: 10, Limit: emptyLimit, Target: 0.6}, // the limit was not measured
		"missed: 0.80, 8000/s": {Rate: 7999, Ratio: 0.9, Target: 0.8, RateTarget: 8000},
		"0.80, 8000/s":         {Rate: 8000, Ratio: 0.9, Target: 0.8, RateTarget: 8000},
		"p99 < 15":             {Rate: 10, Offered: 10, P99: 14.9, P99Target: 15, Target: 0.35},
		"missed: p99 < 15":     {Rate: 10, Offered: 10, P99: 15, P99Target: 15},
		"missed: p50 < 5":      {Rate: 10, Offered: 10, P50: 5, P50Target: 5},
	} {
		one.Scenario, one.Connections, one.Requests = "some", 16, 10
		var table bytes.Buffer
		if err := (&Report{Results: []Result{one}}).Print(&table); err != nil {
			t.Fatal(err)
		}
		_, row, _ := strings.Cut(table.String(), "\n")
		row, _, _ = strings.Cut(row, "\n")
		if !strings.HasSuffix(strings.TrimSpace(row), "  "+want) {
			t.Errorf("%s: want %q", row, want)
		}
	}
}

// So is a figure.
func TestReport_MarksMissedFigures(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]Report{
		"0.79 ms (target: below 0.8)\n":                  {Figures: []Figure{{Value: 0.79, Unit: "ms", Target: 0.8}}},
		"0.80 ms (missed: below 0.8)\n":                  {Figures: []Figure{{Value: 0.8, Unit: "ms", Target: 0.8}}},
		"ready after 151 ms (missed: below 150)\n":       {ReadyMillis: 151},
		"49 MB idle (target: below 50), 0 MB after all":  {IdleRSS: 49 << 20},
		"50 MB idle (missed: below 50), 70 MB after all": {IdleRSS: 50 << 20, LoadedRSS: 70 << 20},
	} {
		var out bytes.Buffer
		if err := r.Print(&out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestReport_PrintAndJSON(t *testing.T) {
	t.Parallel()
	r := sound()
	r.Version, r.ReadyMillis, r.IdleRSS, r.Create = "1.2", 81.5, 40<<20, writes{Keys: 17, Bytes: 3000}
	var table, stored bytes.Buffer
	if err := r.Print(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0.50", "0.40", "open 3500/s", "17 keys, 3000 bytes\n", "ready after 82 ms", "40 MB idle", "switchyard 1.2, 2 processors, linux/amd64, go1.26, "} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("%q is not in\n%s", want, table.String())
		}
	}
	if err := r.WriteJSON(&stored); err != nil {
		t.Fatal(err)
	}
	back, err := ReadReport(&stored)
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := back.Print(&again); err != nil || again.String() != table.String() {
		t.Errorf("read back, it prints (%v)\n%s", err, again.String())
	}
	if _, err := ReadReport(strings.NewReader("{")); err == nil {
		t.Error("half a report was read")
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	before, after := sound(), sound()
	after.Results[0].Rate, after.Results[0].Ratio = 6000, 0.6
	var out bytes.Buffer
	if err := Compare(before, after, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"+20.0 %", "0.50", "0.60", "open"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "different") {
		t.Errorf("one machine and the same data, yet\n%s", out.String())
	}
	out.Reset()
	after.Machine.CPUs = 8
	if err := Compare(before, after, &out); err != nil || !strings.Contains(out.String(), "different machines") {
		t.Errorf("two machines: %v\n%s", err, out.String())
	}
	out.Reset()
	after.Issues++
	if err := Compare(before, after, &out); err != nil || !strings.Contains(out.String(), "different data") {
		t.Errorf("more issues: %v\n%s", err, out.String())
	}
}

// Figures of another program, of other issues, or of a larger cluster are told apart.
func TestCompare_SaysWhatTheFiguresAreOf(t *testing.T) {
	t.Parallel()
	before, after := sound(), sound()
	before.Version, after.Version = "1.0", "1.1"
	after.Text.Title = 8
	for _, r := range []*Report{before, after} {
		for _, straight := range []bool{false, true} {
			r.Results = append(r.Results, Result{Scenario: scaleGet, Connections: 144, Requests: 1, Rate: 100, Nodes: 3, Straight: straight})
		}
	}
	var out bytes.Buffer
	if err := Compare(before, after, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"before: switchyard 1.0, 2 processors, linux/amd64, go1.26,", "after:  switchyard 1.1,", "different issues: text: titles of 0.0 words", "3 nodes, get, asking any node", "3 nodes, get, asking the owner"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestCompare_SetsFiguresBesideEachOther(t *testing.T) {
	t.Parallel()
	before := &Report{Figures: []Figure{
		{Scenario: "waiting", About: "memory", Value: 40, Unit: "MB", Target: 50},
		{Scenario: "dispatch-claim", About: "p50", Value: 0.5, Unit: "ms"},
		{Scenario: "dispatch-claim", About: "p99", Value: 9, Unit: "ms"},
	}}
	after := &Report{Figures: []Figure{
		{Scenario: "dispatch-claim", About: "p50", Value: 0.25, Unit: "ms"},
		{Scenario: "dispatch-claim", About: "p99", Value: 7, Unit: "ms"},
		{Scenario: "waiting", About: "processor", Value: 0.1, Unit: "%"},
	}}
	var out bytes.Buffer
	if err := Compare(before, after, &out); err != nil {
		t.Fatal(err)
	}
	want := "dispatch-claim: p50: 0.25 ms\n  before: 0.50 ms\ndispatch-claim: p99: 7.00 ms\n  before: 9.00 ms\n"
	if !strings.HasSuffix(out.String(), want) || strings.Contains(out.String(), "waiting") {
		t.Errorf("printed\n%s\nwant at its end\n%s", out.String(), want)
	}
	after.Figures[0].Fault = "nobody came"
	if err := Compare(before, after, &out); err == nil || !strings.Contains(err.Error(), "nobody came") {
		t.Errorf("a figure with a fault: %v", err)
	}
}

func TestCompare_Refuses(t *testing.T) {
	t.Parallel()
	faulty, other := sound(), sound()
	faulty.Results[4].Errors, faulty.Results[4].Fault = 3, "status 503"
	other.Results = []Result{{Scenario: "list", Connections: 16, Requests: 1, Rate: 1}}
	empty := sound()
	empty.Results[0].Requests = 0
	for name, pair := range map[string][2]*Report{
		"errors before":     {faulty, sound()},
		"errors after":      {sound(), faulty},
		"nothing measured":  {sound(), empty},
		"nothing in common": {sound(), other},
	} {
		var out bytes.Buffer
		if err := Compare(pair[0], pair[1], &out); err == nil {
			t.Errorf("%s: compared\n%s", name, out.String())
		}
	}
}
