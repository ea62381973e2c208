package httpapi

import (
	"context"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"switchyard/actors/tracker"
)

const (
	givenTrace  = "0af7651916cd43dd8448eb211c80319c"
	traceparent = "00-" + givenTrace + "-b7ad6b7169203331-01"
)

func TestTraceparent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		traceparent: givenTrace + " true",
		strings.TrimSuffix(traceparent, "1") + "0":                                   givenTrace + " false",
		"01" + traceparent[2:] + "-more":                                             givenTrace + " true", // of a later version
		traceparent + "-more":                                                        "",
		"01" + traceparent[2:] + "more":                                              "",
		"ff" + traceparent[2:]:                                                       "",
		strings.ToUpper(traceparent):                                                 "",
		strings.Replace(traceparent, givenTrace, strings.Repeat("0", 32), 1):         "",
		strings.Replace(traceparent, "b7ad6b7169203331", strings.Repeat("0", 16), 1): "",
		strings.Replace(traceparent, "0af", "0xf", 1):                                "",
		strings.Replace(traceparent, "-b7", "_b7", 1):                                "",
		"":          "",
		"00-00-0-1": "",
	} {
		c, ok := parseTraceparent([]byte(text))
		got := ""
		if ok {
			got = c.TraceID().String() + map[bool]string{true: " true", false: " false"}[c.IsSampled()]
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// notedTracer notes the spans that are begun.
type notedTracer struct {
	noop.Tracer
	mu    sync.Mutex
	began []string // names, with the parent's trace for those of requests
}

func (n *notedTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	n.mu.Lock()
	defer n.mu.Unlock()
	cfg := trace.NewSpanStartConfig(options...)
	if cfg.SpanKind() == trace.SpanKindServer {
		name += " in " + trace.SpanContextFromContext(ctx).TraceID().String()
	}
	n.began = append(n.began, name)
	return n.Tracer.Start(ctx, name, options...)
}

// requests returns the spans of requests since it was called last.
func (n *notedTracer) requests() (names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range n.began {
		if strings.Contains(name, " in ") {
			names = append(names, name)
		}
	}
	n.began = nil
	return names
}

func (n *notedTracer) with(ratio float64) func(*Config) {
	return func(c *Config) { c.Tracing = &Tracing{Tracer: n, Ratio: ratio} }
}

func TestTraces_Chosen(t *testing.T) {
	t.Parallel()
	const route = "GET /w/{organizationId}/things/{id} in "
	none := strings.Repeat("0", 32)
	for _, row := range []struct {
		name        string
		ratio       float64
		traceparent string
		want        string
	}{
		{"none are", 0, "", ""},
		{"all are", 1, "", route + none},
		{"a known caller asks for it", 0, traceparent, route + givenTrace},
		{"a known caller asks for none", 1, traceparent[:len(traceparent)-1] + "0", ""},
		{"the header is malformed", 1, "00-nonsense", route + none},
	} {
		tracer := &notedTracer{}
		b := setup(t, tracer.with(row.ratio))
		var headers []string
		if row.traceparent != "" {
			headers = append(headers, "Traceparent: "+row.traceparent)
		}
		b.do(t, "GET", things+"/1", "", headers...)
		if got := strings.Join(tracer.requests(), ", "); got != row.want {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// The flag of strangers does not count, and that of known callers counts up to a rate.
func TestTraces_CallersCanForceFew(t *testing.T) {
	t.Parallel()
	tracer := &notedTracer{}
	b := setup(t, tracer.with(0))
	b.askedTraces.SetLimit(0) // no time passes for the limit
	for range 3 * askedTracesBurst {
		b.do(t, "POST", "/open", thingBody, "Content-Type: application/json", "Traceparent: "+traceparent)
	}
	if got := tracer.requests(); len(got) != 0 {
		t.Errorf("strangers had %d requests traced", len(got))
	}
	for range 4 * askedTracesBurst {
		b.do(t, "GET", things+"/1", "", "Traceparent: "+traceparent)
	}
	if got := len(tracer.requests()); got != askedTracesBurst {
		t.Errorf("a caller had %d requests traced", got)
	}
}

// A message to the tools names its trace in _meta or in the header, which counts first. The node that is asked
// reads it, and the owner believes the node alone.
func TestTraces_OfMessagesToTheTools(t *testing.T) {
	t.Parallel()
	const route = "POST /w/{organizationId}/sessions/{id}/mcp in "
	meta := func(value string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_issue","arguments":{},"_meta":{"traceparent":` + value + `}}}`
	}
	other := strings.Replace(traceparent, givenTrace, strings.Repeat("a", 32), 1)
	done := scoped(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{Outcome: tracker.Done, Body: []byte(`{}`)}, nil
	})
	for _, row := range []struct{ name, message, header, want string }{
		{"the header", callOf("read_issue", `{}`), traceparent, givenTrace},
		{"_meta", meta(`"` + traceparent + `"`), "", givenTrace},
		{"both", meta(`"` + other + `"`), traceparent, givenTrace},
		{"neither", callOf("read_issue", `{}`), "", ""},
		{"an argument", callOf("read_issue", `{"_meta":{"traceparent":"`+traceparent+`"}}`), "", ""},
		{"no text", meta(`[1]`), "", ""},
		{"malformed", meta(`"00-nonsense"`), "", ""},
	} {
		alone, a := &notedTracer{}, newAtlas("b")
		first, second := &notedTracer{}, &notedTracer{}
		b, entry, owner := setup(t, alone.with(0)), a.join(t, "a", first.with(0)), a.join(t, "b", second.with(0))
		b.engine.set(done)
		owner.engine.set(done)
		var headers []string
		if row.header != "" {
			headers = []string{"Traceparent", row.header}
		}
		b.say(t, row.message, headers...)
		entry.do(t, "GET", things, "") // the caller is known from here on
		first.requests()
		entry.say(t, row.message, headers...)
		want := ""
		if row.want != "" {
			want = route + row.want
		}
		for node, tracer := range map[string]*notedTracer{"alone": alone, "asked": first, "owner": second} {
			if got := strings.Join(tracer.requests(), ", "); got != want {
				t.Errorf("%s, %s: %q, want %q", row.name, node, got, want)
			}
		}
	}
}

// A client's header never reaches the owner, which would take it for the other node's.
func TestTraces_AreChosenByTheNodeAsked(t *testing.T) {
	t.Parallel()
	a, first, second := newAtlas("b"), &notedTracer{}, &notedTracer{}
	entry := a.join(t, "a", first.with(0))
	a.join(t, "b", second.with(1)).engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) {
		return tracker.Reply{Outcome: tracker.Done, Body: []byte(`{}`)}, nil
	})
	entry.do(t, "POST", "/open", thingBody, "Content-Type: application/json", "Traceparent: "+traceparent, "Tracestate: a=b")
	if one, two := first.requests(), second.requests(); len(one)+len(two) != 0 {
		t.Errorf("traced %v and %v", one, two)
	}
}
