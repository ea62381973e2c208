package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeDeliverer plays a node's part in webhooks: it delivers before it answers a create.
type fakeDeliverer struct {
	client http.Client
	// refuses new subscriptions, loses deliveries after so many.
	refuses    bool
	losesAfter int

	mu    sync.Mutex
	hooks map[string][]string // URLs by workspace; the index is the id
	sent  int
}

func newFakeDeliverer(t *testing.T) *fakeDeliverer {
	f := &fakeDeliverer{hooks: map[string][]string{}, client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	t.Cleanup(f.client.CloseIdleConnections)
	return f
}

func (f *fakeDeliverer) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /workspaces/{w}/webhook-subscriptions", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ URL string }
		if f.refuses || json.NewDecoder(r.Body).Decode(&in) != nil {
			http.Error(w, `{"error":"loopback"}`, http.StatusBadRequest)
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		of := r.PathValue("w")
		f.hooks[of] = append(f.hooks[of], in.URL)
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"id":"%d"}`, len(f.hooks[of])-1)
	})
	mux.HandleFunc("DELETE /workspaces/{w}/webhook-subscriptions/{id}", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		var i int
		if _, err := fmt.Sscan(r.PathValue("id"), &i); err == nil && i < len(f.hooks[r.PathValue("w")]) {
			f.hooks[r.PathValue("w")][i] = ""
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

func (f *fakeDeliverer) deliver(workspace string, data []byte) {
	f.mu.Lock()
	urls := slices.Clone(f.hooks[workspace])
	f.mu.Unlock()
	for _, url := range urls {
		f.mu.Lock()
		lost := url == "" || f.losesAfter > 0 && f.sent >= f.losesAfter
		f.sent++
		f.mu.Unlock()
		if lost {
			continue
		}
		answer, err := f.client.Post(url, "application/json", strings.NewReader(fmt.Sprintf(`{"type":"issue.created","data":%s}`, data)))
		if err == nil {
			_ = answer.Body.Close()
		}
	}
}

// left is how many webhooks there are.
func (f *fakeDeliverer) left() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, urls := range f.hooks {
		for _, url := range urls {
			if url != "" {
				n++
			}
		}
	}
	return n
}

// hookedNode is a fake node with its deliverer of webhooks.
type hookedNode struct {
	url       string
	deliverer *fakeDeliverer
}

func newHookedNode(t *testing.T) *hookedNode {
	t.Helper()
	n := &hookedNode{deliverer: newFakeDeliverer(t)}
	n.url, _ = fakeNodeWith(t, false, n.deliverer)
	return n
}

// hooked are the scenarios that need deliveries.
var hooked = []string{createHooked.name, deliver.name, commitToDelivery.name}

func hookedRun(t *testing.T, f *hookedNode) (Report, string, error) {
	t.Helper()
	cfg := quick(t, f.url)
	cfg.Scenarios, cfg.Connections, cfg.OpenShare = hooked, []int{2}, 0
	var out bytes.Buffer
	report, err := Run(t.Context(), cfg, &out)
	return report, out.String(), err
}

// A run leaves nothing behind: no webhook at the node, no goroutine here.
func TestHooks_NothingIsLeftBehind(t *testing.T) { //nolint:paralleltest // it looks at all goroutines there are
	f := newHookedNode(t)
	report, said, err := hookedRun(t, f)
	if err != nil || report.Err() != nil {
		t.Fatalf("%v, %v\n%s", err, report.Err(), said)
	}
	if n := f.deliverer.left(); n != 0 {
		t.Errorf("%d webhooks are left", n)
	}
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 2); err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"bench.(*receiver)", "bench.(*load)", "bench.(*hooks)"} {
		if strings.Contains(all.String(), of) {
			t.Errorf("a goroutine of %s is left:\n%s", of, all.String())
		}
	}
}

func TestHooks_ANodeThatRefusesIsLeftOut(t *testing.T) {
	t.Parallel()
	f := newHookedNode(t)
	f.deliverer.refuses = true
	report, said, err := hookedRun(t, f)
	if err != nil || report.Err() != nil || len(report.Results) != 0 {
		t.Fatalf("%v, %v, %+v", err, report.Err(), report.Results)
	}
	for _, name := range hooked {
		if !strings.Contains(said, name+" ") {
			t.Errorf("%s is not mentioned in:\n%s", name, said)
		}
	}
	if n := strings.Count(said, "left out"); n != len(hooked) || !strings.Contains(said, "--webhooks-allow-http") {
		t.Errorf("%d are left out:\n%s", n, said)
	}
}

// A node that was started for the run has no reason to refuse.
func TestHooks_AStartedNodeThatRefusesIsAFault(t *testing.T) {
	t.Parallel()
	f := newHookedNode(t)
	f.deliverer.refuses = true
	cfg := quick(t, "")
	cfg.Scenarios, cfg.Connections = []string{deliver.name}, []int{2}
	cfg.StartNode = func(context.Context, string) (*Process, error) { return &Process{URL: f.url}, nil }
	if _, err := Run(t.Context(), cfg, io.Discard); err == nil || !strings.Contains(err.Error(), "does not deliver") {
		t.Errorf("the run's fault is %v", err)
	}
}

func TestReceiver_TakesWholeDeliveries(t *testing.T) {
	t.Parallel()
	var came []string
	r, err := startReceiver(t.Context(), func(path, body []byte) { came = append(came, string(path)+" "+string(body)) })
	if err != nil {
		t.Fatal(err)
	}
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	answers := bufio.NewReader(c)
	send := func(parts ...string) {
		t.Helper()
		for _, part := range parts {
			if _, err := io.WriteString(c, part); err != nil {
				t.Fatal(err)
			}
		}
	}
	taken := func() {
		t.Helper()
		answer, err := http.ReadResponse(answers, nil)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", answer, err)
		}
		_ = answer.Body.Close()
	}
	send("POST /0 HTTP/1.1\r\nContent-Le", "ngth: 5\r\n\r\nhe", "llo")
	taken()
	send("POST /1 HTTP/1.1\r\ncontent-length: 0\r\n\r\nPOST /2 HTTP/1.1\r\nContent-Length: 2\r\n\r\nab")
	taken()
	taken()
	if n := r.took.Load(); n != 3 {
		t.Errorf("took %d, want 3", n)
	}
	r.stop()
	if want := []string{"/0 hello", "/1 ", "/2 ab"}; !slices.Equal(came, want) {
		t.Errorf("%q came, want %q", came, want)
	}
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := answers.ReadByte(); err == nil {
		t.Error("it speaks after its end")
	}
}

func TestDelivery_Refuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
		"\r\n\r\n",
	} {
		if _, _, _, err := delivery([]byte(text)); err == nil {
			t.Errorf("took %q", text)
		}
	}
	if whole, _, _, err := delivery([]byte("POST / HTTP/1.1\r\nContent-Len")); whole != 0 || err != nil {
		t.Errorf("half a head: %d, %v", whole, err)
	}
}
