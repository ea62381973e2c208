package bench

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is the result of a run. Compare reads its JSON form.
type Report struct {
	Started time.Time `json:"started"`
	// Version of the program that measured. It is also that of the nodes it started.
	Version    string  `json:"version,omitempty"`
	Machine    Machine `json:"machine"`
	URL        string  `json:"url,omitempty"` // of a node that was running; empty: one was started
	Workspaces int     `json:"workspaces"`
	Issues     int     `json:"issues"`
	// Seconds each measurement lasted.
	Seconds float64 `json:"seconds"`
	// ReadyMillis is how long the started node took until it was ready.
	ReadyMillis float64 `json:"readyMillis,omitempty"`
	// IdleRSS and LoadedRSS are the started node's memory in bytes, one second after
	// it was ready and after all load.
	IdleRSS   int64 `json:"idleRSS,omitempty"`
	LoadedRSS int64 `json:"loadedRSS,omitempty"`
	// Create is the size of one create's writes, which the Pebble limit repeats.
	Create writes `json:"create"`
	// Text describes the text of the written issues.
	Text    TextStatistics `json:"text"`
	Results []Result       `json:"results"`
	Figures []Figure       `json:"figures,omitempty"`
	// Scale is there in reports of RunScale.
	Scale *Scale `json:"scale,omitempty"`
}

// source returns the program and the machine that the figures are of, as a line of the report.
func (r *Report) source() string {
	return fmt.Sprintf("switchyard %s, %d processors, %s/%s, %s, %s",
		cmp.Or(r.Version, "of an unknown version"), r.Machine.CPUs, r.Machine.OS, r.Machine.Arch, r.Machine.Go, r.Started.Format("2006-01-02 15:04 MST"))
}

// Figure is a result of a scenario other than a rate.
type Figure struct {
	Scenario string  `json:"scenario"`
	About    string  `json:"about"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit,omitempty"`
	// Target is the value that the figure should stay below; 0: there is none.
	Target float64 `json:"target,omitempty"`
	Fault  string  `json:"fault,omitempty"` // why there is no value
}

// String returns the figure as a line of the report.
func (f *Figure) String() string {
	text := fmt.Sprintf("%s: %s: %.2f %s", f.Scenario, f.About, f.Value, f.Unit)
	switch {
	case f.Fault != "":
		return fmt.Sprintf("%s: %s: not valid: %s", f.Scenario, f.About, f.Fault)
	case f.Target != 0:
		return text + " " + below(f.Value, f.Target)
	}
	return text
}

// below returns the target that a value should stay below, and says if it was missed.
func below(value, target float64) string {
	if value < target {
		return fmt.Sprintf("(target: below %g)", target)
	}
	return fmt.Sprintf("(missed: below %g)", target)
}

