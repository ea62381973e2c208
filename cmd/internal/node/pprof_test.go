package node

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func started(t *testing.T, change func(*Config)) *Node {
	t.Helper()
	c := sane()
	c.Data, c.Peer, c.Gossip, c.Metrics = t.TempDir(), "", "", "127.0.0.1:0"
	change(&c)
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if err := n.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

// ask gets a path of the metrics listener.
func ask(t *testing.T, n *Node, path string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+n.MetricsAddr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestPprof_OffByDefault(t *testing.T) {
	t.Parallel()
	n := started(t, func(*Config) {})
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile?seconds=1", "/debug/pprof/cmdline", "/readyz", "/metrics/more"} {
		if status, body := ask(t, n, path); status != http.StatusNotFound {
			t.Errorf("%q is %d: %.40q", path, status, body)
		}
	}
	for _, path := range []string{"/metrics", "/"} {
		if status, body := ask(t, n, path); status != http.StatusOK || !strings.Contains(body, "switchyard_disk_bytes") {
			t.Errorf("%q is %d: %.40q", path, status, body)
		}
	}
}

func TestPprof_OnMetrics(t *testing.T) {
	t.Parallel()
	n := started(t, func(c *Config) { c.Pprof = true })
	if status, body := ask(t, n, "/debug/pprof/"); status != http.StatusOK || !strings.Contains(body, "goroutine") {
		t.Errorf("the index is %d: %.40q", status, body)
	}
	if status, body := ask(t, n, "/debug/pprof/heap?debug=1"); status != http.StatusOK || !strings.HasPrefix(body, "heap profile") {
		t.Errorf("the heap is %d: %.40q", status, body)
	}
	if status, _ := ask(t, n, "/debug/pprof/cmdline"); status != http.StatusNotFound {
		t.Errorf("the command line, which may hold secrets, is %d", status)
	}
	if _, body := ask(t, n, "/metrics"); !strings.Contains(body, "switchyard_disk_bytes") {
		t.Error("there are no metrics any more")
	}
}

func TestConfig_Pprof(t *testing.T) {
	t.Parallel()
	c := sane()
	c.Pprof = true
	if err := c.validate(); err == nil || !strings.HasPrefix(err.Error(), "--pprof needs --metrics") {
		t.Errorf("without --metrics: %v", err)
	}
	warned := func() bool {
		return slices.ContainsFunc(c.Warnings(), func(s string) bool { return strings.HasPrefix(s, "--pprof") })
	}
	if c.Metrics = "127.0.0.1:9090"; c.validate() != nil || warned() {
		t.Error("refused or warned about on loopback")
	}
	if c.Metrics = "0.0.0.0:9090"; c.validate() != nil || !warned() {
		t.Error("refused, or not warned about, where others reach it")
	}
}
