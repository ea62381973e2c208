package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"switchyard/actors/tracker"
)

// objects returns an array of n objects with a value each.
func objects(n int) string { return "[" + strings.TrimSuffix(strings.Repeat(`{"a":1},`, n), ",") + "]" }

// The protocol's library decodes these parts into maps, several times.
func TestTools_RefuseMessagesOfManyValues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.engine.set(scoped(func(_ *tracker.Request, op *tracker.Op, _ any) (tracker.Reply, error) {
		t.Errorf("%s was run", op.Name)
		return tracker.Reply{}, nil
	}))
	many := objects(maxValuesForSDK / 2)
	for _, row := range []struct{ method, params string }{
		{"tools/call", `{"name":"log","arguments":{"message":"m"},"_meta":{"x":` + many + `}}`},
		{"tools/call", `{"name":"log","arguments":{"message":"m"},"_meta":{"x":"` + strings.Repeat("x", maxForSDK) + `"}}`},
		{"tools/call", `{"name":5,"arguments":{"message":"m","x":` + many + `}}`},
		{"initialize", `{"protocolVersion":"2025-06-18","capabilities":{"experimental":{"x":` + many + `}},"clientInfo":{"name":"t","version":"1"}}`},
		{"tools/list", `{"_meta":{"x":` + many + `}}`},
		{"server/discover", `{"_meta":{"x":` + many + `}}`},
		{"ping", `{"_meta":{"x":` + many + `}}`},
	} {
		s := b.say(t, `{"jsonrpc":"2.0","id":7,"method":"`+row.method+`","params":`+row.params+`}`)
		if s.StatusCode != 400 || s.Error == nil || s.Error.Code != rpcInvalid || !strings.Contains(s.Error.Message, "64 KiB and 1000 JSON values") || !strings.Contains(s.body, `"id":7`) {
			t.Errorf("%s of %.60s: %d %.200s", row.method, row.params, s.StatusCode, s.body)
		}
	}
}

func TestTools_ArgumentsOfManyValues(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var got *tracker.LogActivitiesIn
	b.engine.set(scoped(func(_ *tracker.Request, _ *tracker.Op, in any) (tracker.Reply, error) {
		got = in.(*tracker.LogActivitiesIn)
		return tracker.Reply{Body: []byte(`{"id":"x"}`)}, nil
	}))
	payload := objects(8000) // 63 KiB
	if s := b.say(t, callOf("log", `{"message":"m","payload":`+payload+`}`)); s.StatusCode != 200 || s.Result.IsError || got == nil || string(got.Payload) != payload {
		t.Errorf("%d %.200s", s.StatusCode, s.body)
	}
}

// The library gets all that it needs of a message, and no more.
func TestMessage_ForTheLibrary(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"jsonrpc":"2.0", "id":"a", "method":"tools/call","params":{"_meta":{"b":[1]},"arguments":{"c":2},"name":"log"},"more":3}`: `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"log"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"log","arguments":null}}`:                                   `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"log"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`:                                                              `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5,"arguments":{}}}`:                                         `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5,"arguments":{}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`:                                                                      `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
	} {
		m, refused := parseMessage([]byte(body))
		if refused != nil || string(m.forSDK) != want {
			t.Errorf("%s is passed on as %s, %v", body, m.forSDK, refused)
		}
	}
	if m, refused := parseMessage(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"a":%s}}`, objects(maxValuesForSDK))); refused != nil || m.forSDK != nil {
		t.Errorf("a notification: %v", refused)
	}
}