// Machine describes the hardware and software that figures depend on.
type Machine struct {
	Go   string `json:"go"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
}

// Result is one measurement.
type Result struct {
	Scenario    string `json:"scenario"`
	About       string `json:"about,omitempty"`
	Connections int    `json:"connections"`
	// Offered is the rate of an open load; 0 for a closed one.
	Offered  float64 `json:"offered,omitempty"`
	Requests int64   `json:"requests"`
	Errors   int64   `json:"errors"`
	Fault    string  `json:"fault,omitempty"` // the first error
	// Rate is good answers a second.
	Rate float64 `json:"rate"`
	// Latencies in milliseconds; of an open load from when a request was due.
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
	// Timeline has the rates of equal parts of the measured time, each TimelineStep
	// seconds long, TimelineP99 the p99 of what was answered in each, and Distribution the
	// latencies at plottedPercentiles.
	Timeline     []float64 `json:"timeline,omitempty"`
	TimelineP99  []float64 `json:"timelineP99,omitempty"`
	TimelineStep float64   `json:"timelineStep,omitempty"`
	Distribution []float64 `json:"distribution,omitempty"`
	// Limit names the result this one is judged by; Ratio is the share of its rate
	// that was reached, Target the share that should be.
	Limit  string  `json:"limit,omitempty"`
	Ratio  float64 `json:"ratio,omitempty"`
	Target float64 `json:"target,omitempty"`
	// RateTarget is the rate to reach, and P50Target and P99Target are the latencies to stay
	// below, for results that have figures of their own as targets.
	RateTarget float64 `json:"rateTarget,omitempty"`
	P50Target  float64 `json:"p50Target,omitempty"`
	P99Target  float64 `json:"p99Target,omitempty"`
	// Nodes is the size of the cluster in a scale run, and Straight says that clients
	// asked the owner of their workspace. NodeMicros is the processor time of all nodes
	// for a request, in microseconds, CapUsed the part of their caps that the nodes used,
	// and ClientCores the number of cores that the clients used.
	Nodes       int     `json:"nodes,omitempty"`
	Straight    bool    `json:"straight,omitempty"`
	NodeMicros  float64 `json:"nodeMicros,omitempty"`
	CapUsed     float64 `json:"capUsed,omitempty"`
	ClientCores float64 `json:"clientCores,omitempty"`
}

// Targets of a started node.
const (
	readyTarget   = 150 * time.Millisecond
	idleRSSTarget = 50 << 20
)

// Valid reports whether the figure means anything: it was measured without an error.
func (r *Result) Valid() bool { return r.Errors == 0 && r.Requests > 0 }

// millis writes one of the latencies; a figure without any has none.
func (r *Result) millis(latency float64) string {
	if r.Max == 0 && latency == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", latency)
}

// load names the kind of load.
func (r *Result) load() string {
	if r.Offered > 0 {
		return fmt.Sprintf("open %.0f/s", r.Offered)
	}
	return "closed"
}

func (r *Result) same(o *Result) bool {
	return r.Scenario == o.Scenario && r.Connections == o.Connections && (r.Offered > 0) == (o.Offered > 0) && r.Nodes == o.Nodes && r.Straight == o.Straight
}

func newResult(name, about string, connections int, offered float64, s *sample) Result {
	at := func(quantile float64) float64 { return float64(s.latency.ValueAtQuantile(quantile)) / 1000 }
	one := Result{
		Scenario: name, About: about, Connections: connections, Offered: offered,
		Requests: s.requests, Errors: s.errors, Fault: s.fault, Rate: math.Round(s.rate()*10) / 10,
		P50: at(50), P99: at(99), P999: at(99.9), Max: float64(s.latency.Max()) / 1000,
	}
	if s.requests > 0 {
		one.addTimeline(s.timeline)
		for _, percentile := range plottedPercentiles {
			one.Distribution = append(one.Distribution, at(percentile))
		}
	}
	return one
}

// addTimeline fills in how the rate and the p99 went.
func (r *Result) addTimeline(t *timeline) {
	if t == nil {
		return
	}
	r.TimelineStep = t.step.Seconds()
	for _, part := range t.parts {
		var n, p99 float64
		if part != nil {
			n, p99 = float64(part.TotalCount()), float64(part.ValueAtQuantile(99))/1000
		}
		r.Timeline = append(r.Timeline, math.Round(n/r.TimelineStep*10)/10)
		r.TimelineP99 = append(r.TimelineP99, p99)
	}
}

// plottedPercentiles are those that a result keeps the latency of, for plots.
var plottedPercentiles = [...]float64{50, 60, 70, 80, 90, 95, 98, 99, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99}

// verdict says whether a result met its targets.
type verdict string

const (
	notJudged verdict = ""
	targetMet verdict = "met"
	missed    verdict = "missed"
)

// target returns the targets of a result, as the tables show them, and whether the result
// meets all of them. A ratio that is not known is not judged, and neither is a result that is not valid.
func (r *Result) target() (text string, judged verdict) {
	var targets []string
	met, known := true, r.Valid()
	add := func(target float64, format string, reached bool) {
		if target > 0 {
			targets = append(targets, fmt.Sprintf(format, target))
			met = met && reached
		}
	}
	if r.Offered == 0 {
		add(r.Target, "%.2f", r.Ratio == 0 || r.Ratio >= r.Target)
		known = known && (r.Target == 0 || r.Ratio > 0)
	}
	add(r.RateTarget, "%.0f/s", r.Rate >= r.RateTarget)
	add(r.P50Target, "p50 < %g", r.P50 < r.P50Target)
	add(r.P99Target, "p99 < %g", r.P99 < r.P99Target)
	text = strings.Join(targets, ", ")
	switch {
	case !met && r.Valid():
		return "missed: " + text, missed
	case !known || text == "":
		return text, notJudged
	}
	return text, targetMet
}

// judge fills in the ratios of the closed results to their limits.
func (r *Report) judge() {
	for i := range r.Results {
		one := &r.Results[i]
		if one.Limit == "" || one.Offered > 0 {
			continue
		}
		limit := Result{Scenario: one.Limit, Connections: one.Connections}
		for j := range r.Results {
			if l := &r.Results[j]; l.same(&limit) && l.Valid() && one.Valid() {
				one.Ratio = math.Round(one.Rate/l.Rate*1000) / 1000
			}
		}
	}
}

// Err tells which figures are not valid; nil when all are.
func (r *Report) Err() error {
	var faults []error
	for i := range r.Results {
		if one := &r.Results[i]; !one.Valid() {
			faults = append(faults, fmt.Errorf("%s at %d connections (%s): %d errors in %d requests, the first: %s",
				one.Scenario, one.Connections, one.load(), one.Errors, one.Requests, one.Fault))
		}
	}
	for i := range r.Figures {
		if f := &r.Figures[i]; f.Fault != "" {
			faults = append(faults, fmt.Errorf("%s: %s", f.Scenario, f.Fault))
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("bench: not valid: %w", errors.Join(faults...))
	}
	return nil
}

// comparesWrites reports whether commits of the size of a create were measured.
func (r *Report) comparesWrites() bool {
	return slices.ContainsFunc(r.Results, func(one Result) bool { return one.Scenario == pebbleLimit })
}

// nodeLines returns what is known of the started node.
func (r *Report) nodeLines() (lines []string) {
	if r.ReadyMillis > 0 {
		lines = append(lines, fmt.Sprintf("ready after %.0f ms %s", r.ReadyMillis, below(r.ReadyMillis, float64(readyTarget.Milliseconds()))))
	}
	if r.IdleRSS > 0 {
		idle := r.IdleRSS >> 20
		lines = append(lines, fmt.Sprintf("memory: %d MB idle %s, %d MB after all load", idle, below(float64(idle), idleRSSTarget>>20), r.LoadedRSS>>20))
	}
	return lines
}

// Print writes the report as a table.
func (r *Report) Print(out io.Writer) error {
	if r.Scale != nil {
		return r.printScale(out)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "scenario\tconnections\tload\trate/s\tp50 ms\tp99 ms\terrors\tof its limit\ttarget\t\n")
	for i := range r.Results {
		one := &r.Results[i]
		ratio := ""
		if one.Ratio > 0 {
			ratio = fmt.Sprintf("%.2f", one.Ratio)
		}
		rate := fmt.Sprintf("%.0f", one.Rate)
		if !one.Valid() {
			rate, ratio = "not valid", ""
		}
		target, _ := one.target()
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t\n",
			one.Scenario, one.Connections, one.load(), rate, one.millis(one.P50), one.millis(one.P99), one.Errors, ratio, target)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("bench: print: %w", err)
	}
	_, err := fmt.Fprintf(out, "\n%s\n%s\n", r.source(), r.Text)
	if r.comparesWrites() && err == nil {
		_, err = fmt.Fprintln(out, r.Create)
	}
	for i := range r.Figures {
		if err == nil {
			_, err = fmt.Fprintln(out, &r.Figures[i])
		}
	}
	for _, line := range r.nodeLines() {
		if err == nil {
			_, err = fmt.Fprintln(out, line)
		}
	}
	if err != nil {
		return fmt.Errorf("bench: print: %w", err)
	}
	return nil
}

// WriteJSON writes the report for Compare.
func (r *Report) WriteJSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("bench: write the report: %w", err)
	}
	return nil
}

// ReadReport reads a report that WriteJSON wrote.
func ReadReport(in io.Reader) (*Report, error) {
	var r Report
	if err := json.NewDecoder(in).Decode(&r); err != nil {
		return nil, fmt.Errorf("bench: read a report: %w", err)
	}
	return &r, nil
}
