package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Terminal is the terminal that frames are drawn on.
type Terminal struct {
	In  io.Reader // gives keys as they are pressed
	Out io.Writer
	// Size returns the number of columns and rows.
	Size func() (width, height int)
	// Resized gets a value when the size has changed; nil: it is looked at with each frame.
	Resized <-chan os.Signal
}

// The control sequences that are used, of ECMA-48 and xterm.
const (
	enter     = "\x1b[?1049h\x1b[?25l" // to the alternate screen, without a cursor
	leave     = "\x1b[?25h\x1b[?1049l"
	home      = "\x1b[H"
	eraseLine = "\x1b[K"
	eraseRest = "\x1b[J"
)

// The size of a terminal that does not tell its own.
const (
	usualWidth  = 80
	usualHeight = 24
)

// Once prints one frame, with the rates of an interval, without colors and at its full size.
func Once(ctx context.Context, r *Reader, every time.Duration, out io.Writer) error {
	s := newScreen(every)
	for reading := range 2 {
		if reading > 0 {
			timer := time.NewTimer(every)
			select {
			case <-ctx.Done():
				timer.Stop()
				return ctx.Err()
			case <-timer.C:
			}
		}
		now, err := r.Read(ctx)
		if err != nil {
			return err
		}
		s.show(now)
	}
	if _, err := io.WriteString(out, textOf(s.frame(0, 0))); err != nil {
		return fmt.Errorf("print the cluster: %w", err)
	}
	return nil
}

// textOf is a frame without its styles.
func textOf(lines []line) string {
	var b strings.Builder
	for _, l := range lines {
		var text strings.Builder
		for _, part := range l {
			text.WriteString(part.text)
		}
		b.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
	return b.String()
}

// Run draws the cluster until the operator ends it with a key, or ctx ends. It returns the
// error of the first reading, since a wrong URL or token does not get better; later ones are
// shown, and the next reading may succeed.
func Run(ctx context.Context, r *Reader, every time.Duration, t Terminal) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	keys := make(chan key)
	go readKeys(ctx, t.In, keys)
	first, quit := begin(ctx, r, keys)
	if quit || first.err != nil {
		return first.err
	}
	s := newScreen(every)
	s.show(first.reading)
	readings := make(chan outcome)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		repeat(ctx, r, every, readings)
	}()
	defer func() { cancel(); <-ended }()
	if _, err := io.WriteString(t.Out, enter); err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	defer func() {
		if _, last := io.WriteString(t.Out, leave); err == nil && last != nil {
			err = fmt.Errorf("draw: %w", last)
		}
	}()
	for {
		if err := draw(t, s); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case got := <-readings:
			if got.err != nil {
				s.fail(got.err)
			} else {
				s.show(got.reading)
			}
		case k := <-keys:
			if !s.press(k) {
				return nil
			}
		case <-t.Resized:
		}
	}
}

// begin reads the cluster for the first time, and reports whether the operator has ended that. A node may take
// long to answer, and a terminal in raw mode sends Ctrl-C as a key.
func begin(ctx context.Context, r *Reader, keys <-chan key) (first outcome, quit bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan outcome, 1)
	go func() { // ends with the reading, at the latest soon after ctx
		reading, err := r.Read(ctx)
		ended <- outcome{reading, err}
	}()
	for {
		select {
		case first = <-ended:
			return first, false
		case k := <-keys:
			if k == keyQuit {
				cancel()
				<-ended
				return outcome{}, true
			}
		}
	}
}

// outcome is the end of a try to read the cluster.
type outcome struct {
	reading *Reading
	err     error
}

// repeat reads the cluster in intervals until ctx ends. A reading that takes longer than the
// interval delays the next one.
func repeat(ctx context.Context, r *Reader, every time.Duration, to chan<- outcome) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		reading, err := r.Read(ctx)
		select {
		case <-ctx.Done():
			return
		case to <- outcome{reading, err}:
		}
	}
}

// readKeys sends the keys that it reads, until ctx or the input ends. The end of the input is
// that of the terminal, so it counts as the key that quits.
func readKeys(ctx context.Context, in io.Reader, to chan<- key) {
	var keys keyReader
	send := func(k key) bool {
		select {
		case to <- k:
			return true
		case <-ctx.Done():
			return false
		}
	}
	buf := make([]byte, 64)
	for {
		n, err := in.Read(buf)
		for _, b := range buf[:n] {
			if k := keys.next(b); k != keyNone && !send(k) {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				send(keyQuit)
			}
			return
		}
	}
}

// draw writes a frame over the one before, in one write so that it does not flicker.
func draw(t Terminal, s *screen) error {
	width, height := t.Size()
	if width <= 0 || height <= 0 {
		width, height = usualWidth, usualHeight
	}
	var b strings.Builder
	b.WriteString(home)
	lines := s.frame(width, height)
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		// Before the text: behind a full line this would erase the last cell.
		if i < len(lines)-1 {
			b.WriteString(eraseLine)
		} else {
			b.WriteString(eraseRest)
		}
		for _, part := range l {
			if part.style == plain {
				b.WriteString(part.text)
				continue
			}
			b.WriteString("\x1b[" + string(part.style) + "m" + part.text + "\x1b[0m")
		}
	}
	if _, err := io.WriteString(t.Out, b.String()); err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	return nil
}
