package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// That the metrics of the alerts and of the dashboard exist is tested in cmd/internal/node.

// alertRule is an alert of deploy/prometheus.
type alertRule struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func alertRules(t *testing.T) (all []alertRule) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []alertRule }
	}
	d := yaml.NewDecoder(strings.NewReader(deployed(t, "prometheus/alerts.yaml")))
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// TestAlerts_SayWhatToDo: each alert has a severity, texts, and a place in the documents.
func TestAlerts_SayWhatToDo(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, rule := range alertRules(t) {
		if names[rule.Alert] || !strings.HasPrefix(rule.Alert, "Switchyard") {
			t.Errorf("the name %q is taken, or does not say whose alert it is", rule.Alert)
		}
		names[rule.Alert] = true
		if severity := rule.Labels["severity"]; severity != "page" && severity != "ticket" {
			t.Errorf("%s: severity %q", rule.Alert, severity)
		}
		for _, key := range []string{"summary", "description", "runbook"} {
			if rule.Annotations[key] == "" {
				t.Errorf("%s has no %s", rule.Alert, key)
			}
		}
		file, anchor, _ := strings.Cut(rule.Annotations["runbook"], "#")
		if !strings.HasPrefix(file, "docs/") || !headings(t, filepath.Join("..", "..", file))[anchor] {
			t.Errorf("%s: there is no %s", rule.Alert, rule.Annotations["runbook"])
		}
	}
	if len(names) < 20 {
		t.Errorf("%d alerts", len(names))
	}
}

// TestAlerts_AreTested: for each alert a test says when it fires, and when it does not.
func TestAlerts_AreTested(t *testing.T) {
	t.Parallel()
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, name := range alertTests(t) {
		var file struct {
			Tests []struct {
				Cases []struct {
					Alertname string
					Alerts    []any `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, &file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, test := range file.Tests {
			for _, c := range test.Cases {
				if len(c.Alerts) > 0 {
					fires[c.Alertname] = true
				} else {
					silent[c.Alertname] = true
				}
			}
		}
	}
	for _, rule := range alertRules(t) {
		if !fires[rule.Alert] || !silent[rule.Alert] {
			t.Errorf("%s: no test has it fire, or none has it silent", rule.Alert)
		}
		delete(fires, rule.Alert)
	}
	for name := range fires {
		t.Errorf("there is no alert %s", name)
	}
}

// notAlerted are the metrics that docs/watch.md says to watch, and of which no alert is made.
var notAlerted = map[string]string{
	"switchyard_http_bytes_in_flight": "its limit, --max-bytes-in-flight, is not a metric",
}

// TestAlerts_HaveEveryLineOfTheDocuments: each metric in the table of docs/watch.md is in the
// expression of an alert.
func TestAlerts_HaveEveryLineOfTheDocuments(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "watch.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "| watch | alert when |\n")
	if !ok {
		t.Fatal("docs/watch.md has no table of alerts")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	metric := regexp.MustCompile(`\bswitchyard_[a-z_]+`)
	alerted := map[string]bool{}
	for _, rule := range alertRules(t) {
		for _, name := range metric.FindAllString(rule.Expr, -1) {
			alerted[strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")] = true
		}
	}
	watched := map[string]bool{}
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		for _, name := range metric.FindAllString(cells[min(1, len(cells)-1)], -1) {
			watched[name] = true
		}
	}
	if len(watched) < 20 {
		t.Errorf("the table has %d metrics", len(watched))
	}
	for name := range watched {
		if alerted[name] == (notAlerted[name] != "") {
			t.Errorf("%s: alerted is %t, and the reason for no alert is %q", name, alerted[name], notAlerted[name])
		}
	}
	for name := range notAlerted {
		if !watched[name] {
			t.Errorf("docs/watch.md does not say to watch %s", name)
		}
	}
}

func alertTests(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "deploy", "prometheus", "*_test.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests of the alerts: %v", err)
	}
	return files
}

// TestAlerts_PromtoolAgrees runs the tests of the alerts, and reads the queries of the dashboard as
// Prometheus does.
func TestAlerts_PromtoolAgrees(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed; on Debian: apt-get install prometheus")
	}
	dashboard := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(dashboard, dashboardRules(t), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "rules", filepath.Join("..", "..", "deploy", "prometheus", "alerts.yaml"), dashboard},
		append([]string{"test", "rules"}, alertTests(t)...),
	} {
		if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// dashboardRules returns rules with the queries of the dashboard, since promtool reads no dashboards.
func dashboardRules(t *testing.T) []byte {
	t.Helper()
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(deployed(t, "grafana/switchyard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	type record struct {
		Record string            `yaml:"record"`
		Expr   string            `yaml:"expr"`
		Labels map[string]string `yaml:"labels"`
	}
	var records []record
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
			records = append(records, record{Record: "panel", Expr: expr, Labels: map[string]string{"query": target.Expr}})
		}
	}
	if len(records) < 20 {
		t.Fatalf("the dashboard has %d queries", len(records))
	}
	text, err := yaml.Marshal(map[string]any{"groups": []map[string]any{{"name": "dashboard", "rules": records}}})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestDashboard_PanelsHaveTheirPlaces: no two panels overlap, and the width of the page is not exceeded.
func TestDashboard_PanelsHaveTheirPlaces(t *testing.T) {
	t.Parallel()
	type panel struct {
		ID    int
		Title string
		Place struct{ X, Y, W, H int } `json:"gridPos"`
	}
	var dashboard struct {
		Panels     []panel
		Templating struct{ List []struct{ Name string } }
	}
	text := deployed(t, "grafana/switchyard.json")
	if err := json.Unmarshal([]byte(text), &dashboard); err != nil {
		t.Fatal(err)
	}
	for i, a := range dashboard.Panels {
		if p := a.Place; p.X < 0 || p.W < 1 || p.H < 1 || p.X+p.W > 24 {
			t.Errorf("%s is at %+v", a.Title, p)
		}
		for _, b := range dashboard.Panels[i+1:] {
			p, q := a.Place, b.Place
			if a.ID == b.ID || p.X < q.X+q.W && q.X < p.X+p.W && p.Y < q.Y+q.H && q.Y < p.Y+p.H {
				t.Errorf("%q and %q overlap, or have one id", a.Title, b.Title)
			}
		}
	}
	var names []string
	for _, v := range dashboard.Templating.List {
		names = append(names, v.Name)
	}
	for _, used := range regexp.MustCompile(`\$\{?([a-z_]+)`).FindAllStringSubmatch(text, -1) {
		if name := used[1]; name != "__rate_interval" && name != "__all" && !slices.Contains(names, name) {
			t.Errorf("there is no variable %s", name)
		}
	}
}
