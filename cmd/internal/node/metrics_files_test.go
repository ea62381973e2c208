package node

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"
)

// description matches the text that the library makes of a metric's description.
var description = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: ".*", constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}\}$`)

// metricsOf returns what a node has. The descriptions have labels that no sample has had yet, and
// the samples have the kinds. A metric without a sample is a counter if its name ends in _total,
// and a gauge elsewhere: the age of the newest backup is not known at first.
func metricsOf(t *testing.T, n *Node) catalog {
	t.Helper()
	all := catalog{}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		n.registry.Describe(descriptions)
	}()
	for d := range descriptions {
		found := description.FindStringSubmatch(d.String())
		if found == nil {
			t.Errorf("%s is not as the library wrote descriptions", d)
			continue
		}
		m := all[found[1]]
		for label := range strings.SplitSeq(found[2]+","+found[3], ",") {
			if name, _, _ := strings.Cut(label, "="); name != "" {
				m.labels = append(m.labels, strings.TrimSpace(name))
			}
		}
		if m.kind = "gauge"; strings.HasSuffix(found[1], "_total") {
			m.kind = "counter"
		}
		all[found[1]] = m
	}
	families, err := n.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		m := all[family.GetName()]
		m.kind = strings.ToLower(family.GetType().String())
		all[family.GetName()] = m
	}
	return all
}

// read returns a file of the repository.
func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// query is a query of a file, with the place that has it.
type query struct{ place, text string }

// dashboardQueries returns the queries of the dashboard, its variables included.
func dashboardQueries(t *testing.T) (all []query) {
	t.Helper()
	type panel struct {
		Title   string
		Type    string
		Targets []struct{ Expr string }
		Panels  []panel
	}
	var dashboard struct {
		Panels     []panel
		Templating struct {
			List []struct {
				Name  string
				Query json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(read(t, "deploy/grafana/switchyard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, v := range dashboard.Templating.List {
		for _, found := range regexp.MustCompile(`label_values\((.*), \w+\)`).FindAllStringSubmatch(string(v.Query), -1) {
			all = append(all, query{"variable " + v.Name, strings.ReplaceAll(found[1], `\"`, `"`)})
		}
	}
	for _, p := range dashboard.Panels {
		if len(p.Panels) > 0 {
			t.Errorf("%s: a row that is folded hides its panels from this test", p.Title)
		}
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			all = append(all, query{p.Title, target.Expr})
		}
	}
	return all
}

// alertQueries returns the queries of the alerts.
func alertQueries(t *testing.T) (all []query) {
	t.Helper()
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(read(t, "deploy/prometheus/alerts.yaml"), &rules); err != nil {
		t.Fatal(err)
	}
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			all = append(all, query{rule.Alert, rule.Expr})
		}
	}
	return all
}

// TestMetrics_FilesAndDocsNameThoseThatExist holds the dashboard, the alerts and the documents
// against the metrics of a node: names, labels, kinds.
func TestMetrics_FilesAndDocsNameThoseThatExist(t *testing.T) {
	t.Parallel()
	n := started(t, func(c *Config) {
		c.HTTP, c.RootToken = "127.0.0.1:0", "an operator's token of the test"
		c.Backups.To = filepath.Join(t.TempDir(), "backups")
		c.TraceEndpoint, c.TraceRatio = "http://127.0.0.1:9", 0.001 // nothing listens there
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+n.HTTPAddr()+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req) // so that there is a sample of the requests' times
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Fatal(err)
	}
	all := metricsOf(t, n)
	for file, queries := range map[string][]query{"deploy/grafana/switchyard.json": dashboardQueries(t), "deploy/prometheus/alerts.yaml": alertQueries(t)} {
		if len(queries) < 20 {
			t.Errorf("%s: %d queries", file, len(queries))
		}
		for _, q := range queries {
			for _, fault := range all.faults(q.text) {
				t.Errorf("%s: %s: %s", file, q.place, fault)
			}
		}
	}
	checkDocuments(t, all)
}

// checkDocuments checks the names of metrics, and the labels in braces behind them, in every document.
func checkDocuments(t *testing.T, all catalog) {
	t.Helper()
	files, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	named := regexp.MustCompile(`\b((?:switchyard|go|process)_[a-z_]*[a-z])(\{[^{}]*\})?`)
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range named.FindAllStringSubmatch(string(text), -1) {
			m, ok := all[found[1]]
			if !ok {
				t.Errorf("%s: no node has the metric %s", file, found[1])
				continue
			}
			seen++
			for _, match := range matcher.FindAllStringSubmatch(found[2], -1) {
				if !strings.Contains(","+strings.Join(m.labels, ",")+",", ","+match[1]+",") {
					t.Errorf("%s: %s has no label %s", file, found[1], match[1])
				}
			}
		}
	}
	if seen < len(all)/2 {
		t.Errorf("the documents name %d metrics, and there are %d", seen, len(all))
	}
}
