package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// The files of deploy/ name flags, variables, ports and each other. Nothing else
// would notice that one of them is gone.

func deployed(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// variables are the environment variables of serve.
func variables(t *testing.T) map[string]bool {
	t.Helper()
	parser, err := kong.New(&cli{}, options()...)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"SWITCHYARD_ROOT_TOKEN": true}
	for _, command := range parser.Model.Children {
		if command.Name == "serve" {
			for _, flag := range command.Flags {
				for _, env := range flag.Envs {
					known[env] = true
				}
			}
		}
	}
	return known
}

func TestDocs_NameFlagsThatExist(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&cli{}, options()...)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	err = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			known["--"+flag.Name] = true
		}
		return next(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{
		"README.md", "docs/tour.md", "docs/operations.md", "docs/install.md", "docs/harden.md", "docs/watch.md", "docs/upgrade.md", "docs/move.md", "docs/majority.md",
		"docs/backup.md", "docs/decisions.md", "docs/inbound.md", "docs/performance.md", "docs/deploy.md",
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		// Flags of other programs are on lines that begin with their names.
		text = regexp.MustCompile(`(?m)^(helm|systemd-analyze|promtool|curl) .*$`).ReplaceAll(text, nil)
		for _, name := range regexp.MustCompile(`--[a-z][a-z0-9-]*[a-z0-9]`).FindAllString(string(text), -1) {
			if !known[name] {
				t.Errorf("%s: there is no flag %s", file, name)
			}
		}
	}
}

// TestReadme_NamesEveryCommand looks for each command in the table of README.md.
func TestReadme_NamesEveryCommand(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&cli{}, options()...)
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range parser.Model.Children {
		if !command.Hidden && !strings.Contains(string(readme), "\n| `switchyard "+command.Name+"` |") {
			t.Errorf("README.md lacks switchyard %s", command.Name)
		}
	}
}

func TestDeploy_SystemdUnit(t *testing.T) {
	t.Parallel()
	unit := deployed(t, "switchyard.service")
	var started bool
	for line := range strings.Lines(unit) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStart="); ok {
			started = true
			if _, err := parse(t, strings.Fields(command)[1:]...); err != nil {
				t.Error(err)
			}
		}
	}
	if !started {
		t.Error("starts nothing")
	}
	// The files that its first lines install are here.
	for _, installed := range regexp.MustCompile(`(?m)^#   install .* deploy/(\S+) /`).FindAllStringSubmatch(unit, -1) {
		deployed(t, installed[1])
	}
	known := variables(t)
	for line := range strings.Lines(deployed(t, "switchyard.env")) {
		name, value, set := strings.Cut(strings.TrimSpace(line), "=")
		if set && !strings.HasPrefix(name, "#") && !known[name] {
			t.Errorf("switchyard.env: serve knows no %s", name)
		}
		if strings.HasPrefix(value, "/etc/") && !regexp.MustCompile(`(?m)^#   install -m 0640 -g switchyard \S+ `+regexp.QuoteMeta(value)+`$`).MatchString(unit) {
			t.Errorf("the unit does not say how its user can read %s", value)
		}
	}
}

func TestDeploy_Dockerfile(t *testing.T) {
	t.Parallel()
	var started bool
	for line := range strings.Lines(deployed(t, "Dockerfile")) {
		if command, ok := strings.CutPrefix(line, "CMD "); ok {
			started = true
			var args []string
			if err := json.Unmarshal([]byte(command), &args); err != nil {
				t.Fatal(err)
			}
			if _, err := parse(t, args...); err != nil {
				t.Error(err)
			}
		}
	}
	if !started {
		t.Error("starts nothing")
	}
}

// object is what the test looks at of a Kubernetes object.
type object struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		ServiceName string `yaml:"serviceName"`
		Selector    any
		PodSelector any `yaml:"podSelector"`
		Ports       []struct {
			Name       string
			TargetPort string `yaml:"targetPort"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct{ Containers []container }
		}
		VolumeClaimTemplates []struct{ Metadata struct{ Name string } } `yaml:"volumeClaimTemplates"`
	}
}

type container struct {
	Args []string
	Env  []struct {
		Name  string
		Value string
	}
	Ports          []struct{ Name string }
	ReadinessProbe probe `yaml:"readinessProbe"`
	LivenessProbe  probe `yaml:"livenessProbe"`
	StartupProbe   probe `yaml:"startupProbe"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

func kubernetes(t *testing.T) map[string]object {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(deployed(t, "kubernetes.yaml")))
	all := map[string]object{}
	for {
		var o object
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all[o.Kind+"/"+o.Metadata.Name] = o
	}
}

func TestDeploy_Kubernetes(t *testing.T) {
	t.Parallel()
	all := kubernetes(t)
	set, ok := all["StatefulSet/switchyard"]
	if !ok || len(set.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("no StatefulSet with a container: %v", all)
	}
	c := set.Spec.Template.Spec.Containers[0]
	args := slices.Clone(c.Args)
	for i := range args {
		args[i] = strings.NewReplacer("$(POD_NAME)", "switchyard-0", "$(POD_IP)", "10.0.0.1").Replace(args[i])
		if strings.Contains(args[i], "$(") {
			t.Errorf("%s: not a variable of the pod", args[i])
		}
	}
	if _, err := parse(t, args...); err != nil {
		t.Error(err)
	}
	known := variables(t)
	for _, v := range c.Env {
		if strings.HasPrefix(v.Name, "SWITCHYARD_") && !known[v.Name] {
			t.Errorf("serve knows no %s", v.Name)
		}
	}
	if _, ok := all["Service/"+set.Spec.ServiceName]; !ok {
		t.Errorf("there is no service %q", set.Spec.ServiceName)
	}
	named := func(name string) bool {
		return slices.ContainsFunc(c.Ports, func(p struct{ Name string }) bool { return p.Name == name })
	}
	for id, o := range all {
		for _, p := range o.Spec.Ports {
			if !named(p.TargetPort) {
				t.Errorf("%s: the pods have no port %q", id, p.TargetPort)
			}
		}
	}
	for _, p := range []struct {
		probe
		path string
	}{{c.ReadinessProbe, "/readyz"}, {c.LivenessProbe, "/healthz"}, {c.StartupProbe, "/healthz"}} {
		if p.HTTPGet.Path != p.path || !named(p.HTTPGet.Port) {
			t.Errorf("probe %+v, want %s", p.HTTPGet, p.path)
		}
	}
	label := set.Spec.Template.Metadata.Labels["app.kubernetes.io/name"]
	for _, id := range []string{"Service/switchyard", "Service/switchyard-peers", "PodDisruptionBudget/switchyard", "NetworkPolicy/switchyard", "StatefulSet/switchyard"} {
		o := all[id]
		text, err := yaml.Marshal([]any{o.Spec.Selector, o.Spec.PodSelector})
		if err != nil || label == "" || !strings.Contains(string(text), "app.kubernetes.io/name: "+label) {
			t.Errorf("%s does not select the pods: %s", id, text)
		}
	}
}
