package node

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"switchyard/actors/webhook"
)

// spanReceiver takes spans as a collector does, OTLP over HTTP.
type spanReceiver struct {
	*httptest.Server
	mu    sync.Mutex
	spans []*tracepb.Span
	nodes map[string]string // by span
}

func newSpanReceiver(t *testing.T) *spanReceiver {
	r := &spanReceiver{nodes: map[string]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		var sent coltracepb.ExportTraceServiceRequest
		if err = errors.Join(err, proto.Unmarshal(body, &sent)); err != nil || req.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", req.URL, err)
		}
		r.take(&sent)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *spanReceiver) take(sent *coltracepb.ExportTraceServiceRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range sent.ResourceSpans {
		node := ""
		for _, a := range of.Resource.Attributes {
			if a.Key == "service.instance.id" {
				node = a.Value.GetStringValue()
			}
		}
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				r.spans = append(r.spans, s)
				r.nodes[string(s.SpanId)] = node
			}
		}
	}
}

// of returns the spans of a trace as "node: parent > name", sorted.
func (r *spanReceiver) of(trace string) (tree []string, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := map[string]string{}
	for _, s := range r.spans {
		names[string(s.SpanId)] = s.Name
	}
	for _, s := range r.spans {
		if hex.EncodeToString(s.TraceId) != trace {
			continue
		}
		tree = append(tree, r.nodes[string(s.SpanId)]+": "+names[string(s.ParentSpanId)]+" > "+s.Name)
		text += s.String()
		if s.EndTimeUnixNano < s.StartTimeUnixNano {
			text += " ends before it begins "
		}
	}
	slices.Sort(tree)
	return tree, text
}

const tracesToken = "the-operators-token-of-traces"

func tracedConfig(t *testing.T, name, endpoint string) Config {
	return Config{
		Name: name, Data: t.TempDir(), HTTP: "127.0.0.1:0", Metrics: "127.0.0.1:0", Shards: 2, RootToken: tracesToken, OpenOnboarding: true,
		RequestTimeout: 30 * time.Second, Version: "test", TraceEndpoint: endpoint, Logger: slog.New(slog.DiscardHandler),
	}
}

// startTraced starts a node. The function ends it, which sends its last spans.
func startTraced(t *testing.T, cfg Config) (*Node, func()) {
	t.Helper()
	n, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		if err := n.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	if err := errors.Join(n.Join(t.Context()), n.WaitReady(t.Context())); err != nil {
		t.Fatal(err)
	}
	return n, stop
}

// askFor sends a request, with a traceparent if there is one, and returns the answer.
func askFor(t *testing.T, method, url, token, traceparent, body string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if traceparent != "" {
		req.Header.Set("Traceparent", traceparent)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s %v", method, url, res.StatusCode, answer, err)
	}
	return answer
}

