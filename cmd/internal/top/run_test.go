package top

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// paper is a terminal whose size a test changes.
type paper struct {
	mu            sync.Mutex
	width, height int
	frames        []string // each of one write
	broken        error
}

func (p *paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		return 0, p.broken
	}
	p.frames = append(p.frames, string(b))
	return len(b), nil
}

func (p *paper) size() (width, height int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.width, p.height
}

func (p *paper) resize(width, height int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.width, p.height = width, height
}

func (p *paper) last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.frames[len(p.frames)-1]
}

// running is a Run under way.
type running struct {
	*paper
	api     *fakeAPI
	keys    *io.PipeWriter
	resized chan os.Signal
	ended   chan error
}

// run starts to draw. The test is in a bubble of synctest.
func run(t *testing.T, ctx context.Context) *running { //nolint:revive // the test comes first, as everywhere
	r := &running{paper: &paper{width: 120, height: 40}, api: newFakeAPI(), resized: make(chan os.Signal), ended: make(chan error, 1)}
	in, keys := io.Pipe()
	r.keys = keys
	t.Cleanup(func() { _ = keys.Close() })
	go func() {
		r.ended <- Run(ctx, newReader(r.api), 2*time.Second, Terminal{In: in, Out: r.paper, Size: r.size, Resized: r.resized})
	}()
	synctest.Wait()
	return r
}

func (r *running) press(t *testing.T, keys string) {
	t.Helper()
	for _, b := range []byte(keys) { // an arrow may come in pieces
		if _, err := r.keys.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
}

func (r *running) quit(t *testing.T) {
	t.Helper()
	r.press(t, "q")
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
	if r.frames[0] != enter || r.last() != leave {
		t.Errorf("began with %q and ended with %q", r.frames[0], r.last())
	}
}

func TestRun_DrawsInIntervals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, t.Context())
		if first := r.last(); !strings.Contains(first, "requests -/s") {
			t.Errorf("the first frame: %q", first)
		}
		time.Sleep(2*time.Second + time.Millisecond)
		synctest.Wait()
		if second := r.last(); !strings.Contains(second, "requests 1000/s") || !strings.HasPrefix(second, home) {
			t.Errorf("the second frame: %q", second)
		}
		// The node asked fails, and comes back.
		cluster := r.api.answers["/cluster"]
		r.api.set("/cluster", func(int) (string, error) { return "", errors.New("nothing listens") })
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if third := r.last(); !strings.Contains(third, "no new values: nothing listens") || !strings.Contains(third, "node-3") {
			t.Errorf("the frame of a failure: %q", third)
		}
		r.api.set("/cluster", cluster)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if fourth := r.last(); strings.Contains(fourth, "no new values") {
			t.Errorf("the frame after a failure: %q", fourth)
		}
		r.quit(t)
	})
}

func TestRun_FollowsTheSizeOfTheTerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, t.Context())
		for _, size := range [][2]int{{200, 60}, {40, 10}, {1, 1}, {0, 0}, {80, 24}} {
			r.resize(size[0], size[1])
			r.resized <- os.Interrupt // any signal will do
			synctest.Wait()
			height := size[1]
			if height == 0 {
				height = usualHeight
			}
			if rows := strings.Count(r.last(), "\r\n") + 1; rows > height {
				t.Errorf("%v: %d rows", size, rows)
			}
		}
		r.quit(t)
	})
}

func TestRun_Keys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, t.Context())
		for _, row := range []struct{ keys, marked string }{
			{"", "NODE▲"}, {"\x1b[B", "NODE▼"}, {"\x1b[C", "STATE▼"}, {"\x1bOA", "STATE▲"}, {"\x1b[D\x1b[D", "NOTE▲"},
			{"\t", "REQ/S▼"}, {"x\x1b[15~", "REQ/S▼"}, // other keys change nothing
		} {
			r.press(t, row.keys)
			if !strings.Contains(r.last(), "\x1b[7m") || !strings.Contains(r.last(), row.marked) {
				t.Errorf("after %q there is no %s: %q", row.keys, row.marked, r.last())
			}
		}
		r.press(t, "\x03")
		if err := <-r.ended; err != nil || r.last() != leave {
			t.Errorf("after Ctrl-C: %v %q", err, r.last())
		}
	})
}

func TestRun_Ends(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*running, context.CancelFunc){
		"with its context": func(_ *running, cancel context.CancelFunc) { cancel() },
		"with its input":   func(r *running, _ context.CancelFunc) { _ = r.keys.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				r := run(t, ctx)
				end(r, cancel)
				if err := <-r.ended; err != nil || r.last() != leave {
					t.Errorf("%v, and the terminal was left with %q", err, r.last())
				}
			})
		})
	}
}

// The node does not answer, and the terminal sends Ctrl-C as a key.
func TestRun_EndsBeforeTheFirstAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		silent := NewReader(func(ctx context.Context, _ string) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, time.Now)
		p := &paper{width: 80, height: 24}
		in, keys := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- Run(ctx, silent, time.Second, Terminal{In: in, Out: p, Size: p.size}) }()
		go func() { _, _ = keys.Write([]byte("x\x03")) }()
		synctest.Wait()
		select {
		case err := <-ended:
			if err != nil || len(p.frames) > 0 {
				t.Errorf("%v, after %q", err, p.frames)
			}
		default:
			t.Error("Ctrl-C does not end it")
			cancel()
			if err := <-ended; err == nil {
				t.Error("it ends without an error")
			}
		}
		_ = keys.Close()
	})
}

func TestRun_ErrorsOfTheBeginning(t *testing.T) {
	t.Parallel()
	api, refused := newFakeAPI(), errors.New("a wrong token")
	api.set("/cluster", func(int) (string, error) { return "", refused })
	p := &paper{width: 80, height: 24}
	in, keys := io.Pipe()
	t.Cleanup(func() { _ = keys.Close() })
	terminal := Terminal{In: in, Out: p, Size: p.size}
	if err := Run(t.Context(), newReader(api), time.Second, terminal); !errors.Is(err, refused) || len(p.frames) > 0 {
		t.Errorf("%v, after %q", err, p.frames)
	}
	p.broken = errors.New("hung up")
	if err := Run(t.Context(), newReader(newFakeAPI()), time.Second, terminal); !errors.Is(err, p.broken) {
		t.Errorf("%v", err)
	}
}
