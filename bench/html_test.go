package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// measured is a valid result with plots.
func measured(scenario string, connections int, rate float64) Result {
	s := newSample()
	s.timeline = newTimeline(4 * time.Second)
	w := s.timeline.writer()
	for i := range 4000 {
		s.requests++
		_ = s.latency.RecordValue(int64(100 + i))
		w.count(time.Duration(i)*time.Millisecond, int64(100+i))
	}
	w.flush()
	s.elapsed = time.Duration(float64(s.requests) / rate * float64(time.Second))
	return newResult(scenario, "what it does", connections, 0, s)
}

func TestHTML_StandsAloneAndShowsEverything(t *testing.T) {
	t.Parallel()
	get := measured("get", 16, 6000)
	get.Limit, get.Target = emptyLimit, 0.5
	r := Report{Seconds: 4, Results: []Result{
		get, measured(emptyLimit, 16, 10_000), measured("create <script>", 64, 1234),
		{Scenario: "poll", Connections: 16, Errors: 3, Fault: "status 503 & <b>more</b>"},
	}, Figures: []Figure{{Scenario: "waiting", About: "polls wait", Value: 12, Unit: "MB"}}}
	r.judge()
	text := written(t, &r)
	for _, want := range []string{"<b>0.60</b>", "target 0.50 met", "create &lt;script&gt;", "not valid", "status 503 &amp; &lt;b&gt;more", "waiting: polls wait: 12.00 MB", "1,234", "p99.99", "requests a second", "p99 in milliseconds"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, outside := range []string{"<script", "http://", "https://", "<link", "<img", "@import", "url("} {
		if strings.Contains(text, outside) {
			t.Errorf("the page has %q", outside)
		}
	}
	if plots := strings.Count(text, `role="img"`); plots != 9 {
		t.Errorf("%d plots of three results", plots)
	}
}

// The line of a target that is far away stays within its bar, and a target that was missed is marked.
func TestHTML_ShowsTargets(t *testing.T) {
	t.Parallel()
	bulk, open, get := measured("bulk", 16, 3000), measured("create", 16, 700), measured("get", 16, 900)
	bulk.Limit, bulk.Target = "create", 5
	open.Offered, open.P99Target = 700, 1
	get.Limit, get.Target = emptyLimit, 0.6 // the limit was not measured
	r := Report{
		Results: []Result{bulk, measured("create", 16, 1000), open, get, measured(pebbleLimit, 16, 2000)}, Create: writes{Keys: 7, Bytes: 700, Assumed: true},
		Figures: []Figure{{Scenario: "waiting", About: "polls wait", Value: 51, Unit: "MB", Target: 50}}, ReadyMillis: 150,
	}
	r.judge()
	text := written(t, &r)
	for _, want := range []string{`style="left: 100.0%"`, `style="width: 60.0%"`, "target 5.00 not met", `class="missed">missed: p99 &lt; 1<`, "<td>0.60<", "7 keys, 700 bytes (assumed", "51.00 MB (missed: below 50)", "150 ms (missed: below 150)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestHTML_OfAScaleRun(t *testing.T) {
	t.Parallel()
	r := Report{Scale: &Scale{Share: 0.15, Shards: 18, Connections: 16}}
	for _, n := range []int{1, 3, 9} {
		r.Scale.Sizes = append(r.Scale.Sizes, ScaleSize{Nodes: n})
		for _, straight := range []bool{false, true} {
			one := measured(scaleGet, 16*n, 1000*float64(n))
			one.Nodes, one.Straight = n, straight
			r.Results = append(r.Results, one)
		}
	}
	text := written(t, &r)
	for _, want := range []string{"Growth", "clients ask any node", "clients ask the owner", "from 3 to 9 nodes: get, asking the owner: x 3.00 (target: 2.4)", "9 nodes: 9,000/s"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// written is the page of a report, which has to be well-formed.
func written(t *testing.T, r *Report) string {
	t.Helper()
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(page.Bytes()))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
	}
	if strings.Contains(page.String(), "NaN") || strings.Contains(page.String(), "Inf") || strings.Contains(page.String(), "ZgotmplZ") {
		t.Error("the page has a value that is not a number or was refused")
	}
	return page.String()
}

func TestNiceStep(t *testing.T) {
	t.Parallel()
	for most, want := range map[float64]float64{10: 5, 4: 1, 61002: 20000, 0.3: 0.1} {
		if got := niceStep(most, 4); round(got) != want {
			t.Errorf("%g: %g, want %g", most, got, want)
		}
	}
}
