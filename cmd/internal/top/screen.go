package top

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The tables that keys can sort.
const (
	nodesTable = iota
	workspacesTable
	tables
)

// screen makes frames of readings. It remembers the last two readings and the order of the
// tables. It is for one goroutine.
type screen struct {
	every       time.Duration
	before, now *Reading
	failure     string // of the last try to read; empty if it succeeded
	active      int
	orders      [tables]order
}

// newScreen makes a screen that is drawn anew after each interval.
func newScreen(every time.Duration) *screen {
	return &screen{every: every, orders: [tables]order{
		nodesTable:      {column: 0},
		workspacesTable: {column: 3, down: true},
	}}
}

// show takes a reading. Rates are those since the reading before.
func (s *screen) show(r *Reading) { s.before, s.now, s.failure = s.now, r, "" }

// fail takes the error of a try to read. The last reading stays on the screen.
func (s *screen) fail(err error) { s.failure = err.Error() }

// frame returns the lines of a terminal of a width and height. With 0 for both it returns
// everything, without the line about keys.
func (s *screen) frame(width, height int) []line {
	if s.now == nil {
		text := "Asking the cluster ..."
		if s.failure != "" {
			text = firstLine(s.failure)
		}
		return fit([]line{{{safe(text), plain}}}, nil, width, height)
	}
	head := s.head()
	sections := [][]line{s.nodes(width), s.shards(width), s.workspaces(width)}
	if height == 0 {
		return join(head, sections)
	}
	keys := line{{"q quit   tab other table   left, right column   up, down order", faint}}
	if height >= len(head)+4 {
		shrink(sections, height-len(head)-len(sections)-1)
		return fit(join(head, sections), keys, width, height)
	}
	return fit(join(head, sections), nil, width, height)
}

// join puts an empty line before each section.
func join(head []line, sections [][]line) []line {
	all := head
	for _, section := range sections {
		if len(section) > 0 {
			all = append(append(all, nil), section...)
		}
	}
	return all
}

// fit cuts the lines to the size of the terminal. A last line stays.
func fit(lines []line, last line, width, height int) []line {
	if height > 0 {
		room := height
		if last != nil {
			room--
		}
		lines = lines[:min(len(lines), max(0, room))]
		if last != nil {
			for len(lines) < room {
				lines = append(lines, nil)
			}
			lines = append(lines, last)
		}
	}
	if width > 0 {
		for i, l := range lines {
			lines[i] = cutLine(l, width)
		}
	}
	return lines
}

// cutLine cuts a line to a number of cells.
func cutLine(l line, width int) line {
	result := line{}
	for _, part := range l {
		text := cut(part.text, width)
		result = append(result, span{text, part.style})
		if width -= cells(text); width <= 0 || text != part.text {
			break
		}
	}
	return result
}

// shrink takes rows from the longest sections until they have a number of lines together. A
// section keeps three lines, and says how many rows it leaves out.
func shrink(sections [][]line, room int) {
	sizes := make([]int, len(sections))
	total := 0
	for i, section := range sections {
		sizes[i] = len(section)
		total += sizes[i]
	}
	for total > room {
		longest := 0
		for i := range sizes {
			if sizes[i] > sizes[longest] {
				longest = i
			}
		}
		if sizes[longest] <= 3 {
			break
		}
		sizes[longest]--
		total--
	}
	for i, size := range sizes {
		if left := len(sections[i]) - size; left > 0 {
			more := line{{fmt.Sprintf("... %d more", left+1), faint}}
			sections[i] = append(slices.Clone(sections[i][:size-1]), more)
		}
	}
}

// head is the part above the tables.
func (s *screen) head() []line {
	t, sum := &s.now.Topology, totalsOf(s.before, s.now)
	first := fmt.Sprintf("cluster %s: %s, %s, format %d", safe(t.ClusterID), count(len(t.Nodes), "node"), count(len(t.Shards), "shard"), t.Format)
	lines := []line{
		{{first, bold}, {"   " + s.now.At.UTC().Format(time.TimeOnly) + " UTC, every " + s.every.String(), faint}},
		{{fmt.Sprintf("requests %s/s   reads %s/s   writes %s/s   forwarded %s/s   ", perSecond(sum.answered), perSecond(sum.reads), perSecond(sum.writes), perSecond(sum.forwarded)), plain},
			alarming("unavailable "+perSecond(sum.unavailable)+"/s", sum.unavailable > 0), {"   ", plain}, alarming("failed "+perSecond(sum.failed)+"/s", sum.failed > 0)},
	}
	created := fmt.Sprintf("%d created", sum.created)
	if sum.oldest >= 0 {
		created += " (oldest " + ageText(sum.oldest) + ")"
	}
	lines = append(lines, line{{fmt.Sprintf("sessions %s, %d running, %d waiting   webhook deliveries %d pending", created, sum.running, sum.waiting, sum.deliveries), plain}})
	if b := t.Backup; b != nil && b.Error != nil {
		lines = append(lines, line{{safe("backup failed: " + firstLine(*b.Error)), alarm}})
	}
	if s.failure != "" {
		lines = append(lines, line{{safe("no new values: " + firstLine(s.failure)), alarm}})
	}
	return lines
}

func alarming(text string, on bool) span {
	if on {
		return span{text, alarm}
	}
	return span{text, plain}
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}
