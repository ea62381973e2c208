package node

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metric is what queries may use of a metric.
type metric struct {
	kind   string // counter, gauge, histogram or summary
	labels []string
}

// catalog are the metrics of a node by name.
type catalog map[string]metric

// targetLabels are those that Prometheus adds to every metric.
var targetLabels = []string{"job", "instance", "namespace"}

var (
	quoted   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	comment  = regexp.MustCompile(`#[^\n]*`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^()]*)\)`)
	term     = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\(|\{[^{}]*\}\s*\[?|\[)?`)
	within5m = regexp.MustCompile(`\[[^\[\]]*\]`)
	matcher  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)\s*(?:=~|!~|!=|=)`)
)

// operators are the words of PromQL that are neither functions with a bracket nor metrics.
var operators = []string{"and", "or", "unless", "bool", "offset", "inf", "nan", "by", "without", "on", "ignoring"}

// faults returns the reasons why a query of Prometheus can't give what it is meant to: metrics and
// labels that no node has, suffixes that are not those of the kind, rates of gauges, and counters
// that are not rates. It knows the part of PromQL that the project's queries use.
func (c catalog) faults(query string) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	query = comment.ReplaceAllString(quoted.ReplaceAllString(query, `""`), "")
	var grouped []string
	for _, group := range grouping.FindAllStringSubmatch(query, -1) {
		for label := range strings.SplitSeq(group[1], ",") {
			if label = strings.TrimSpace(label); label != "" {
				grouped = append(grouped, label)
			}
		}
	}
	query = grouping.ReplaceAllString(query, "")
	known := slices.Clone(targetLabels)
	found := 0
	for _, at := range term.FindAllStringSubmatchIndex(within5m.ReplaceAllString(query, "[ "), -1) {
		text := within5m.ReplaceAllString(query, "[ ")
		name, rest := text[at[2]:at[3]], ""
		if at[4] >= 0 {
			rest = text[at[4]:at[5]]
		}
		if rest == "(" || slices.Contains(operators, strings.ToLower(name)) {
			continue
		}
		found++
		if name == "up" {
			continue
		}
		base, suffix := name, ""
		m, ok := c[name]
		for _, s := range []string{"_bucket", "_sum", "_count"} {
			if b, cut := strings.CutSuffix(name, s); cut && !ok {
				base, suffix = b, s
				m, ok = c[b]
			}
		}
		if !ok {
			fault("no node has %s", name)
			continue
		}
		if (m.kind == "histogram") != (suffix != "") {
			fault("%s is a %s", base, m.kind)
		}
		labels := slices.Clone(m.labels)
		if suffix == "_bucket" {
			labels = append(labels, "le")
		}
		for _, label := range m.labels {
			if slices.Contains(targetLabels, label) {
				labels = append(labels, "exported_"+label)
			}
		}
		known = append(known, labels...)
		for _, match := range matcher.FindAllStringSubmatch(rest, -1) {
			if !slices.Contains(labels, match[1]) && !slices.Contains(targetLabels, match[1]) {
				fault("%s has no label %s", name, match[1])
			}
		}
		ranged := strings.HasSuffix(rest, "[")
		before := strings.TrimRight(text[:at[2]], " \n(")
		switch function := before[strings.LastIndexAny(before, " \n(")+1:]; {
		case (m.kind == "counter" || suffix != "") && !ranged:
			fault("%s is a counter, whose value means little: take its rate", name)
		case m.kind == "gauge" && (function == "rate" || function == "increase"):
			fault("%s is a gauge, which has no %s", name, function)
		}
	}
	if found == 0 {
		fault("no metric")
	}
	for _, label := range grouped {
		if !slices.Contains(known, label) {
			fault("grouped by %s, which is a label of none of the metrics", label)
		}
	}
	return faults
}

func TestQuery_FaultsAreFound(t *testing.T) {
	t.Parallel()
	c := catalog{
		"a_total": {"counter", []string{"outcome"}},
		"b_bytes": {"gauge", []string{"shard", "instance"}},
		"c":       {"histogram", []string{"status"}},
	}
	for query, says := range map[string]string{
		`sum by (job, outcome) (rate(a_total{outcome=~"x|b_byt()"}[5m])) > 0.5`:    "",
		`histogram_quantile(0.99, sum by (le, status) (rate(c_bucket[5m])))`:       "",
		"max(b_bytes) # d_total\n- min by (shard) (b_bytes > 0)":                   "",
		`changes(b_bytes{shard="1"}[10m]) > 3 and deriv(max(b_bytes)[10m:1m]) > 0`: "",
		`sum by (exported_instance) (b_bytes) unless on (job) up == 0`:             "",
		`rate(d_total[5m])`:                       "no node has d_total",
		`b_bytes_count > 0`:                       "b_bytes is a gauge",
		`rate(c[5m])`:                             "c is a histogram",
		`rate(c_total[5m])`:                       "no node has c_total",
		`a_total > 0`:                             "a_total is a counter",
		`sum(c_count{status="1"})`:                "c_count is a counter",
		`sum(rate(b_bytes[5m]))`:                  "b_bytes is a gauge, which has no rate",
		`rate(a_total{status="1"}[5m])`:           "a_total has no label status",
		`rate(c_sum{le="1"}[5m])`:                 "c_sum has no label le",
		`sum by (reason) (rate(a_total[5m]))`:     "grouped by reason",
		`sum by (le) (rate(c_count[5m]))`:         "grouped by le",
		`vector(0)`:                               "no metric",
		`b_bytes > 1 or vector(0) and on (x) up`:  "grouped by x",
		`max(b_bytes{exported_outcome="1"}) or b`: "no node has b",
	} {
		faults := strings.Join(c.faults(query), "; ")
		if says == "" && faults != "" || !strings.Contains(faults, says) {
			t.Errorf("%s: want %q, got %q", query, says, faults)
		}
	}
}
