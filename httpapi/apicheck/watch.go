package apicheck

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

const (
	// allJudged is how many answers of an operation with one status are all judged;
	// of those beyond, every seldomJudged-th.
	allJudged    = 500
	seldomJudged = 20
	// maxFaults bounds the faults kept.
	maxFaults = 40
)

// Watch checks the answers of many requests and keeps their faults.
type Watch struct {
	checker *Checker
	mu      sync.Mutex
	counts  map[string]int    // by method, described path and status
	faults  map[string]string // by the same: the first of its kind
}

// NewWatch judges answers by a description. Operations must declare their failures.
func NewWatch(description []byte) (*Watch, error) {
	c, err := New(description)
	if err != nil {
		return nil, err
	}
	c.strict = true
	return &Watch{checker: c, counts: map[string]int{}, faults: map[string]string{}}, nil
}

// Faults lists the answers that contradict the description, sorted.
func (w *Watch) Faults() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Values(w.faults))
}

// Over judges what a round tripper brings. Answers without an X-Request-Id are not
// the service's, unless they come from one of its paths.
func (w *Watch) Over(base http.RoundTripper) http.RoundTripper { return &watched{w, base} }

type watched struct {
	*Watch
	base http.RoundTripper
}

// CloseIdleConnections passes on that of http.Client.
func (w *watched) CloseIdleConnections() {
	if c, ok := w.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper. The body is judged when it has been read to
// its end, the head at once.
func (w *watched) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := w.base.RoundTrip(req)
	if err != nil {
		return res, err
	}
	if !w.wanted(req, res) {
		return res, nil
	}
	w.note(req, res, nil)
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		res.Body = &recorded{ReadCloser: res.Body, end: func(body []byte) { w.note(req, res, body) }}
	}
	return res, nil
}

// wanted reports whether an answer is to be judged.
func (w *Watch) wanted(req *http.Request, res *http.Response) bool {
	operation, place := w.checker.find(req.Method, req.URL.EscapedPath())
	if operation == nil && res.Header.Get("X-Request-Id") == "" {
		return false
	}
	kind := fmt.Sprint(place, res.StatusCode)
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.counts[kind]
	w.counts[kind]++
	return n < allJudged || n%seldomJudged == 0
}

func (w *Watch) note(req *http.Request, res *http.Response, body []byte) {
	err := w.checker.Check(req.Method, req.URL.EscapedPath(), res.StatusCode, res.Header, body)
	if err == nil {
		return
	}
	_, place := w.checker.find(req.Method, req.URL.EscapedPath())
	kind := fmt.Sprint(place, res.StatusCode)
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.faults[kind]; !known && len(w.faults) < maxFaults {
		w.faults[kind] = fmt.Sprintf("%s %s: %d: %v\n%.600s", req.Method, req.URL.Path, res.StatusCode, err, body)
	}
}

// recorded keeps the bytes that are read of a body.
type recorded struct {
	io.ReadCloser
	read bytes.Buffer
	once sync.Once
	end  func([]byte)
}

func (r *recorded) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.read.Write(p[:n])
	if err == io.EOF {
		r.once.Do(func() { r.end(append([]byte{}, r.read.Bytes()...)) })
	}
	return n, err
}
