package systemtest

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/cmd/internal/node"
)

// TestMetrics_AreListed compares /metrics of a node with the list for operators.
func TestMetrics_AreListed(t *testing.T) {
	t.Parallel()
	n := inProcess(t, func(cfg *node.Config) { cfg.Backups.To = filepath.Join(t.TempDir(), "backups") })
	listed, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+n.MetricsAddr()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		rest, ok := strings.CutPrefix(line, "# HELP switchyard_")
		if !ok {
			continue
		}
		found++
		name, _, _ := strings.Cut(rest, " ")
		if !strings.Contains(string(listed), "| `switchyard_"+name+"` |") {
			t.Errorf("docs/metrics.md does not list switchyard_%s", name)
		}
	}
	if found < 20 {
		t.Errorf("%d metrics", found)
	}
}
