package bench

import (
	"fmt"
	"math"
	"strings"
)

// chart is one card of the page: a legend and up to three plots.
type chart struct {
	Name, About string
	Series      []series
	Rate, P99   *plot // over time; nil where there is none
	Latency     *plot // by percentile
}

// series is how one measurement is drawn and called. Color is from 0 to plotColors-1.
type series struct {
	Color  int
	Dashed bool
	Label  string
}

// plotColors is how many colors the page defines.
const plotColors = 4

// Sizes of a plot in SVG's units. The margins hold the labels of the axes.
const (
	plotWidth, plotHeight                    = 460, 220
	plotLeft, plotRight, plotTop, plotBottom = 58, 28, 16, 34
)

// plot is a line chart.
type plot struct {
	XName, YName   string
	XTicks, YTicks []tick
	Lines          []plotLine
}

type tick struct {
	At    float64 // in SVG's units
	Label string
}

type plotLine struct {
	series
	Path   string
	Dots   []point // in SVG's units
	points []point // in those of the axes
	marked bool
}

type point struct {
	X, Y float64
	Says string // shown at the point
}

func newPlot(x, y string) *plot { return &plot{XName: x, YName: y} }

// Width, Height and the edges are for the template.
func (p *plot) Width() int  { return plotWidth }
func (p *plot) Height() int { return plotHeight }
func (p *plot) Left() int   { return plotLeft }
func (p *plot) Right() int  { return plotWidth - plotRight }
func (p *plot) Top() int    { return plotTop }
func (p *plot) Bottom() int { return plotHeight - plotBottom }

// Middle is the position of the x axis's name.
func (p *plot) Middle() int { return (p.Left() + p.Right()) / 2 }

func (p *plot) add(s series, points []point, marked bool) {
	p.Lines = append(p.Lines, plotLine{series: s, points: points, marked: marked})
}

// addOverTime adds values of equal parts of a measured time, each step seconds long.
func (p *plot) addOverTime(s series, values []float64, step float64) {
	points := make([]point, len(values))
	for i, value := range values {
		points[i] = point{X: (float64(i) + 0.5) * step, Y: value}
	}
	p.add(s, points, false)
}

// addLatencies adds the latencies of a result at the plotted percentiles. A percentile
// of fewer requests than it needs says nothing and is left out.
func (p *plot) addLatencies(s series, one *Result) {
	var points []point
	for i, ms := range one.Distribution {
		if i < len(plottedPercentiles) && float64(one.Requests)*(1-plottedPercentiles[i]/100) >= 1 {
			points = append(points, point{X: nines(plottedPercentiles[i]), Y: ms, Says: fmt.Sprintf("p%g: %.2f ms", plottedPercentiles[i], ms)})
		}
	}
	p.add(s, points, true)
}

// nines makes every further nine of a percentile one unit of the axis.
func nines(percentile float64) float64 { return -math.Log10(1 - percentile/100) }

// layLinear lays both axes out from 0.
func (p *plot) layLinear() {
	xMost, yMost := p.most()
	xStep, yStep := niceStep(xMost, 6), niceStep(yMost, 4)
	yMost = math.Ceil(yMost/yStep) * yStep
	p.draw(func(x float64) float64 { return x / xMost }, func(y float64) float64 { return y / yMost })
	for x := 0.0; x <= xMost*1.001; x += xStep {
		p.XTicks = append(p.XTicks, tick{At: p.x(x / xMost), Label: fmt.Sprintf("%g", round(x))})
	}
	for y := 0.0; y <= yMost*1.001; y += yStep {
		p.YTicks = append(p.YTicks, tick{At: p.y(y / yMost), Label: thousands(y)})
	}
}

// layPercentiles lays out nines by logarithms of milliseconds.
func (p *plot) layPercentiles() {
	low, high := math.Inf(1), 0.0
	for _, l := range p.Lines {
		for _, at := range l.points {
			low, high = min(low, at.Y), max(high, at.Y)
		}
	}
	if high == 0 {
		low, high = 0.1, 1
	}
	from, to := math.Floor(math.Log10(max(low, 0.001))), math.Ceil(math.Log10(max(high, 0.001)))
	to = max(to, from+1)
	xFrom, xTo := nines(plottedPercentiles[0]), nines(plottedPercentiles[len(plottedPercentiles)-1])
	x := func(v float64) float64 { return (v - xFrom) / (xTo - xFrom) }
	y := func(v float64) float64 { return (math.Log10(max(v, 0.001)) - from) / (to - from) }
	p.draw(x, y)
	for _, percentile := range []float64{50, 90, 99, 99.9, 99.99} {
		p.XTicks = append(p.XTicks, tick{At: p.x(x(nines(percentile))), Label: fmt.Sprintf("p%g", percentile)})
	}
	for e := from; e <= to; e++ {
		p.YTicks = append(p.YTicks, tick{At: p.y(y(math.Pow(10, e))), Label: fmt.Sprintf("%g", round(math.Pow(10, e)))})
	}
}

func (p *plot) most() (x, y float64) {
	for _, l := range p.Lines {
		for _, at := range l.points {
			x, y = max(x, at.X), max(y, at.Y)
		}
	}
	return max(x, 1e-3), max(y, 1e-3)
}

// x and y place what is from 0 to 1.
func (p *plot) x(part float64) float64 { return float64(p.Left()) + part*float64(p.Right()-p.Left()) }
func (p *plot) y(part float64) float64 { return float64(p.Bottom()) - part*float64(p.Bottom()-p.Top()) }

// draw makes the paths of the lines.
func (p *plot) draw(x, y func(float64) float64) {
	for i := range p.Lines {
		l := &p.Lines[i]
		var path strings.Builder
		for j, at := range l.points {
			dot := point{X: p.x(x(at.X)), Y: p.y(y(at.Y)), Says: at.Says}
			command := 'L'
			if j == 0 {
				command = 'M'
			}
			fmt.Fprintf(&path, "%c%.1f %.1f", command, dot.X, dot.Y)
			if l.marked {
				l.Dots = append(l.Dots, dot)
			}
		}
		l.Path = path.String()
	}
}

// niceStep divides an axis into about so many parts of a round size.
func niceStep(most float64, parts int) float64 {
	rough := most / float64(parts)
	unit := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, nice := range []float64{1, 2, 5} {
		if rough <= nice*unit {
			return nice * unit
		}
	}
	return 10 * unit
}

// round takes off what binary fractions add.
func round(v float64) float64 { return math.Round(v*1e6) / 1e6 }