// A request that a node forwards to another has a single trace with the spans of both.
func TestTraces_OfAForwardedRequest(t *testing.T) {
	t.Parallel()
	to := newSpanReceiver(t)
	cfg := tracedConfig(t, "node-1", to.URL)
	cfg.Peer, cfg.Gossip = "127.0.0.1:0", "127.0.0.1:0"
	first, stopFirst := startTraced(t, cfg)
	cfg = tracedConfig(t, "node-2", to.URL)
	cfg.Peer, cfg.Gossip, cfg.Join = "127.0.0.1:0", "127.0.0.1:0", []string{first.GossipAddr()}
	second, stopSecond := startTraced(t, cfg)

	answer := askFor(t, "POST", "http://"+first.HTTPAddr()+"/workspaces/onboard", "", "", `{"name":"Acme","slug":"acme"}`)
	var m struct {
		Workspace struct{ ID string }
		Token     struct{ Token string }
	}
	if err := json.Unmarshal(answer, &m); err != nil {
		t.Fatal(err)
	}
	raw := askFor(t, "GET", "http://"+first.HTTPAddr()+"/cluster/workspaces/"+m.Workspace.ID, tracesToken, "", "")
	var place struct{ Owner string }
	if err := json.Unmarshal(raw, &place); err != nil {
		t.Fatal(err)
	}
	owner, other := first, second
	if place.Owner == "node-2" {
		owner, other = second, first
	}
	issues := "/workspaces/" + m.Workspace.ID + "/issues"
	const forwarded, direct = "0af7651916cd43dd8448eb211c80319c", "1bf7651916cd43dd8448eb211c80319c"
	// The node knows the credential once the owner has answered.
	askFor(t, "GET", "http://"+other.HTTPAddr()+issues, m.Token.Token, "", "")
	askFor(t, "POST", "http://"+other.HTTPAddr()+issues, m.Token.Token, "00-"+forwarded+"-b7ad6b7169203331-01", `{"title":"A title that is secret"}`)
	askFor(t, "GET", "http://"+owner.HTTPAddr()+issues, m.Token.Token, "00-"+direct+"-b7ad6b7169203331-01", "")
	stopSecond()
	stopFirst()

	const post, get = "POST /workspaces/{organizationId}/issues", "GET /workspaces/{organizationId}/issues"
	o, e := owner.groups.Name(), other.groups.Name()
	tree, text := to.of(forwarded)
	for _, want := range []string{
		e + ":  > " + post, e + ": " + post + " > forward", o + ": forward > " + post, o + ": " + post + " > admission", o + ": " + post + " > queue",
		o + ": " + post + " > engine", o + ": " + post + " > commit",
	} {
		if !slices.Contains(tree, want) {
			t.Errorf("there is no span %q in\n%s", want, strings.Join(tree, "\n"))
		}
	}
	for _, want := range []string{m.Workspace.ID, "switchyard.request_id", "201"} {
		if !strings.Contains(text, want) {
			t.Errorf("the spans lack %q: %s", want, text)
		}
	}
	for _, secret := range []string{"secret", m.Token.Token, "ends before"} {
		if strings.Contains(text, secret) {
			t.Errorf("the spans have %q: %s", secret, text)
		}
	}
	if tree, _ := to.of(direct); !slices.Contains(tree, o+": "+get+" > engine") || slices.ContainsFunc(tree, func(s string) bool { return strings.Contains(s, "forward") }) {
		t.Errorf("the read at the owner:\n%s", strings.Join(tree, "\n"))
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	for _, s := range to.spans {
		if id := hex.EncodeToString(s.TraceId); id != forwarded && id != direct {
			t.Errorf("a trace that nobody asked for: %s", s)
		}
	}
}

// A collector that hangs holds up neither requests nor the end of the node, and spans beyond
// the queue are dropped.
func TestTraces_OfADeadCollector(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	cfg := tracedConfig(t, "node-1", "http://"+ln.Addr().String())
	cfg.TraceRatio = 1
	n, stop := startTraced(t, cfg)
	answer := askFor(t, "POST", "http://"+n.HTTPAddr()+"/workspaces/onboard", "", "", `{"name":"Acme","slug":"acme"}`)
	var m struct {
		Workspace struct{ ID string }
		Token     struct{ Token string }
	}
	if err := json.Unmarshal(answer, &m); err != nil {
		t.Fatal(err)
	}
	for range traceQueue / 2 { // two spans each, and more
		askFor(t, "GET", "http://"+n.HTTPAddr()+"/workspaces/"+m.Workspace.ID+"/labels", m.Token.Token, "", "")
	}
	if ended, sent := n.traces.spans.ended.Load(), n.traces.export.sent.Load(); ended < traceQueue || sent != 0 {
		t.Errorf("%d spans ended, and %d were sent", ended, sent)
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the node took %s to stop", took)
	}
}

func TestConfig_Traces(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"http://127.0.0.1:4318":       "http://127.0.0.1:4318/v1/traces",
		"https://collector/":          "https://collector/v1/traces",
		"https://collector/otlp/path": "https://collector/otlp/path",
		"127.0.0.1:4318":              "", "grpc://collector": "", "http://": "", "http://a:b@collector": "", "http://collector?a=b": "",
	} {
		got, err := Config{TraceEndpoint: endpoint}.traceURL()
		if got != want || (err == nil) != (want != "") || err != nil && !strings.Contains(err.Error(), "--trace-endpoint") {
			t.Errorf("%q: %q, %v", endpoint, got, err)
		}
	}
	for _, ratio := range []float64{-0.1, 1.1} {
		if err := (Config{TraceRatio: ratio}).validateTraces(); err == nil || !strings.Contains(err.Error(), "--trace-ratio") {
			t.Errorf("a ratio of %v: %v", ratio, err)
		}
	}
}

// notingSender notes the deliveries that it is given.
type notingSender struct{ got []webhook.Delivery }

func (s *notingSender) Send(_ context.Context, d *webhook.Delivery) webhook.Result {
	s.got = append(s.got, *d)
	return webhook.Result{StatusCode: http.StatusTeapot, Failure: "No."}
}

func TestTraces_OfDeliveries(t *testing.T) {
	t.Parallel()
	for ratio, want := range map[float64]bool{0: false, 1: true} {
		to := newSpanReceiver(t)
		cfg := tracedConfig(t, "node-1", to.URL)
		cfg.TraceRatio = ratio
		n, stop := startTraced(t, cfg)
		sender := &notingSender{}
		result := n.traces.deliveries()(sender).Send(t.Context(), &webhook.Delivery{URL: "https://example.com/secret", ID: "d1", Type: "issue.created"})
		stop()
		if result.StatusCode != http.StatusTeapot || len(sender.got) != 1 {
			t.Fatalf("%+v of %d deliveries", result, len(sender.got))
		}
		parts := strings.Split(sender.got[0].Traceparent, "-")
		if !want {
			if sender.got[0].Traceparent != "" {
				t.Errorf("an untraced delivery has %q", sender.got[0].Traceparent)
			}
			continue
		}
		tree, text := to.of(parts[1])
		if len(parts) != 4 || parts[3] != "01" || len(tree) != 1 || !strings.HasSuffix(tree[0], " > webhook delivery") || !strings.Contains(text, "issue.created") || strings.Contains(text, "secret") {
			t.Errorf("%v: %s", tree, text)
		}
	}
}

func TestTraces_MetricsAndTheLogOfAFailure(t *testing.T) {
	t.Parallel()
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) }))
	t.Cleanup(refusing.Close)
	var log bytes.Buffer
	cfg := tracedConfig(t, "node-1", refusing.URL)
	cfg.TraceRatio, cfg.Logger = 1, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	n, stop := startTraced(t, cfg)
	askFor(t, "GET", "http://"+n.HTTPAddr()+"/workspaces", tracesToken, "", "")
	if text := string(askFor(t, "GET", "http://"+n.MetricsAddr()+"/metrics", "", "", "")); !strings.Contains(text, `switchyard_trace_spans_total{outcome="ended"} `) {
		t.Error("there is no switchyard_trace_spans_total")
	}
	stop()
	if text := log.String(); n.traces.export.failed.Load() == 0 || strings.Count(text, "spans were not sent") != 1 {
		t.Errorf("%d spans failed: %s", n.traces.export.failed.Load(), text)
	}
}
