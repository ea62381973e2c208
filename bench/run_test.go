package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
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
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		n := created.Load()
		_, _ = fmt.Fprintf(w, "switchyard_batch_commands_total %d\nswitchyard_batch_ops_total %d\nswitchyard_batch_bytes_total %d\n", n, n*7, n*700)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL, created
}

func quick(t *testing.T, base string) Config {
	cfg := Default()
	cfg.URL, cfg.MetricsURL, cfg.Token = base, base+"/metrics", "operator"
	cfg.Connections, cfg.Workspaces, cfg.Issues = []int{2, 3}, 3, 60
	cfg.Warmup, cfg.Duration = 0, 30*time.Millisecond
	cfg.Dir = t.TempDir()
	return cfg
}

func TestRun_MeasuresScenariosBesideTheirLimits(t *testing.T) {
	t.Parallel()
	base, _ := fakeNode(t, false)
	cfg := quick(t, base)
	cfg.OpenShare = 0.5
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
	for _, name := range append(Names(), pebbleLimit, createToDelivery) {
		found := closed
		if name == commitToDelivery.name || name == createToDelivery {
			found = opened
		}
		if found[name] != 2 {
			t.Errorf("%s was measured %d times, want once for each number of connections", name, found[name])
		}
	}
	if open != 22 || ratios != 10 {
		t.Errorf("%d open measurements, %d ratios; want 22 and 10\n%s", open, ratios, out.String())
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
	empty := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(empty.Close)
	cfg.StartEmpty = func(context.Context) (*Process, error) { return process(empty.URL), nil }
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

func TestConfig_NamesEveryFault(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), Config{Connections: []int{0}, Scenarios: []string{"nap"}, OpenShare: 2}, io.Discard)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"no URL", "connections: 0", "workspaces: 0", "issues: 0", "duration", "open share 2", `"nap"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestCreates_NumbersTheirTitles(t *testing.T) {
	t.Parallel()
	next := creates([]workspace{{id: "a", token: "ta"}, {id: "b", token: "tb"}}, "host:1", 3)
	seen := map[string]bool{}
	for i := range 4 {
		r := string(next())
		_, body, _ := strings.Cut(r, "\r\n\r\n")
		var in struct{ Title string }
		if err := json.Unmarshal([]byte(body), &in); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		if seen[in.Title] || !strings.Contains(in.Title, fmt.Sprintf("3%09d", i+1)) {
			t.Errorf("request %d has the title %q", i, in.Title)
		}
		seen[in.Title] = true
		if want := []string{"/b/", "/a/"}[i%2]; !strings.Contains(r, want) {
			t.Errorf("request %d goes to %.60q", i, r)
		}
	}
}
