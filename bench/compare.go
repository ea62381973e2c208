package bench

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
)

// Compare sets two reports beside each other: rates, latencies, and the ratios to
// the limits of each one's own run, which say more when machines or hours differ.
// It refuses reports with errors in them: a fast refusal is no answer.
func Compare(before, after *Report, out io.Writer) error {
	if err := before.Err(); err != nil {
		return fmt.Errorf("the first report: %w", err)
	}
	if err := after.Err(); err != nil {
		return fmt.Errorf("the second report: %w", err)
	}
	if before.Version != after.Version {
		if _, err := fmt.Fprintf(out, "before: %s\nafter:  %s\n\n", before.source(), after.source()); err != nil {
			return fmt.Errorf("bench: print: %w", err)
		}
	}
	if before.Machine != after.Machine {
		if _, err := fmt.Fprintf(out, "different machines: %+v and %+v; only the ratios compare\n\n", before.Machine, after.Machine); err != nil {
			return fmt.Errorf("bench: print: %w", err)
		}
	}
	if before.Issues != after.Issues || before.Workspaces != after.Workspaces {
		if _, err := fmt.Fprintf(out, "different data: %d issues in %d workspaces and %d in %d; rates don't compare\n\n", before.Issues, before.Workspaces, after.Issues, after.Workspaces); err != nil {
			return fmt.Errorf("bench: print: %w", err)
		}
	}
	if before.Text != after.Text {
		if _, err := fmt.Fprintf(out, "different issues: %s; and %s; rates don't compare\n\n", before.Text, after.Text); err != nil {
			return fmt.Errorf("bench: print: %w", err)
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "scenario\tconnections\tload\trate/s\t\t\tp99 ms\t\tof its limit\t\t\n")
	common := 0
	for i := range before.Results {
		b := &before.Results[i]
		for j := range after.Results {
			a := &after.Results[j]
			if !a.same(b) {
				continue
			}
			common++
			load, ratios := "closed", "\t"
			if b.Offered > 0 {
				load = "open"
			}
			if a.Ratio > 0 && b.Ratio > 0 {
				ratios = fmt.Sprintf("%.2f\t%.2f", b.Ratio, a.Ratio)
			}
			name := b.Scenario
			if b.Nodes > 0 {
				name = fmt.Sprintf("%s, %s, asking %s", nodesText(b.Nodes), b.Scenario, b.way())
			}
			_, _ = fmt.Fprintf(w, "%s\t%d\t%s\t%.0f\t%.0f\t%+.1f %%\t%s\t%s\t%s\t\n",
				name, b.Connections, load, b.Rate, a.Rate, (a.Rate/b.Rate-1)*100, b.millis(b.P99), a.millis(a.P99), ratios)
		}
	}
	figures := commonFigures(before, after)
	if common+len(figures) == 0 {
		return errors.New("bench: the reports have no measurement in common")
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("bench: print: %w", err)
	}
	for _, both := range figures {
		if _, err := fmt.Fprintf(out, "%s\n  before: %.2f %s\n", &both[1], both[0].Value, both[0].Unit); err != nil {
			return fmt.Errorf("bench: print: %w", err)
		}
	}
	return nil
}

// commonFigures pairs the figures of two reports: a scenario's first in a unit with
// its first in the other, and so on.
func commonFigures(before, after *Report) (both [][2]Figure) {
	type kind struct {
		scenario, unit string
		nth            int
	}
	numbered := func(r *Report, fn func(kind, Figure)) {
		seen := map[kind]int{}
		for _, f := range r.Figures {
			k := kind{scenario: f.Scenario, unit: f.Unit}
			k.nth = seen[k]
			seen[kind{scenario: f.Scenario, unit: f.Unit}]++
			fn(k, f)
		}
	}
	old := map[kind]Figure{}
	numbered(before, func(k kind, f Figure) { old[k] = f })
	numbered(after, func(k kind, f Figure) {
		if b, ok := old[k]; ok {
			both = append(both, [2]Figure{b, f})
		}
	})
	return both
}
