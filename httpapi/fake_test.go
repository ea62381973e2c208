package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/httpapi/apicheck"
)

const (
	workspaceID = "01931f6e-7a3c-7def-8123-456789abcdef"
	token       = "swy_good"
	rootToken   = "swy_operator"
)

// fakeEngine admits one token and the operator's, and answers what answer says.
type fakeEngine struct {
	stream tracker.Stream // what is listened to; nil: nothing
	lines  tracker.Lines  // what is exported; nil: nothing

	mu     sync.Mutex
	last   *tracker.Request
	in     any
	calls  int
	answer func(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error)
	// refusal is the error of Admit; nil: the credential decides.
	refusal error
	// turns counts the turns that were taken, and turnsHeld those that did not end.
	turns, turnsHeld int
	admittedIn       int   // the most turns that were held when a request was admitted
	noTurn           error // the error of TakeTurn; nil: there is a turn
	// waiting has long-poll operations wait.
	waiting func(*tracker.Request) tracker.Waiting
}

func (e *fakeEngine) Admit(req *tracker.Request, op *tracker.Op) error {
	if sum := sha256.Sum256([]byte(req.Credential)); req.CredentialSum != nil && *req.CredentialSum != sum {
		return fmt.Errorf("the sum of the credential %q is another's", req.Credential)
	}
	e.mu.Lock()
	refusal := e.refusal
	e.admittedIn = max(e.admittedIn, e.turnsHeld)
	e.mu.Unlock()
	if refusal != nil {
		return refusal
	}
	if req.Caller.Root = req.Credential == rootToken; req.Caller.Root {
		return nil
	}
	if op.Needs.Level != tracker.Public && req.Credential != token {
		return tracker.Unauthorized()
	}
	if req.Credential == token {
		req.Caller.Token = "the caller's" // by which requests are counted
	}
	return nil
}

func (e *fakeEngine) Do(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error) {
	// Queries' requests and inputs are reused after Do, so what is kept is a copy.
	kept := *req
	kept.Buf = nil
	e.mu.Lock()
	e.last, e.calls = &kept, e.calls+1
	if op.Kind == tracker.Query {
		e.in = copyOf(in)
	} else {
		e.in = in
	}
	answer := e.answer
	e.mu.Unlock()
	if answer != nil {
		return answer(req, op, in)
	}
	return tracker.Reply{Body: append(req.Buf[:0], `{"id":"x"}`...)}, nil
}

func (e *fakeEngine) Begin(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, tracker.Waiting, error) {
	e.mu.Lock()
	waiting := e.waiting
	e.mu.Unlock()
	if waiting != nil {
		return tracker.Reply{}, waiting(req), nil
	}
	reply, err := e.Do(req, op, in)
	return reply, nil, err
}

func (e *fakeEngine) Listen(*tracker.Request, *tracker.Op, any) (tracker.Stream, error) {
	if e.stream == nil {
		return nil, tracker.NotApplied("There is nothing to hear.")
	}
	return e.stream, nil
}

func (e *fakeEngine) Export(req *tracker.Request, _ *tracker.Op, _ any) (tracker.Lines, error) {
	if e.lines == nil {
		return nil, tracker.NotApplied("There is nothing to send.")
	}
	if req.HeadOnly {
		return newFakeLines(io.EOF), nil
	}
	return e.lines, nil
}

func (e *fakeEngine) TakeTurn(*tracker.Request, bool) (func(), error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.noTurn != nil {
		return nil, e.noTurn
	}
	e.turns++
	e.turnsHeld++
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.turnsHeld--
	}, nil
}

func copyOf(in any) any {
	switch in := in.(type) {
	case *listThingsIn:
		c := *in
		return &c
	case *thingIn:
		c := *in
		return &c
	}
	return nil
}

func (e *fakeEngine) set(answer func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = answer
}

// refuse makes Admit return an error.
func (e *fakeEngine) refuse(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refusal = err
}

func (e *fakeEngine) seen() (*tracker.Request, any, int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last, e.in, e.calls
}

// logs collects a server's log.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

type bundle struct {
	*Server
	engine *fakeEngine
	addr   string
	log    *logs
	served chan error

	describe    sync.Once // reads the description when the first answer is compared
	described   *apicheck.Checker
	describeErr error
}

