package httpapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

const sessionTools = "/w/" + workspaceID + "/sessions/s1/mcp"

func callOf(tool, arguments string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
}

// said is an answer to a message.
type said struct {
	*http.Response
	body   string
	Result struct {
		IsError           bool
		Content           []struct{ Text string }
		StructuredContent json.RawMessage
	}
	Error *ToolError
}

// say sends a message to the tools.
func (b *bundle) say(t testing.TB, message string, headers ...string) *said {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+b.addr+sessionTools, strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	s := &said{Response: resp, body: string(body)}
	if len(body) > 0 {
		if err := json.Unmarshal(body, s); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
	}
	return s
}

// scoped has the engine answer OpenTools, and anything else as answer says.
func scoped(answer func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error)) func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
	return func(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error) {
		if op == tracker.OpenTools {
			return tracker.Reply{Body: []byte(`{"issueId":"i1","ended":false}`)}, nil
		}
		return answer(req, op, in)
	}
}

func TestTools_RunTheOperationWithTheRequestsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var got struct {
		req tracker.Request
		op  *tracker.Op
		in  any
	}
	b.engine.set(scoped(func(req *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error) {
		got.req, got.op, got.in = *req, op, in
		return tracker.Reply{Outcome: tracker.Created, Body: []byte(`{"id":"x"}`), Replayed: req.Idempotency != nil}, nil
	}))
	s := b.say(t, callOf("log", `{"message":"m","type":"thought"}`), "X-Request-Id", "mine", "Idempotency-Key", "k")
	in, ok := got.in.(*tracker.LogActivitiesIn)
	if s.StatusCode != 200 || string(s.Result.StructuredContent) != `{"id":"x"}` || s.Header.Get("Idempotency-Replayed") != "true" || s.Header.Get("X-Request-Id") != "mine" || !ok {
		t.Fatalf("%d %v %s", s.StatusCode, s.Header, s.body)
	}
	if got.op != tracker.LogActivities || in.ID != "s1" || in.Message.Value != "m" || in.Type != "thought" || got.req.ID != "mine" || got.req.Credential != token || got.req.Idempotency.Key != "k" || got.req.Deadline.IsZero() {
		t.Errorf("%s of %+v with %+v", got.op.Name, got.req, in)
	}
	b.say(t, callOf("read_issue", `{}`), "Idempotency-Key", "k")
	if in, ok := got.in.(*tracker.SessionIssueIn); !ok || in.ID != "i1" || got.req.Idempotency != nil {
		t.Errorf("%s of %+v with %+v", got.op.Name, got.req, got.in)
	}
	b.say(t, callOf("ask", `{"question":"q","payload":[1]}`))
	if in, ok := got.in.(*tracker.LogActivitiesIn); !ok || in.ID != "s1" || in.Type != tracker.ActivityElicitation || in.Message.Value != "q" || string(in.Payload) != "[1]" {
		t.Errorf("%s with %+v", got.op.Name, got.in)
	}
	b.say(t, callOf("heartbeat", `{"leaseSeconds":90}`))
	if in, ok := got.in.(*tracker.HeartbeatIn); !ok || got.op != tracker.Heartbeat || in.ID != "s1" || in.LeaseSeconds.Value != 90 {
		t.Errorf("%s with %+v", got.op.Name, got.in)
	}
	b.say(t, callOf("list_children", `{"limit":3,"summary":"1"}`))
	if in, ok := got.in.(*tracker.ListSessionChildrenIn); !ok || in.ID != "s1" || in.Limit != 3 || in.Summary != "1" {
		t.Errorf("%s with %+v", got.op.Name, got.in)
	}
	b.say(t, callOf("read_session", `{}`))
	if in, ok := got.in.(*tracker.PollSessionIn); !ok || in.ID != "s1" || in.ActivityLimit() != maxToolActivities {
		t.Errorf("%s with %+v", got.op.Name, got.in)
	}
	if b.say(t, callOf("list_children", `{}`)); got.in.(*tracker.ListSessionChildrenIn).Limit != 50 {
		t.Errorf("%s with %+v", got.op.Name, got.in)
	}
}

