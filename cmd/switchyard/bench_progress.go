package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"

	"switchyard/actors/tracker"
	"switchyard/bench"
)

// plainEvery is the time between two lines of progress if the output is not a terminal.
const plainEvery = 5 * time.Second

// progressPrinter tells a person how far a run is: on a terminal in one line that
// changes, else in a line every few seconds. The bench calls it from one goroutine at
// a time.
type progressPrinter struct {
	out      io.Writer
	terminal bool
	last     time.Duration // of the load under way, at the last line
	shown    bool          // a line stands on the terminal
}

// showProgress is the Progress of a run of this command, for stderr.
func showProgress(stderr io.Writer) func(bench.Progress) {
	p := &progressPrinter{out: stderr, terminal: isatty.IsTerminal(os.Stderr.Fd())}
	return p.show
}

func (p *progressPrinter) show(at bench.Progress) {
	switch {
	case at.Done:
		if p.shown {
			_, _ = fmt.Fprint(p.out, "\r\x1b[K") // results follow
		}
		p.last, p.shown = 0, false
	case p.terminal:
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s", progressLine(&at))
		p.shown = true
	case at.Elapsed >= p.last+plainEvery:
		_, _ = fmt.Fprintln(p.out, progressLine(&at))
		p.last = at.Elapsed
	}
}

// progressWidth is how wide the bar is, in characters.
const progressWidth = 20

func progressLine(at *bench.Progress) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%d/%d] %s  ", at.Step, at.Steps, at.Name)
	switch {
	case at.Uncounted:
		fmt.Fprintf(&b, "%.0f s", at.Elapsed.Seconds())
		return b.String()
	case at.Lasts > 0:
		done := min(progressWidth, int(progressWidth*at.Elapsed/at.Lasts))
		fmt.Fprintf(&b, "%s%s %.0f s of %.0f  ", strings.Repeat("#", done), strings.Repeat("-", progressWidth-done), at.Elapsed.Seconds(), at.Lasts.Seconds())
	default:
		fmt.Fprintf(&b, "%.0f s, %d done  ", at.Elapsed.Seconds(), at.Answers)
	}
	fmt.Fprintf(&b, "%.0f/s", at.Rate)
	if at.Errors > 0 {
		fmt.Fprintf(&b, "  %s", tracker.Counted(at.Errors, "error", "errors"))
	}
	return b.String()
}
