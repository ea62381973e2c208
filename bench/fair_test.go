package bench

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeFloods answers the requests of floods that no other scenario sends.
func fakeFloods(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	mux.HandleFunc("POST /workspaces/{w}/capture", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Screenshot struct{ ContentBase64 string }
		}
		err := json.NewDecoder(r.Body).Decode(&in)
		image, fault := base64.StdEncoding.DecodeString(in.Screenshot.ContentBase64)
		if err != nil || fault != nil || len(image) != screenshotBytes {
			t.Errorf("captured %d bytes, %v, %v", len(image), err, fault)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("{}"))
	})
}

// fakeLog lets polls wait for an entry of any log.
type fakeLog struct {
	mu    sync.Mutex
	entry chan struct{} // closed by the next one
}

func newFakeLog() *fakeLog { return &fakeLog{entry: make(chan struct{})} }

func (l *fakeLog) add() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.entry)
	l.entry = make(chan struct{})
}

// await waits for an entry, for so many seconds at most.
func (l *fakeLog) await(ctx context.Context, wait string) error {
	seconds, err := strconv.Atoi(wait)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	l.mu.Lock()
	entry := l.entry
	l.mu.Unlock()
	select {
	case <-entry:
	case <-ctx.Done():
	}
	return nil
}

// A figure with a target shows each kind of flood.
func TestFair_ShowsEveryFlood(t *testing.T) {
	t.Parallel()
	base, _ := fakeNode(t, false)
	cfg := quick(t, base)
	cfg.Scenarios, cfg.Connections = []string{fairName}, []int{2}
	cfg.StartEmpty = fakeEmpty(t)
	report, err := Run(t.Context(), cfg, io.Discard)
	if err != nil || report.Err() != nil {
		t.Fatalf("%v, %v", err, report.Err())
	}
	for _, kind := range []string{"gets", "creates", "lists", "searches", "webhooks to a dead receiver", "streams", "polls", "timer", "screenshot"} {
		if !slices.ContainsFunc(report.Figures, func(f Figure) bool {
			return strings.Contains(f.About, kind) && f.Target == 2 && f.Value > 0
		}) {
			t.Errorf("no figure shows a flood of %s: %s", kind, fmt.Sprint(report.Figures))
		}
	}
}
