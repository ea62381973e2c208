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

// The operations of the tests. They never run: the fake engine answers for them.

type thingIn struct {
	ID          string `path:"id"`
	IfNoneMatch string `header:"If-None-Match"`
}

type color string

func (color) EnumValues() []string { return []string{"red", "green"} }

type partIn struct {
	Repo   string `json:"repo" rules:"required,max=10"`
	Access string `json:"access" enum:"read,write" default:"read"`
}

type thingFields struct {
	Ref    tracker.Opt[string]   `json:"ref" rules:"nullable,min=1,max=255"`
	Color  tracker.Opt[color]    `json:"color"`
	Labels tracker.Opt[[]string] `json:"labels" rules:"nullable,max=3" items:"min=1,max=5"`
}

type makeThingIn struct {
	Dedupe string `query:"dedupe" enum:"warn,block" default:"warn"`
	Title  string `json:"title" rules:"required,min=1,max=20"`
	thingFields
	Count    tracker.Opt[int64]   `json:"count" rules:"nullable,min=0"`
	Order    tracker.Opt[float64] `json:"order" rules:"nullable"`
	Public   bool                 `json:"public" default:"true"`
	URL      tracker.Opt[string]  `json:"url" rules:"nullable,uri,max=2048"`
	At       tracker.Opt[string]  `json:"at" rules:"nullable,datetime"`
	Parts    []partIn             `json:"parts" rules:"max=2"`
	Main     tracker.Opt[partIn]  `json:"main"`
	Any      json.RawMessage      `json:"any"`
	Schema   json.RawMessage      `json:"schema" rules:"object"`
	Words    json.RawMessage      `json:"words" rules:"strings"`
	Settings map[string]string    `json:"settings" rules:"max=2" items:"max=5"`
}

func (in *makeThingIn) Validate(faults *tracker.Faults) {
	if in.Title == "no title" {
		faults.Add("title", "Must not be what it says.")
	}
}

type listThingsIn struct {
	Limit  int                 `query:"limit" rules:"min=1,max=100" default:"50"`
	Color  tracker.Opt[color]  `query:"color"`
	Big    tracker.Opt[bool]   `query:"big"`
	Search tracker.Opt[string] `query:"search"`
}

type changeThingIn struct {
	ID      string `path:"id"`
	IfMatch string `header:"If-Match"`
	thingFields
}

type strictIn struct {
	ID    string   `path:"id"`
	Items []partIn `json:"items" rules:"required,min=1,max=3"`
}

type signedIn struct {
	Signature string `header:"X-Signature"`
	Body      []byte `raw:"json,form"`
}

// typedIn is signedIn for an operation that is told of bodies of other types.
type typedIn struct {
	signedIn
	Refused *tracker.Error `raw:"refused"`
}

// formedSignature takes every signature but one.
func formedSignature(header func(string) string) bool { return header("X-Signature") != "malformed" }

type thing struct {
	ID    string             `json:"id"`
	Color color              `json:"color"`
	Note  *string            `json:"note"`
	At    *tracker.Timestamp `json:"at"`
	Next  []thing            `json:"next,omitempty"`
}

type watchIn struct {
	Wait int `query:"wait" rules:"min=0,max=30"`
}

func (in *watchIn) WaitFor() time.Duration { return time.Duration(in.Wait) * time.Second }

type takeIn struct {
	Wait int `json:"wait" rules:"min=0,max=30"`
}

func (in *takeIn) WaitFor() time.Duration { return time.Duration(in.Wait) * time.Second }

func noQuery[In any](*tracker.View, *In) (tracker.Reply, error) { panic("not run") }
func noCommand[In any](*tracker.Tx, *In) (tracker.Reply, error) { panic("not run") }