// unhurried gives requests and clients more time than they have by default, for tests on busy machines.
func unhurried(c Config) Config {
	c.RequestTimeout, c.ReadTimeout, c.WriteTimeout = time.Minute, time.Minute, time.Minute
	return c
}

func setup(t testing.TB, adjust ...func(*Config)) *bundle {
	t.Helper()
	engine, log := &fakeEngine{}, &logs{}
	cfg := unhurried(Config{Engine: engine, Logger: slog.New(slog.NewTextHandler(log, nil))})
	for _, f := range adjust {
		f(&cfg)
	}
	s, err := newServer(cfg, fakeRoutes())
	if err != nil {
		t.Fatal(err)
	}
	b := serve(t, s)
	b.engine, b.log = engine, log
	return b
}

// serve runs a server on a loopback port until the test ends.
func serve(t testing.TB, s *Server) *bundle {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{Server: s, addr: ln.Addr().String(), served: make(chan error, 1)}
	go func() { b.served <- b.Serve(ln) }()
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := b.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	return b
}

// answer is a response as the tests look at it.
type answer struct {
	*http.Response
	body    string
	failure tracker.Error
}

// raw sends bytes on a connection of its own and reads the responses that follow
// until the server closes it, or until as many as wanted have come.
func (b *bundle) raw(t *testing.T, want int, sent ...string) []*answer {
	t.Helper()
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The race detector makes copies of megabytes take seconds, and other tests have the processors as well.
	if err := c.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	go func() {
		for _, part := range sent {
			if _, err := io.WriteString(c, part); err != nil {
				return // the server may have closed it
			}
		}
	}()
	var answers []*answer
	r := bufio.NewReader(c)
	for len(answers) < want {
		a, err := readAnswer(r, method(sent[0]))
		if err != nil {
			t.Fatalf("after %d responses: %v", len(answers), err)
		}
		answers = append(answers, a)
		b.holdAgainstDescription(t, sent, a)
	}
	return answers
}

// holdAgainstDescription compares an answer with the server's description, where the
// server made it: the answers of the fake engine follow no schema.
func (b *bundle) holdAgainstDescription(t *testing.T, sent []string, a *answer) {
	t.Helper()
	request := strings.Join(sent, "")
	line, _, _ := strings.Cut(request, "\r\n")
	parts := strings.Split(line, " ")
	if a.StatusCode < 400 || len(parts) != 3 || strings.Count(request, " HTTP/1.1\r\n") != 1 {
		return
	}
	b.describe.Do(func() { b.described, b.describeErr = apicheck.New(b.Description()) })
	if b.describeErr != nil {
		t.Fatal(b.describeErr)
	}
	path, _, _ := strings.Cut(parts[1], "?")
	if err := b.described.Check(parts[0], path, a.StatusCode, a.Header, []byte(a.body)); err != nil {
		t.Errorf("%s: %d is not as /openapi.json says: %v\n%.600s", line, a.StatusCode, err, a.body)
	}
}

func method(request string) string {
	m, _, _ := strings.Cut(request, " ")
	return m
}

func readAnswer(r *bufio.Reader, method string) (*answer, error) {
	resp, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	a := &answer{Response: resp, body: string(body)}
	if resp.StatusCode >= 400 && len(body) > 0 {
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(&a.failure); err != nil {
			return nil, errors.Join(errors.New("no D4 body: "+string(body)), err)
		}
		if a.failure.Code == "" || a.failure.Message == "" || a.failure.Hint == "" || resp.Header.Get("X-Request-Id") == "" {
			return nil, errors.New("incomplete error: " + string(body))
		}
	}
	return a, nil
}

// do sends one request as a good caller.
func (b *bundle) do(t *testing.T, method, path, body string, headers ...string) *answer {
	t.Helper()
	return b.plain(t, method, path, body, append([]string{"Authorization: Bearer " + token}, headers...)...)
}

// plain sends one request with these headers alone.
func (b *bundle) plain(t *testing.T, method, path, body string, headers ...string) *answer {
	t.Helper()
	lines := append([]string{method + " " + path + " HTTP/1.1", "Host: test"}, headers...)
	if body != "" {
		lines = append(lines, "Content-Length: "+itoa(len(body)))
	}
	return b.raw(t, 1, strings.Join(lines, "\r\n")+"\r\n\r\n"+body)[0]
}

func itoa(n int) string { return number(float64(n)) }

const things = "/w/" + workspaceID + "/things"