func TestTools_FailuresOfTheirOperations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, row := range []struct {
		name   string
		err    error
		status int
		told   string // in the answer
		logged string
	}{
		{"told", tracker.Conflict("In the way.", "Go around."), 200, `{"code":"CONFLICT","message":"In the way.","hint":"Go around."}`, ""},
		{"forbidden", tracker.Forbidden("No.", "Ask."), 200, `{"code":"FORBIDDEN"`, ""},
		{"the token ended meanwhile", tracker.Unauthorized(), 401, `{"code":"UNAUTHORIZED"`, ""},
		{"unavailable", tracker.NotApplied("Busy."), 503, `"outcome":"not_applied"`, ""},
		{"unknown", errors.New("secret cause"), 200, `{"code":"INTERNAL"`, "tool log: secret cause"},
	} {
		b.engine.set(scoped(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) { return tracker.Reply{}, row.err }))
		s := b.say(t, callOf("log", `{"message":"m"}`))
		told := s.body
		if s.StatusCode == 200 {
			// As text alone: clients hold structured content against the tool's output schema.
			if len(s.Result.Content) != 1 || s.Result.StructuredContent != nil {
				t.Fatalf("%s: %s", row.name, s.body)
			}
			told = s.Result.Content[0].Text
		}
		if s.StatusCode != row.status || s.Result.IsError != (row.status == 200) || !strings.Contains(told, row.told) || strings.Contains(s.body, "secret") {
			t.Errorf("%s: %d %s", row.name, s.StatusCode, s.body)
		}
		if row.status == 503 && s.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %v", row.name, s.Header)
		}
		if !strings.Contains(b.log.String(), row.logged) {
			t.Errorf("%s: the log has %s", row.name, b.log)
		}
	}
	b.engine.set(scoped(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) { panic("secret panic") }))
	for _, tool := range []string{"log", "read_issue", "read_session"} {
		message := callOf(tool, `{}`)
		if tool == "log" {
			message = callOf(tool, `{"message":"m"}`)
		}
		if s := b.say(t, message); !strings.Contains(strings.ReplaceAll(s.body, `\`, ""), `"code":"INTERNAL"`) || strings.Contains(s.body, "secret") {
			t.Errorf("%s panics: %d %s", tool, s.StatusCode, s.body)
		}
	}
	if !strings.Contains(b.log.String(), "secret panic") || !strings.Contains(b.log.String(), "mcp_tool.go") {
		t.Errorf("the log has %s", b.log)
	}
}

// A checkpoint is the body of its path, so one that is too large gets the answer of a body
// that is too large.
func TestTools_CheckpointHasTheBoundOfItsPath(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stored := 0
	b.engine.set(scoped(func(_ *tracker.Request, op *tracker.Op, in any) (tracker.Reply, error) {
		if put, ok := in.(*tracker.PutCheckpointIn); ok && op == tracker.PutCheckpoint && put.ID == "s1" {
			stored = len(put.Value)
		}
		return tracker.Reply{Outcome: tracker.NoContent}, nil
	}))
	value := func(bytes int) string { return `{"value":"` + strings.Repeat("x", bytes-2) + `"}` }
	limit := tracker.PutCheckpoint.MaxBody
	if s := b.say(t, callOf("checkpoint", value(limit))); s.Result.IsError || stored != limit {
		t.Errorf("%d bytes: %s", limit, s.body)
	}
	stored = 0
	s := b.say(t, callOf("checkpoint", value(limit+1)))
	if want := string(errBodyTooLarge(limit).(*failure).body()); stored != 0 || !s.Result.IsError || len(s.Result.Content) != 1 || s.Result.Content[0].Text != want { //nolint:errorlint // its own
		t.Errorf("%d bytes: %s, want %s", limit+1, s.body, want)
	}
}

// The library's errors for params that it can't read have the names of Go types.
func TestTools_TellOfWrongParamsInTheirOwnWords(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.engine.set(scoped(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{}, errors.New("no operation has such params")
	}))
	const sessionless = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	for _, row := range []struct {
		method, params string
		version        string
	}{
		{"initialize", `{"protocolVersion":5}`, ""},
		{"initialize", `{"capabilities":{"roots":5}}`, ""},
		{"initialize", `[]`, ""},
		{"initialize", `null`, ""},
		{"tools/call", `[1]`, ""},
		{"tools/call", `null`, ""},
		{"tools/call", `{"name":5}`, ""},
		{"tools/call", `{"name":"log","arguments":{"message":"m"},"_meta":5}`, ""},
		{"tools/list", `{"cursor":5}`, ""},
		{"tools/list", `{"cursor":5,` + sessionless + `}`, firstSessionless},
		{"ping", `5`, ""},
	} {
		var headers []string
		if row.version != "" {
			headers = []string{headerProtocol, row.version, "Mcp-Method", row.method}
		}
		s := b.say(t, `{"jsonrpc":"2.0","id":7,"method":"`+row.method+`","params":`+row.params+`}`, headers...)
		status := http.StatusOK
		if row.version != "" {
			status = http.StatusBadRequest
		}
		if want := "The params do not fit the protocol's schema of " + row.method + "."; s.StatusCode != status || s.Error == nil || s.Error.Code != -32602 || s.Error.Message != want || !strings.Contains(s.body, `"id":7`) {
			t.Errorf("%s of %s: %d %s", row.method, row.params, s.StatusCode, s.body)
		}
	}
}

// Nothing is parsed for callers without the right to the tools.
func TestTools_RefuseBeforeTheyRead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for status, err := range map[int]error{401: tracker.Unauthorized(), 403: tracker.ForeignLane(), 404: tracker.NotFound("session"), 409: tracker.Conflict("Its lease ran out.", "Stop.")} {
		b.engine.set(func(_ *tracker.Request, op *tracker.Op, _ any) (tracker.Reply, error) {
			if op != tracker.OpenTools {
				t.Errorf("%s was run", op.Name)
			}
			return tracker.Reply{}, err
		})
		for _, body := range []string{"nonsense", callOf("log", `{"message":"m"}`), `{"jsonrpc":"2.0","method":"notifications/initialized"}`} {
			if a := b.do(t, "POST", sessionTools, body); a.StatusCode != status {
				t.Errorf("%s gets %d %s, want %d", body, a.StatusCode, a.body, status)
			}
		}
	}
}

// A tool that waits is parked, and has no goroutine of the protocol either.
func TestTools_OneThatWaitsIsParked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.engine.set(scoped(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) { panic("not run") }))
	all := sleepy(b, 1)
	c, r := dial(t, b.addr)
	message := callOf("read_session", `{"since":"01931f6e-7a3c-7def-8123-456789abcd00","wait":20}`)
	if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nX-Request-Id: r1\r\nContent-Length: %d\r\n\r\n%s", sessionTools, token, len(message), message); err != nil {
		t.Fatal(err)
	}
	w := <-all
	if left := time.Until(w.req.Deadline); left <= time.Minute || left > 80*time.Second || w.req.Gone == nil {
		t.Errorf("its answer is due in %v", left)
	}
	wake := <-w.armed
	wake()
	(<-w.armed)()
	a, err := readAnswer(r, "POST")
	if err != nil {
		t.Fatal(err)
	}
	if want := `"structuredContent":{"id":"r1"}`; a.StatusCode != 200 || !strings.Contains(a.body, want) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	wantPing(t, c, r)
}

// wantPing uses the connection once more.
func wantPing(t *testing.T, c io.Writer, r *bufio.Reader) {
	t.Helper()
	ping := `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", sessionTools, token, len(ping), ping); err != nil {
		t.Fatal(err)
	}
	wantBody(t, r, 200, `{"jsonrpc":"2.0","id":2,"result":{}}`)
}

func TestTools_AreForwarded(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	entry, owner := a.join(t, "a"), a.join(t, "b")
	owner.engine.set(scoped(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{Body: []byte(`{"id":"b"}`)}, nil
	}))
	if s := entry.say(t, callOf("log", `{"message":"m"}`), "Mcp-Protocol-Version", "2025-06-18"); string(s.Result.StructuredContent) != `{"id":"b"}` {
		t.Fatalf("%d %s", s.StatusCode, s.body)
	}
	// The page's origin is looked at where the page's browser asked.
	if s := entry.say(t, callOf("log", `{"message":"m"}`), "Origin", "http://"+entry.addr); s.StatusCode != 200 {
		t.Errorf("of its own origin: %d %s", s.StatusCode, s.body)
	}
	if s := entry.say(t, callOf("log", `{"message":"m"}`), "Origin", "http://evil.example.com"); s.StatusCode != 403 {
		t.Errorf("of another origin: %d %s", s.StatusCode, s.body)
	}
	// The owner finds in the midst of a call that it is none any more.
	var once sync.Once
	moved := 0
	owner.engine.set(scoped(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		once.Do(func() { a.move("a") })
		moved++
		return tracker.Reply{}, tracker.Moved("Not here.")
	}))
	entry.engine.set(scoped(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{Body: []byte(`{"id":"a"}`)}, nil
	}))
	if s := entry.say(t, callOf("log", `{"message":"m"}`)); string(s.Result.StructuredContent) != `{"id":"a"}` || moved != 1 {
		t.Errorf("after the move: %d %s, %d times refused", s.StatusCode, s.body, moved)
	}
}

