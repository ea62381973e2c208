package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fakeNode answers like a node, as far as the scenarios look.
func fakeNode(t *testing.T, broken bool) (base string, created *atomic.Int64) {
	t.Helper()
	return fakeNodeWith(t, broken, newFakeDeliverer(t))
}

func fakeNodeWith(t *testing.T, broken bool, deliverer *fakeDeliverer) (base string, created *atomic.Int64) {
	t.Helper()
	created = &atomic.Int64{}
	mux := http.NewServeMux()
	id := func(n int64) string { return fmt.Sprintf("0190e0a1-0000-7000-8000-%012d", n) }
	var spaces atomic.Int64
	mux.HandleFunc("POST /workspaces/onboard", func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer operator" {
			t.Errorf("onboarded with %q", got)
		}
		w.WriteHeader(http.StatusCreated)
		n := spaces.Add(1)
		_, _ = fmt.Fprintf(w, `{"workspace":{"id":"%s","slug":"x"},"team":{"id":"%s"},"token":{"id":"t","token":"secret-%d"}}`, id(n), id(n), n)
	})
	mux.HandleFunc("POST /workspaces/{w}/issues", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !json.Valid(body) || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer secret-") {
			t.Errorf("created from %s, %v", body, err)
		}
		if broken {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		deliverer.deliver(r.PathValue("w"), body)
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"id":"%s","title":"x"}`, id(created.Add(1)))
	})
	deliverer.routes(mux)
	mux.HandleFunc("GET /workspaces/{w}/issues/{id}", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	mux.HandleFunc("GET /workspaces/{w}/issues", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("limit") != "50" {
			t.Errorf("listed %s", r.URL)
		}
		_, _ = w.Write([]byte("{}"))
	})
	for _, path := range []string{"GET /workspaces/{w}/issues/{id}/similar", "GET /workspaces/{w}/issue-analytics"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	}
	mux.HandleFunc("GET /workspaces/{w}/events", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") != "text/event-stream" {
			t.Errorf("listened with %v", r.Header)
		}
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	fakeSessions(t, mux)
	fakePlans(t, mux)
	fakeFloods(t, mux)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		n := created.Load()
		_, _ = fmt.Fprintf(w, "switchyard_batch_commands_total %d\nswitchyard_batch_ops_total %d\nswitchyard_batch_bytes_total %d\n", n, n*7, n*700)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL, created
}

// fakeSessions answers what is asked about sessions, and holds it against their life:
// what is claimed was dispatched to that agent, and its lane reports it.
func fakeSessions(t *testing.T, mux *http.ServeMux) {
	t.Helper()
	var mu sync.Mutex
	queued := map[string][]string{} // ids by agent
	came := sync.NewCond(&mu)
	made := 0
	read := func(r *http.Request) (in struct {
		AgentID string
		Wait    int
		Status  string
	}) {
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		return in
	}
	mux.HandleFunc("POST /workspaces/{w}/issues/{id}/dispatch", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		agent := read(r).AgentID
		made++
		id := fmt.Sprintf("0190e0a1-0000-7000-9000-%012d", made)
		queued[agent] = append(queued[agent], id)
		came.Broadcast()
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"id":"%s","status":"created"}`, id)
	})
	mux.HandleFunc("POST /workspaces/{w}/agent/sessions/claim", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		in := read(r)
		for in.Wait > 0 && len(queued[in.AgentID]) == 0 {
			came.Wait()
		}
		if len(queued[in.AgentID]) == 0 {
			t.Errorf("%s claims what it has not dispatched", in.AgentID)
			return
		}
		id := queued[in.AgentID][0]
		queued[in.AgentID] = queued[in.AgentID][1:]
		_, _ = fmt.Fprintf(w, `{"sessions":[{"session":{"id":"%s"},"issue":{"id":"x"},"laneToken":"lane-%s"}]}`, id, id)
	})
	logged := newFakeLog()
	mux.HandleFunc("POST /workspaces/{w}/agent/sessions/{id}/log", func(w http.ResponseWriter, r *http.Request) {
		logged.add()
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"activities":[{"id":"%s"}]}`, r.PathValue("id"))
	})
	mux.HandleFunc("POST /workspaces/{w}/agent/sessions/{id}/report", func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); read(r).Status != "completed" || got != "Bearer lane-"+r.PathValue("id") {
			t.Errorf("%s is reported on with %q", r.PathValue("id"), got)
		}
		_, _ = w.Write([]byte("{}"))
	})
	mux.HandleFunc("POST /workspaces/{w}/agent/sessions/{id}/cancel", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	mux.HandleFunc("POST /workspaces/{w}/agent/sessions/{id}/poll", func(w http.ResponseWriter, r *http.Request) {
		if wait := r.URL.Query().Get("wait"); wait == "30" {
			<-r.Context().Done()
		} else if wait != "" {
			if err := logged.await(r.Context(), wait); err != nil {
				t.Errorf("polled with %s: %v", r.URL, err)
			}
		} else if since := r.URL.Query().Get("since"); since != r.PathValue("id") {
			t.Errorf("polled what is later than %q", since)
		}
		_, _ = w.Write([]byte("{}"))
	})
}

// fakeEmpty returns a StartEmpty that starts an empty handler in this process.
func fakeEmpty(t *testing.T) func(context.Context) (*Process, error) {
	return func(context.Context) (*Process, error) {
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(s.Close)
		return &Process{URL: s.URL, Stop: func() error { return nil }}, nil
	}
}

func quick(t *testing.T, base string) Config {
	cfg := defaultConfig()
	cfg.URL, cfg.MetricsURL, cfg.Token = base, base+"/metrics", "operator"
	cfg.Connections, cfg.Workspaces, cfg.Issues, cfg.Waiting = []int{2, 3}, 3, 60, 20
	cfg.Warmup, cfg.Duration = 0, 100*time.Millisecond
	cfg.Dir = t.TempDir()
	return cfg
}

func TestRun_MeasuresScenariosBesideTheirLimits(t *testing.T) {
	t.Parallel()
	base, _ := fakeNode(t, false)
	cfg := quick(t, base)
	cfg.OpenShare = 0.5
	told := map[string]int{} // loads whose progress was told, by scenario or limit
	var mu sync.Mutex
	cfg.Progress = func(p Progress) {
		mu.Lock()
		defer mu.Unlock()
		if p.Done {
			name, _, _ := strings.Cut(strings.Replace(p.Name, fairName+":", fairName+",", 1), ",")
			told[name]++
		}
	}
	var out bytes.Buffer
	report, err := Run(t.Context(), cfg, &out)
	if err != nil || report.Err() != nil {
		t.Fatalf("%v, %v\n%s", err, report.Err(), out.String())
	}
	if report.Create != (writes{Keys: 7, Bytes: 700}) {
		t.Errorf("learned %+v", report.Create)
	}
	closed, opened, open, ratios := map[string]int{}, map[string]int{}, 0, 0
	for _, r := range report.Results {
		if r.Offered > 0 {
			open++
			opened[r.Scenario]++
			continue
		}
		closed[r.Scenario]++
		if r.Ratio > 0 {
			ratios++
		}
	}
	figures := map[string]int{}
	for i := range report.Figures {
		figures[report.Figures[i].Scenario]++
	}
	if figures["dispatch-claim"] != 3 || figures["waiting"] != 1 {
		t.Errorf("figures: %v", report.Figures)
	}
	for _, name := range append(Scenarios(), pebbleLimit, createToDelivery) {
		found := closed
		if name == commitToDelivery.name || name == createToDelivery {
			found = opened
		}
		if found[name] != 2 && figures[name] == 0 {
			t.Errorf("%s was measured %d times, want once for each number of connections", name, found[name])
		}
		if want := map[string]int{fairName: 2 + 2*len(floods)}; told[name] < cmp.Or(want[name], 1) && name != createToDelivery {
			t.Errorf("%s told of its progress %d times", name, told[name])
		}
	}
	if open != 40 || ratios != 20 {
		t.Errorf("%d open measurements, %d ratios; want 40 and 20\n%s", open, ratios, out.String())
	}
	if !strings.Contains(out.String(), "of its limit") {
		t.Errorf("no table:\n%s", out.String())
	}
	left, err := os.ReadDir(cfg.Dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestRun_StartsAndStopsItsServers(t *testing.T) {
	t.Parallel()
	base, _ := fakeNode(t, false)
	cfg := quick(t, "")
	cfg.Scenarios = []string{"get"}
	cfg.Connections = []int{2}
	stopped := 0
	process := func(url string) *Process {
		return &Process{URL: url, Ready: 5 * time.Millisecond, RSS: func() int64 { return 10 << 20 }, Stop: func() error { stopped++; return nil }}
	}
	cfg.StartNode = func(_ context.Context, dir string) (*Process, error) {
		if dir != cfg.Dir {
			t.Errorf("started in %s", dir)
		}
		return process(base), nil
	}
	cfg.StartEmpty = func(ctx context.Context) (*Process, error) {
		empty, err := fakeEmpty(t)(ctx)
		return process(empty.URL), err
	}
	var out bytes.Buffer
	report, err := Run(t.Context(), cfg, &out)
	if err != nil || report.Err() != nil {
		t.Fatalf("%v, %v\n%s", err, report.Err(), out.String())
	}
	if stopped != 2 || report.ReadyMillis != 5 || report.IdleRSS != 10<<20 {
		t.Errorf("stopped %d; %+v", stopped, report)
	}
	if r := report.Results[0]; r.Scenario != "get" || r.Ratio == 0 {
		t.Errorf("%+v", r)
	}
}

func TestRun_ErrorsMakeFiguresInvalid(t *testing.T) {
	t.Parallel()
	base, _ := fakeNode(t, true)
	cfg := quick(t, base)
	cfg.Scenarios = []string{"create"}
	var out bytes.Buffer
	report, err := Run(t.Context(), cfg, &out)
	if err != nil {
		t.Fatal(err)
	}
	if report.Err() == nil || !strings.Contains(report.Err().Error(), "503") {
		t.Errorf("the report's fault is %v", report.Err())
	}
	if !report.Create.Assumed || !strings.Contains(out.String(), "not valid") {
		t.Errorf("printed\n%s", out.String())
	}
}

func TestRun_WaitingLooksAtANodeOfItsOwn(t *testing.T) {
	t.Parallel()
	base, _ := fakeNode(t, false)
	cfg := quick(t, "")
	cfg.Scenarios = []string{"waiting"}
	started, stopped := 0, 0
	cfg.StartNode = func(context.Context, string) (*Process, error) {
		started++
		rss, cpu := int64(0), time.Duration(0)
		return &Process{
			URL: base, Stop: func() error { stopped++; return nil },
			RSS: func() int64 { rss += 30 << 20; return rss },
			CPU: func() time.Duration { cpu += time.Millisecond; return cpu },
		}, nil
	}
	var out bytes.Buffer
	report, err := Run(t.Context(), cfg, &out)
	if err != nil || report.Err() != nil {
		t.Fatalf("%v, %v\n%s", err, report.Err(), out.String())
	}
	if started != 2 || stopped != 2 {
		t.Errorf("%d nodes were started and %d stopped; want two", started, stopped)
	}
	if f := report.Figures; len(f) != 2 || f[0].Value != 30 || f[0].Unit != "MB" || f[0].Target != 50 || f[1].Unit != "%" {
		t.Errorf("found %+v", f)
	}
	if !strings.Contains(out.String(), "30.00 MB (target: below 50)") {
		t.Errorf("printed\n%s", out.String())
	}
}

func TestRun_PollsThatDoNotWaitAreNoFigure(t *testing.T) {
	t.Parallel()
	base, _ := fakeNode(t, false)
	node, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	hasty := httputil.NewSingleHostReverseProxy(node)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/poll") {
			hasty.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	cfg := quick(t, s.URL)
	cfg.Scenarios = []string{"waiting"}
	report, err := Run(t.Context(), cfg, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err == nil || !strings.Contains(err.Error(), "did not wait") {
		t.Errorf("the report's fault is %v", err)
	}
}

func TestClaimed_FindsTheSessionAndItsLane(t *testing.T) {
	t.Parallel()
	const id = "0190e0a1-0000-7000-9000-000000000001"
	session, lane, err := claimed([]byte(`{"sessions":[{"session":{"id":"` + id + `","issueId":"i"},"issue":{"id":"i"},"laneToken":"secret","logUrl":"u"}]}`))
	if session != id || lane != "secret" || err != nil {
		t.Errorf("session %q, lane %q, %v", session, lane, err)
	}
	if _, _, err := claimed([]byte(`{"sessions":[]}`)); err == nil {
		t.Error("nothing is taken for a claim")
	}
}

func TestConfig_NamesEveryFault(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), Config{Connections: []int{0}, Scenarios: []string{"nap"}, OpenShare: 2}, io.Discard)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"no URL", "connections: 0", "workspaces: 0", "issues: 0", "waiting: 0", "duration", "open share 2", `"nap"; there are create, bulk, `, ", fair, waiting"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestCreates_WriteTheSameIssuesInEveryRun(t *testing.T) {
	t.Parallel()
	in := []workspace{{id: "a", token: "ta"}, {id: "b", token: "tb"}}
	first, again := &world{host: "host:1"}, &world{host: "host:1"}
	seen, largest := map[string]bool{}, 0
	for _, connection := range []int{3, 4, 3} { // its second load writes other issues than its first
		one, same := creates(first, in, connection), creates(again, in, connection)
		for range 200 {
			r := string(one())
			if other := string(same()); other != r {
				t.Fatalf("the second run asks %q where the first one asks %q", other, r)
			}
			_, body, _ := strings.Cut(r, "\r\n\r\n")
			var issue struct{ Title, Description string }
			if err := json.Unmarshal([]byte(body), &issue); err != nil {
				t.Fatalf("%v in %s", err, body)
			}
			if n := len(strings.Fields(issue.Title)); n < 4 || n > 12 || seen[issue.Title] {
				t.Errorf("the title %q has %d words, or is not the first", issue.Title, n)
			}
			seen[issue.Title] = true
			if n := len(strings.Fields(issue.Description)); n != 0 && n != 2000 && (n < 20 || n > 200) {
				t.Errorf("a description of %d words", n)
			}
			if strings.Contains(r, "/a/") {
				largest++
			}
		}
	}
	if largest < 320 || largest > 480 {
		t.Errorf("%d of 600 issues are the larger workspace's", largest)
	}
}

func TestTextStatistics(t *testing.T) {
	t.Parallel()
	s := textStatistics(64)
	if s.Title < 6 || s.Title > 9 || s.Description < 70 || s.Description > 110 || s.Longest != 2000 || s.Used < 10_000 || s.Bytes < 600 || s.Distinct < 45 {
		t.Error(s)
	}
}

// defaultConfig is the configuration without flags.
func defaultConfig() Config {
	return Config{
		Connections: []int{16, 64}, Workspaces: 64, Issues: 20_000,
		Warmup: time.Second, Duration: 5 * time.Second, OpenShare: 0.7, Waiting: 10_000, Dir: ".",
	}
}
