package bench

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"
)

//go:embed report.html
var pageText string

var page = template.Must(template.New("report").Parse(pageText))

// WriteHTML writes the report as one page that needs nothing else: tables, and plots
// in SVG.
func (r *Report) WriteHTML(out io.Writer) error {
	v := pageView{
		Report: r, Title: "Switchyard bench", When: r.Started.Format("2006-01-02 15:04 MST"),
		About:   fmt.Sprintf("%s. Each measurement lasted %g s.", r.source(), r.Seconds),
		Bars:    r.ratioBars(),
		Tables:  r.rows(),
		Figures: r.figureLines(),
	}
	if r.Scale != nil {
		v.Title = "Switchyard bench scale"
		v.About += fmt.Sprintf(" Each node was held to %g of a core, with %d shards in all and %d clients a node.", r.Scale.Share, r.Scale.Shards, r.Scale.Connections)
		v.Growth, v.Lines = r.growthPlots(), r.growth()
	}
	v.Charts = r.charts()
	if err := page.Execute(out, v); err != nil {
		return fmt.Errorf("bench: write the page: %w", err)
	}
	return nil
}

// pageView is the content of the page.
type pageView struct {
	*Report
	Title, When, About string
	Bars               []bar
	Charts             []chart
	Growth             []chart
	Lines              []string
	Tables             []row
	Figures            []string
}

// bar is a result beside its limit.
type bar struct {
	Name, Value, Verdict string
	Met                  bool
	// Width is the ratio and Mark the target, in percents of the plot's width.
	Width, Mark float64
}

// ratioBars compares results with their limits. The axis ends at 1, or with the
// largest ratio or target.
func (r *Report) ratioBars() (bars []bar) {
	most := 1.0
	for i := range r.Results {
		if one := &r.Results[i]; one.Ratio > 0 {
			most = max(most, one.Ratio, one.Target)
		}
	}
	for i := range r.Results {
		one := &r.Results[i]
		if one.Ratio == 0 {
			continue
		}
		b := bar{
			Name: fmt.Sprintf("%s, %d", one.Scenario, one.Connections), Value: fmt.Sprintf("%.2f", one.Ratio), Verdict: "of " + strings.TrimPrefix(one.Limit, "limit: "),
			Met: one.Ratio >= one.Target, Width: 100 * one.Ratio / most, Mark: 100 * one.Target / most,
		}
		switch {
		case one.Target == 0:
		case b.Met:
			b.Verdict += fmt.Sprintf("; target %.2f met", one.Target)
		default:
			b.Verdict += fmt.Sprintf("; target %.2f not met", one.Target)
		}
		bars = append(bars, b)
	}
	return bars
}

// row is one row of the table.
type row struct {
	Name, Load, Rate, P50, P99, P999, Ratio, Target, Note string
	Connections                                           int
	Bad                                                   bool
	Judged                                                verdict
}

func (r *Report) rows() (rows []row) {
	for i := range r.Results {
		one := &r.Results[i]
		w := row{
			Name: one.Scenario, Load: one.load(), Rate: thousands(one.Rate), P50: one.millis(one.P50), P99: one.millis(one.P99), P999: one.millis(one.P999),
			Connections: one.Connections, Bad: !one.Valid(),
		}
		w.Target, w.Judged = one.target()
		if one.Nodes > 0 {
			w.Load = fmt.Sprintf("%s, asks %s", nodesText(one.Nodes), one.way())
		}
		if one.Ratio > 0 {
			w.Ratio = fmt.Sprintf("%.2f", one.Ratio)
		}
		if w.Bad {
			w.Rate, w.Note = "not valid", fmt.Sprintf("%d errors, the first: %s", one.Errors, one.Fault)
		}
		rows = append(rows, w)
	}
	return rows
}

// figureLines returns the figures other than rates, and the notes about the node.
func (r *Report) figureLines() (lines []string) {
	for i := range r.Figures {
		lines = append(lines, r.Figures[i].String())
	}
	if r.comparesWrites() {
		lines = append(lines, r.Create.String())
	}
	return append(lines, r.nodeLines()...)
}

// thousands writes a number with commas.
func thousands(v float64) string {
	text := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// charts groups the results of a scenario: their rates over time, and their latencies.
func (r *Report) charts() (charts []chart) {
	var names []string
	groups := map[string][]*Result{}
	for i := range r.Results {
		one := &r.Results[i]
		if len(one.Distribution) == 0 || !one.Valid() {
			continue
		}
		name := one.Scenario
		if one.Nodes > 0 {
			name += ", asking " + one.way()
		}
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], one)
	}
	colors := map[int]int{} // by connections, the same in all charts
	for _, name := range names {
		c := chart{Name: name, About: groups[name][0].About}
		c.Rate, c.P99 = newPlot("seconds", "requests a second"), newPlot("seconds", "p99 in milliseconds")
		c.Latency = newPlot("percentile", "milliseconds, logarithmic")
		for _, one := range groups[name] {
			if _, ok := colors[one.Connections]; !ok {
				colors[one.Connections] = len(colors) % plotColors
			}
			s := series{Color: colors[one.Connections], Dashed: one.Offered > 0, Label: fmt.Sprintf("%d connections, %s", one.Connections, one.load())}
			if one.Nodes > 0 {
				s.Label, c.About = nodesText(one.Nodes), ""
			}
			c.Series = append(c.Series, s)
			if len(one.Timeline) > 0 {
				c.Rate.addOverTime(s, one.Timeline, one.TimelineStep)
				c.P99.addOverTime(s, one.TimelineP99, one.TimelineStep)
			}
			c.Latency.addLatencies(s, one)
		}
		if len(c.Rate.Lines) == 0 {
			c.Rate, c.P99 = nil, nil
		} else {
			c.Rate.layLinear()
			c.P99.layLinear()
		}
		c.Latency.layPercentiles()
		charts = append(charts, c)
	}
	return charts
}

// growthPlots shows rates by the number of nodes.
func (r *Report) growthPlots() (charts []chart) {
	for _, scenario := range []string{scaleCreate, scaleGet} {
		c := chart{Name: scenario, About: "requests a second by the number of nodes"}
		p := newPlot("nodes", "requests a second")
		for i, straight := range []bool{false, true} {
			s := series{Color: i, Label: "clients ask " + (&Result{Straight: straight}).way()}
			var points []point
			for j := range r.Results {
				if one := &r.Results[j]; one.Scenario == scenario && one.Valid() && (one.Straight == straight || one.Nodes == 1) {
					points = append(points, point{X: float64(one.Nodes), Y: one.Rate, Says: fmt.Sprintf("%s: %s/s", nodesText(one.Nodes), thousands(one.Rate))})
				}
			}
			if len(points) > 0 {
				c.Series = append(c.Series, s)
				p.add(s, points, true)
			}
		}
		p.layLinear()
		c.Rate = p
		charts = append(charts, c)
	}
	return charts
}
