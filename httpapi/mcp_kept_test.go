package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"switchyard/actors/tracker"
)

const newMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`

// The library takes a millisecond for these, so it is asked once.
func TestTools_AnswersWithoutAToolAreMadeOnce(t *testing.T) {
	t.Parallel()
	newest := []string{headerProtocol, firstSessionless, "Mcp-Method"}
	for _, row := range []struct {
		method          string
		params          []string
		headers, others []string // and those with which the answer differs
	}{
		{"tools/list", []string{`{}`, `{"_meta":{"progressToken":1}}`, `{"x":[1],"_meta":{"y":{"z":1}}}`}, nil, append(newest, "tools/list")},
		{"tools/list", []string{`{"_meta":{` + newMeta + `}}`, `{"_meta":{` + newMeta + `,"x":1}}`}, append(newest, "tools/list"), append(newest, "ping")},
		{"ping", []string{`{}`, `{"_meta":{"x":1}}`, `{"y":2}`}, nil, []string{headerProtocol, "1999-01-01"}},
		{"initialize", []string{
			`{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`,
			`{"protocolVersion":"2025-06-18","capabilities":{"experimental":{"x":{}},"roots":{"listChanged":true},"y":5},"clientInfo":{"name":"u","title":null,"version":"2","icons":[]}}`,
		}, nil, []string{headerProtocol, "1999-01-01"}},
	} {
		b := setup(t)
		b.engine.set(scoped(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
			return tracker.Reply{}, fmt.Errorf("no operation is run")
		}))
		ask := func(id, params string, headers []string) *said {
			return b.say(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+row.method+`","params":`+params+`}`, headers...)
		}
		first := ask("1", row.params[0], row.headers)
		if first.StatusCode != 200 || first.Error != nil || b.engine.turns != 1 {
			t.Fatalf("%s: %d %s with %d turns", row.method, first.StatusCode, first.body, b.engine.turns)
		}
		for i, params := range append(row.params, row.params[0]) {
			id := fmt.Sprintf(`"a\n%d"`, i)
			s := ask(id, params, row.headers)
			if want := strings.Replace(first.body, `"id":1,`, `"id":`+id+`,`, 1); s.StatusCode != 200 || s.body != want || s.Header.Get("Content-Type") != first.Header.Get("Content-Type") {
				t.Errorf("%s of %s: %d %s, want %s", row.method, params, s.StatusCode, s.body, want)
			}
		}
		if b.engine.turns != 1 {
			t.Errorf("%s: the library was asked %d times", row.method, b.engine.turns)
		}
		if s := ask("1", row.params[0], row.others); s.StatusCode != http.StatusBadRequest {
			t.Errorf("%s with %v: %d %s", row.method, row.others, s.StatusCode, s.body)
		}
	}
}

func TestTools_AnswersThatAreKeptAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.engine.set(scoped(nil))
	initialize := func(version string) *said {
		return b.say(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	}
	for i := range 2 * mostKept {
		if s := initialize(fmt.Sprint(i)); s.StatusCode != 200 || s.Error != nil {
			t.Fatalf("%d %s", s.StatusCode, s.body)
		}
	}
	if n := len(b.tools.kept.results); n != mostKept {
		t.Errorf("%d answers are kept, want %d", n, mostKept)
	}
	initialize(strings.Repeat("9", maxKeptKey))
	for key := range b.tools.kept.results {
		if len(key) > maxKeptKey {
			t.Errorf("a key has %d bytes", len(key))
		}
	}
	turns := b.engine.turns
	for range 2 {
		if s := b.say(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`); s.Error == nil {
			t.Errorf("%d %s", s.StatusCode, s.body)
		}
	}
	if b.engine.turns != turns+2 {
		t.Error("an error was kept")
	}
}

// A turn is held while the library works, and never while an operation runs: that may wait, also for a turn. Nor is one
// held while the caller is looked at: that may wait for another node.
func TestTools_TakeTurns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	held := func() (int, int) {
		b.engine.mu.Lock()
		defer b.engine.mu.Unlock()
		return b.engine.turns, b.engine.turnsHeld
	}
	b.engine.set(scoped(func(_ *tracker.Request, op *tracker.Op, _ any) (tracker.Reply, error) {
		if _, n := held(); n != 0 {
			t.Errorf("%s runs with %d turns", op.Name, n)
		}
		if op == tracker.SpawnSession {
			panic("broken")
		}
		return tracker.Reply{Body: []byte(`{"id":"x"}`)}, nil
	}))
	for _, row := range []struct {
		message string
		turns   int
	}{
		{callOf("log", `{"message":"m"}`), 2}, {callOf("read_issue", `{}`), 2}, {callOf("spawn_child", `{"title":"t"}`), 1},
		{callOf("read_session", `{}`), 1}, // it has run before
		{callOf("log", `{}`), 2}, {callOf("nonsense", `{}`), 1}, {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":5}`, 1},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, 1}, {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, 0}, {"nonsense", 0},
	} {
		before, _ := held()
		b.say(t, row.message)
		if after, n := held(); after-before != row.turns || n != 0 {
			t.Errorf("%s takes %d turns, want %d; %d are left", row.message, after-before, row.turns, n)
		}
	}
	b.engine.mu.Lock()
	if n := b.engine.admittedIn; n != 0 {
		t.Errorf("%d turns are held while a caller is looked at", n)
	}
	b.engine.noTurn = tracker.NotApplied("Busy.")
	b.engine.mu.Unlock()
	if s := b.say(t, callOf("log", `{"message":"m"}`)); s.StatusCode != http.StatusServiceUnavailable || !strings.Contains(s.body, "not_applied") {
		t.Errorf("without a turn: %d %s", s.StatusCode, s.body)
	}
}

// A tool that has run has its answer, also if there is no turn for the rest.
func TestTools_AnswerWithoutAnotherTurn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.engine.set(scoped(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		b.engine.mu.Lock()
		defer b.engine.mu.Unlock()
		b.engine.noTurn = tracker.NotApplied("Busy.")
		return tracker.Reply{Body: []byte(`{"id":"x"}`)}, nil
	}))
	if s := b.say(t, callOf("log", `{"message":"m"}`)); s.StatusCode != 200 || string(s.Result.StructuredContent) != `{"id":"x"}` {
		t.Errorf("%d %s", s.StatusCode, s.body)
	}
}