// A request that may have been carried out is not repeated, unless it changes nothing or
// has a key.
func TestTools_ForwardedAndLost(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		message string
		headers []string
		status  int
	}{
		{callOf("log", `{"message":"m"}`), nil, 503},
		{callOf("log", `{"message":"m"}`), []string{"Idempotency-Key", "k"}, 200},
		{callOf("read_issue", `{}`), nil, 200},
		{callOf("read_session", `{"wait":1}`), nil, 200},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil, 200},
	} {
		a := newAtlas("b")
		entry := a.join(t, "a")
		entry.engine.set(scoped(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
			return tracker.Reply{Body: []byte(`{"id":"a"}`)}, nil
		}))
		a.haunt(t, "b", func(c net.Conn) {
			readOne(c)
			a.move("a")
		})
		s := entry.say(t, row.message, row.headers...)
		if s.StatusCode != row.status || row.status == 503 && !strings.Contains(s.body, `"outcome":"unknown"`) {
			t.Errorf("%s %v: %d %s", row.message, row.headers, s.StatusCode, s.body)
		}
	}
}

// Every message gets an answer of the protocol or of the service, and nothing is left
// behind.
func TestTools_LeaveNoGoroutineBehind(t *testing.T) {
	// Not parallel: it counts.
	b := setup(t)
	b.engine.set(scoped(func(_ *tracker.Request, op *tracker.Op, _ any) (tracker.Reply, error) {
		if op == tracker.SpawnSession {
			panic("broken")
		}
		return tracker.Reply{Body: []byte(`{"id":"x"}`)}, nil
	}))
	messages := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":5}`,
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{}}}`,
		callOf("log", `{"message":"m"}`), callOf("log", `5`), callOf("nonsense", `{}`), callOf("spawn_child", `{"title":"t"}`), "nonsense",
	}
	http.DefaultClient.CloseIdleConnections()
	b.say(t, messages[0])
	before := speakers()
	for range 20 {
		for _, m := range messages {
			b.say(t, m)
			b.say(t, m, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
		}
	}
	if after := speakers(); before != 0 || after != 0 {
		t.Errorf("%d goroutines of the protocol before, %d after", before, after)
	}
}

// speakers counts the goroutines of the protocol's library. Those that have answered may
// need a moment to end.
func speakers() (n int) {
	stacks := make([]byte, 4<<20)
	for range 1000 {
		if n = bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("created by github.com/modelcontextprotocol")); n == 0 {
			return 0
		}
		runtime.Gosched()
	}
	return n
}

func FuzzTools(f *testing.F) {
	testkit.Corpus(f)
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":"x","method":"tools/list","params":{"cursor":"x","_meta":{"progressToken":1}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		callOf("log", `{"activities":[{"message":"m","payload":{"a":[1,2.5e10,null]}}]}`), callOf("report", `{"structuredResult":[]}`), `[1,`, `[[]]`,
	} {
		f.Add([]byte(m), "", "")
		f.Add([]byte(m), "2026-07-28", "tools/call")
	}
	b := setup(f)
	b.engine.set(scoped(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{Body: []byte(`{"id":"x"}`)}, nil
	}))
	f.Fuzz(func(t *testing.T, message []byte, version, method string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+b.addr+sessionTools, bytes.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Mcp-Protocol-Version", version)
		req.Header.Set("Mcp-Method", method)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Skip(err) // headers that can't be sent
		}
		defer resp.Body.Close()
		status := resp.StatusCode
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if status == 202 && len(body) == 0 {
			return
		}
		if !json.Valid(body) || status >= 500 {
			t.Errorf("%q: %d %s", message, status, body)
		}
	})
}
