package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The Helm chart is rendered in deploy/check, a module of its own. What it renders is in that
// module's testdata, and its commands are read here as the program reads them.

// rendered is what the tests look at of an object of the chart.
type rendered struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Containers  []container
		Template    podTemplate
		JobTemplate struct {
			Spec struct{ Template podTemplate }
		} `yaml:"jobTemplate"`
	}
}

type podTemplate struct {
	Spec struct{ Containers []container }
}

// renderings returns the objects that have containers, by the set of values.
func renderings(t *testing.T) map[string][]rendered {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "deploy", "check", "testdata", "*.golden.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d rendered sets of values, %v", len(files), err)
	}
	all := map[string][]rendered{}
	for _, file := range files {
		in, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		d := yaml.NewDecoder(in)
		for {
			var o rendered
			err := d.Decode(&o)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			o.Spec.Containers = slices.Concat(o.Spec.Containers, o.Spec.Template.Spec.Containers, o.Spec.JobTemplate.Spec.Template.Spec.Containers)
			if len(o.Spec.Containers) > 0 {
				name := strings.TrimSuffix(filepath.Base(file), ".golden.yaml")
				all[name] = append(all[name], o)
			}
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestDeploy_ChartCommandsAreOurs reads every command that the chart renders as main does.
func TestDeploy_ChartCommandsAreOurs(t *testing.T) {
	t.Parallel()
	known := variables(t)
	ran := map[string]int{}
	for set, all := range renderings(t) {
		for _, o := range all {
			for _, c := range o.Spec.Containers {
				args := slices.Clone(c.Args)
				for i := range args {
					args[i] = strings.NewReplacer("$(POD_NAME)", "switchyard-0", "$(POD_IP)", "10.0.0.1").Replace(args[i])
				}
				parsed, err := parse(t, args...)
				if err != nil {
					t.Errorf("%s: %s/%s: %v", set, o.Kind, o.Metadata.Name, err)
					continue
				}
				ran[strings.Join(args[:min(2, len(args))], " ")]++
				var url string
				for _, v := range c.Env {
					if v.Name == "SWITCHYARD_URL" {
						url = v.Value // for commands that are run in the pod
					} else if strings.HasPrefix(v.Name, "SWITCHYARD_") && !known[v.Name] {
						t.Errorf("%s: %s/%s: serve knows no %s", set, o.Kind, o.Metadata.Name, v.Name)
					}
				}
				if o.Kind == "StatefulSet" {
					if https := strings.HasPrefix(url, "https://"); https != (parsed.Serve.TLSCert != "") {
						t.Errorf("%s: commands in the pod use the URL %q, and the node has the certificate %q", set, url, parsed.Serve.TLSCert)
					}
					checkProbes(t, set, c)
					if parsed.Serve.NodeName != "switchyard-0" || parsed.Serve.Data == "./data" || (len(parsed.Serve.Join) != 1) != (set == "single") {
						t.Errorf("%s: the node has the flags %+v", set, parsed.Serve)
					}
				}
			}
		}
	}
	for _, command := range []string{"serve --data=/data/switchyard", "backup --to=s3://backups", "backup --to=/backups/switchyard", "backup drill", "cluster status"} {
		if ran[command] == 0 {
			t.Errorf("no set of values renders %q; there are %v", command, ran)
		}
	}
}

func checkProbes(t *testing.T, set string, c container) {
	t.Helper()
	for _, p := range []struct {
		probe
		path string
	}{{c.ReadinessProbe, "/readyz"}, {c.LivenessProbe, "/healthz"}, {c.StartupProbe, "/healthz"}} {
		if p.HTTPGet.Path != p.path || p.HTTPGet.Port != "http" {
			t.Errorf("%s: probe %+v, want %s", set, p.HTTPGet, p.path)
		}
	}
}

// TestDeploy_ChartValuesReachTheNode looks at flags whose values come from several kinds of YAML.
func TestDeploy_ChartValuesReachTheNode(t *testing.T) {
	t.Parallel()
	for _, o := range renderings(t)["bucket"] {
		if o.Kind != "StatefulSet" {
			continue
		}
		got, err := parse(t, o.Spec.Containers[0].Args...)
		if err != nil {
			t.Fatal(err)
		}
		s := got.Serve
		if s.MaxConnections != 1000000 || s.Console || s.LimitBytes == nil || *s.LimitBytes != 5<<30 ||
			!slices.Equal(s.CORSOrigins, []string{"https://app.example", "https://www.app.example"}) ||
			!slices.Equal(s.TrustedProxies, []string{"10.244.0.0/16", "fd00::/8"}) ||
			s.BackupTo != "s3://backups/switchyard" || s.BackupS3Endpoint != "https://s3.example:9000" || s.BackupKeep != 28 || s.BackupKeyFile == "" {
			t.Errorf("the node has the flags %+v", s)
		}
		return
	}
	t.Fatal("no StatefulSet")
}

// TestDeploy_ChartRefusesItsOwnFlags: flags that the chart sets, or that would show a secret, can't
// be given twice. The schema of the values names them.
func TestDeploy_ChartRefusesItsOwnFlags(t *testing.T) {
	t.Parallel()
	var schema struct {
		Properties struct {
			Flags struct {
				PropertyNames struct {
					Not struct{ Enum []string }
				} `json:"propertyNames"`
			}
		}
	}
	if err := json.Unmarshal([]byte(deployed(t, "helm/switchyard/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	refused := schema.Properties.Flags.PropertyNames.Not.Enum
	flags := map[string]bool{}
	for variable := range variables(t) {
		flags[strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(variable, "SWITCHYARD_"), "_", "-"))] = true
	}
	for _, name := range refused {
		if !flags[name] {
			t.Errorf("the schema refuses %q, which is no flag of serve", name)
		}
	}
	for set, all := range renderings(t) {
		for _, o := range all {
			if o.Kind != "StatefulSet" || set == "bucket" { // that set has flags of its own
				continue
			}
			for _, arg := range o.Spec.Containers[0].Args[1:] {
				name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
				if !slices.Contains(refused, name) {
					t.Errorf("%s: the chart sets --%s, and the schema lets flags set it again", set, name)
				}
			}
		}
	}
}