var (
	opGet    = tracker.NewQuery[thingIn, thing]("GetThing", "Get a thing", tracker.Needs{Level: tracker.Read}, noQuery[thingIn], tracker.Answers(tracker.Done, tracker.NotModified))
	opList   = tracker.NewQuery[listThingsIn, []thing]("ListThings", "List things", tracker.Needs{Level: tracker.Read}, noQuery[listThingsIn], tracker.FromSnapshot)
	opMake   = tracker.NewCommand[makeThingIn, thing]("MakeThing", "Make a thing", tracker.Needs{Level: tracker.Write}, noCommand[makeThingIn], tracker.Answers(tracker.Created))
	opChange = tracker.NewCommand[changeThingIn, thing]("ChangeThing", "Change a thing", tracker.Needs{Level: tracker.Write}, noCommand[changeThingIn])
	opDelete = tracker.NewCommand[thingIn, tracker.None]("DeleteThing", "Delete a thing", tracker.Needs{Level: tracker.Write}, noCommand[thingIn])
	opStrict = tracker.NewCommand[strictIn, thing]("StrictThing", "Be strict", tracker.Needs{Level: tracker.Write}, noCommand[strictIn], tracker.StrictBody)
	opOpen   = tracker.NewCommand[makeThingIn, thing]("OpenThing", "Make a thing as a stranger", tracker.Needs{}, noCommand[makeThingIn], tracker.WithSecret, tracker.Answers(tracker.Created))
	opFound  = tracker.NewCommand[makeThingIn, thing]("FoundThing", "Make a place for things", tracker.Needs{}, noCommand[makeThingIn], tracker.ForOnboarding, tracker.Answers(tracker.Created))
	opSigned = tracker.NewCommand[signedIn, thing]("SignedThing", "Take a signed thing", tracker.Needs{}, noCommand[signedIn], tracker.WithoutKey, tracker.SignedBy(formedSignature), tracker.Answers(tracker.Accepted))
	opTyped  = tracker.NewCommand[typedIn, thing]("TypedThing", "Take a signed thing of some type", tracker.Needs{}, noCommand[typedIn], tracker.WithoutKey, tracker.Answers(tracker.Accepted))
	opBulky  = tracker.NewCommand[makeThingIn, thing]("BulkyThing", "Make a thing of many writes", tracker.Needs{Level: tracker.Write}, noCommand[makeThingIn], tracker.BodyUpTo(2<<20), tracker.WritesUpTo(20<<20), tracker.Answers(tracker.Created))
	opLarge  = tracker.NewCommand[makeThingIn, thing]("LargeThing", "Make a large thing", tracker.Needs{Level: tracker.Write}, noCommand[makeThingIn], func(o *tracker.Op) { o.MaxBody = 2 << 20 }, tracker.Answers(tracker.Created))
	opWatch  = tracker.NewQuery[watchIn, thing]("WatchThings", "Watch things", tracker.Needs{Level: tracker.Read}, noQuery[watchIn], tracker.FromSnapshot, tracker.MayWait, tracker.SinceFirstLook)
	opTake   = tracker.NewCommand[takeIn, thing]("TakeThing", "Take a thing", tracker.Needs{Level: tracker.Write}, noCommand[takeIn], tracker.MayWait)
	opStream = tracker.NewQuery[listThingsIn, []thing]("StreamThings", "Stream things", tracker.Needs{Level: tracker.Read}, noQuery[listThingsIn], tracker.MayStream)
	opLines  = tracker.NewQuery[tracker.ExportIn, tracker.None]("SendLines", "Send lines", tracker.Needs{Level: tracker.Read}, noQuery[tracker.ExportIn], tracker.AnswersFile(tracker.ExportMedia), tracker.AnswersLines)
	opSlug   = tracker.NewQuery[struct {
		Slug string `path:"slug"`
	}, thing]("ThingBySlug", "Get a thing by its slug", tracker.Needs{Level: tracker.Identified}, nil)
)

func fakeRoutes() []Route {
	return []Route{
		{"GET", "/w/{organizationId}/things/{id}", opGet},
		{"GET", "/w/{organizationId}/things", opList},
		{"POST", "/w/{organizationId}/things", opMake},
		{"PATCH", "/w/{organizationId}/things/{id}", opChange},
		{"DELETE", "/w/{organizationId}/things/{id}", opDelete},
		{"POST", "/w/{organizationId}/things/{id}/strict", opStrict},
		{"POST", "/open", opOpen},
		{"POST", "/found", opFound},
		{"POST", "/signed", opSigned},
		{"POST", "/typed", opTyped},
		{"POST", "/w/{organizationId}/large", opLarge},
		{"POST", "/w/{organizationId}/bulky", opBulky},
		{"POST", "/w/{organizationId}/watch", opWatch},
		{"POST", "/w/{organizationId}/take", opTake},
		{"GET", "/w/{organizationId}/stream", opStream},
		{"GET", "/w/{organizationId}/lines", opLines},
		{"GET", "/w/slug/{slug}", opSlug},
		{"POST", "/w/{organizationId}/sessions/{id}/mcp", opSessionTools},
		{"POST", "/console/session", opOpenConsole},
		{"GET", "/console/session", opConsole},
		{"DELETE", "/console/session", opEndConsole},
	}
}

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
	// waiting has long-poll operations wait.
	waiting func(*tracker.Request) tracker.Waiting
}

func (e *fakeEngine) Admit(req *tracker.Request, op *tracker.Op) error {
	if sum := sha256.Sum256([]byte(req.Credential)); req.CredentialSum != nil && *req.CredentialSum != sum {
		return fmt.Errorf("the sum of the credential %q is another's", req.Credential)
	}
	e.mu.Lock()
	refusal := e.refusal
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

func (e *fakeEngine) Export(*tracker.Request, *tracker.Op, any) (tracker.Lines, error) {
	if e.lines == nil {
		return nil, tracker.NotApplied("There is nothing to send.")
	}
	return e.lines, nil
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

func setup(t testing.TB, adjust ...func(*Config)) *bundle {
	t.Helper()
	engine, log := &fakeEngine{}, &logs{}
	cfg := Config{Engine: engine, Logger: slog.New(slog.NewTextHandler(log, nil))}
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
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
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
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
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
