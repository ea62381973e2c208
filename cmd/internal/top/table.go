package top

import (
	"cmp"
	"math"
	"slices"
)

// style is how a text is drawn on a terminal.
type style string

// The styles, as the parameters of ANSI's SGR sequence.
const (
	plain    style = ""
	bold     style = "1"
	faint    style = "2"
	selected style = "7"  // in reverse
	alarm    style = "31" // red
)

// span is a part of a line in one style.
type span struct {
	text  string
	style style
}

// line is a line of a frame.
type line []span

// cell is a value in a table. The number is what its column is sorted by, if that is numeric.
type cell struct {
	text   string
	number float64
	style  style
}

func textCell(text string) cell { return cell{text: cut(safe(text), mostCells)} }

func numberCell(text string, number float64) cell { return cell{text: text, number: number} }

func rateCell(rate float64) cell { return numberCell(perSecond(rate), rate) }

// mostCells bounds the width of a column.
const mostCells = 40

// column is a column of a table.
type column struct {
	title   string
	numeric bool // aligned to the right, and sorted by its numbers
	// narrow is the place in which the column is left out on a narrow terminal, 1 first; 0: it
	// stays.
	narrow int
}

// order is the column by which a table is sorted.
type order struct {
	column int
	down   bool // the largest first
}

// table is a part of a frame with rows that can be sorted.
type table struct {
	columns []column
	rows    [][]cell
}

// sorted sorts the rows. Equal ones stay as they were.
func (t *table) sorted(by order) {
	if by.column < 0 || by.column >= len(t.columns) {
		return
	}
	slices.SortStableFunc(t.rows, func(a, b []cell) int {
		x, y := a[by.column], b[by.column]
		result := cmp.Compare(x.text, y.text)
		if t.columns[by.column].numeric {
			result = cmp.Compare(known(x.number), known(y.number))
		}
		if by.down {
			return -result
		}
		return result
	})
}

// known puts unknown numbers below all others.
func known(n float64) float64 {
	if math.IsNaN(n) {
		return math.Inf(-1)
	}
	return n
}

// lines draws the table with its head, on a terminal of a width; 0: of any. active says that
// keys change its order, whose column is then marked.
func (t *table) lines(by order, active bool, width int) []line {
	titles, widths := make([]string, len(t.columns)), make([]int, len(t.columns))
	for i, c := range t.columns {
		titles[i] = c.title
		if i == by.column {
			titles[i] += map[bool]string{true: "▼", false: "▲"}[by.down]
		}
		widths[i] = cells(titles[i])
		for _, row := range t.rows {
			widths[i] = max(widths[i], cells(row[i].text))
		}
	}
	columns := t.fitting(widths, by, width)
	head := line{}
	for _, i := range columns {
		drawn := bold
		if active && i == by.column {
			drawn = selected
		}
		head = append(head, span{t.place(i, titles[i], widths[i]), drawn}, span{"  ", plain})
	}
	lines := []line{head[:len(head)-1]}
	for _, row := range t.rows {
		drawn := line{}
		for _, i := range columns {
			drawn = append(drawn, span{t.place(i, row[i].text, widths[i]), row[i].style}, span{"  ", plain})
		}
		lines = append(lines, drawn[:len(drawn)-1])
	}
	return lines
}

// fitting returns the columns that are shown. On a narrow terminal some are left out, but
// never that of the order. The last column counts by its title, since its texts may be cut.
func (t *table) fitting(widths []int, by order, width int) []int {
	var columns []int
	total := -2
	for i := range t.columns {
		columns = append(columns, i)
		total += t.taken(i, widths)
	}
	for next := 1; width > 0 && total > width && next <= len(t.columns); next++ {
		columns = slices.DeleteFunc(columns, func(i int) bool {
			if t.columns[i].narrow != next || i == by.column {
				return false
			}
			total -= t.taken(i, widths)
			return true
		})
	}
	return columns
}

// taken is the number of cells of a column, with the space behind it.
func (t *table) taken(i int, widths []int) int {
	if i == len(t.columns)-1 && !t.columns[i].numeric {
		return cells(t.columns[i].title) + 2
	}
	return widths[i] + 2
}

// place aligns a text in its column; the last column needs no spaces behind its texts.
func (t *table) place(at int, text string, to int) string {
	right := t.columns[at].numeric
	if at == len(t.columns)-1 && !right {
		return text
	}
	return pad(text, to, right)
}
