package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// parse reads a command line as main does.
func parse(t *testing.T, args ...string) (*cli, error) {
	t.Helper()
	var c cli
	parser, err := kong.New(&c, options()...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(args)
	return &c, err
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "switchyard.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFlags_CommandLineOverEnvironmentOverFile(t *testing.T) {
	file := write(t, "http: 127.0.0.1:1\nmetrics: 127.0.0.1:1\ndata: /file\nrequest-timeout: 7s\nshards: 3\n")
	t.Setenv("SWITCHYARD_METRICS", "127.0.0.1:2")
	t.Setenv("SWITCHYARD_DATA", "/env")
	c, err := parse(t, "--config", file, "serve", "--data", "/flag")
	if err != nil {
		t.Fatal(err)
	}
	if c.Serve.HTTP != "127.0.0.1:1" || c.Serve.Metrics != "127.0.0.1:2" || c.Serve.Data != "/flag" || c.Serve.RequestTimeout != 7*time.Second || c.Serve.Shards != 3 {
		t.Errorf("got %+v", c.Serve)
	}
}

// Commands are run in the environment and with the file of a node: a value that is meant for a flag of one command
// must not stop another command.
func TestFlags_OneVariableIsOfOneType(t *testing.T) {
	t.Parallel()
	var c cli
	parser, err := kong.New(&c, options()...)
	if err != nil {
		t.Fatal(err)
	}
	type use struct{ path, kind string }
	variables, keys := map[string]use{}, map[string]use{}
	note := func(of map[string]use, name string, here use) {
		if first, there := of[name]; there && first.kind != here.kind {
			t.Errorf("%s sets %s (%s) and %s (%s)", name, first.path, first.kind, here.path, here.kind)
			return
		}
		of[name] = here
	}
	var path []string
	err = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		switch node := node.(type) {
		case *kong.Node:
			path = append(path, node.Name)
			defer func() { path = path[:len(path)-1] }()
		case *kong.Flag:
			here := use{strings.Join(path, " ") + " --" + node.Name, node.Target.Type().String()}
			if node.Tag.Sep == -1 { // a variable has one value of the list, as it is
				here.kind = node.Target.Type().Elem().String()
			}
			for _, variable := range node.Envs {
				note(variables, variable, here)
			}
			if !commandLineOnly(node) {
				note(keys, "the key "+node.Name, here)
			}
		}
		return next(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(variables) < 50 || len(keys) < 50 {
		t.Errorf("only %d variables and %d keys were looked at", len(variables), len(keys))
	}
}

// A node's file and variables say how many shards it has, and leave the view of the cluster alone.
func TestFlags_StatusBesideANodesShards(t *testing.T) {
	t.Setenv("SWITCHYARD_SHARDS", "64")
	t.Setenv("SWITCHYARD_JSON", "report.json")
	file := write(t, "shards: 64\njson: report.json\n")
	c, err := parse(t, "--config", file, "cluster", "status")
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Cluster.Status; s.Shards || s.JSON {
		t.Errorf("got %+v", s)
	}
	if c, err = parse(t, "--config", file, "cluster", "status", "--shards", "--json"); err != nil || !c.Cluster.Status.Shards || !c.Cluster.Status.JSON {
		t.Errorf("got %+v, %v", c.Cluster.Status, err)
	}
	if _, err = parse(t, "--config", write(t, "nodes: 3\n"), "bench"); err == nil || !strings.Contains(err.Error(), `"nodes"`) {
		t.Errorf("a key for the command line alone: %v", err)
	}
}

func TestFlags_Defaults(t *testing.T) {
	c, err := parse(t, "serve")
	if err != nil {
		t.Fatal(err)
	}
	if c.Serve.HTTP != "127.0.0.1:8080" || c.Serve.Metrics != "127.0.0.1:9090" || c.Serve.Data != "./data" || c.Serve.Onboarding != "open" || c.Serve.RequestTimeout != 10*time.Second {
		t.Errorf("got %+v", c.Serve)
	}
}

// The help of a flag shows its default.
func TestFlags_HelpHasDefaults(t *testing.T) {
	t.Parallel()
	var c cli
	parser, err := kong.New(&c, options()...)
	if err != nil {
		t.Fatal(err)
	}
	err = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && flag.HasDefault && !flag.IsBool() && !strings.Contains(flag.String()+flag.Help, flag.Default) {
			t.Errorf("%s has the default %s: %s", flag, flag.Default, flag.Help)
		}
		return next(nil)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A shell that has the address of a service and of its nodes, as the documents for operators and agents have
// it set, does not make a bench load that service, and runs a local cluster.
func TestFlags_BenchTakesNoAddressFromTheEnvironment(t *testing.T) {
	t.Setenv("SWITCHYARD_URL", "http://10.0.0.1:8080")
	t.Setenv("SWITCHYARD_NODES", "http://10.0.0.1:8080,http://10.0.0.2:8080")
	t.Setenv("SWITCHYARD_METRICS_URL", "http://10.0.0.1:9090/metrics")
	for _, args := range [][]string{{"bench"}, {"bench", "--duration", "1s"}, {"bench", "run"}, {"bench", "scale"}, {"bench", "failover"}} {
		c, err := parse(t, args...)
		if err != nil {
			t.Errorf("%q: %v", args, err)
			continue
		}
		if b := c.Bench; b.Run.URL != "" || len(b.Run.Nodes) > 0 || b.Run.MetricsURL != "" || len(b.Scale.Nodes) != 4 || b.Failover.Nodes != 3 {
			t.Errorf("%q: %+v", args, b)
		}
	}
	if c, err := parse(t, "local-cluster"); err != nil || c.LocalCluster.Nodes != 3 {
		t.Errorf("%+v, %v", c.LocalCluster, err)
	}
	c, err := parse(t, "bench", "--url", "http://127.0.0.1:1")
	if err != nil || c.Bench.Run.URL != "http://127.0.0.1:1" {
		t.Errorf("%+v, %v", c.Bench.Run, err)
	}
	if c, err = parse(t, "cluster", "status"); err != nil || c.Cluster.Status.URL != "http://10.0.0.1:8080" {
		t.Errorf("%+v, %v", c.Cluster.Status, err)
	}
}

// The workspace of an agent, which docs/agents.md has in the environment, does not make an import fill it.
func TestFlags_ImportTakesNoWorkspaceFromTheEnvironment(t *testing.T) {
	t.Setenv("SWITCHYARD_WORKSPACE", "01999999-0000-7000-8000-000000000000")
	c, err := parse(t, "workspace", "import", "acme.ndjson")
	if err != nil || c.Workspace.Import.Workspace != "" {
		t.Errorf("%+v, %v", c.Workspace.Import, err)
	}
}

func TestFlags_OfTheCluster(t *testing.T) {
	file := write(t, "join: [10.0.0.1, 'node-2:7000']\nbootstrap-expect: 3\nzone: file\ninsecure-cluster: true\npeer: ''\n")
	t.Setenv("SWITCHYARD_GOSSIP_KEY", "from-the-environment")
	t.Setenv("SWITCHYARD_ZONE", "env")
	c, err := parse(t, "--config", file, "serve")
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Serve; !slices.Equal(s.Join, []string{"10.0.0.1", "node-2:7000"}) || s.BootstrapExpect != 3 || s.Zone != "env" || !s.InsecureCluster || s.Peer != "" ||
		s.Gossip != "" || s.ReplaceAfter != 5*time.Minute || s.CompareEvery != 24*time.Hour || s.GossipKey != "from-the-environment" {
		t.Errorf("got %+v", s)
	}
	if c, err = parse(t, "serve", "--join", "a,b:1", "--join=c", "--peer=", "--gossip="); err != nil {
		t.Fatal(err)
	}
	if s := c.Serve; !slices.Equal(s.Join, []string{"a", "b:1", "c"}) || s.Peer != "" || s.Gossip != "" {
		t.Errorf("got %+v", s)
	}
	t.Setenv("SWITCHYARD_JOIN", "x,y")
	if c, err = parse(t, "serve"); err != nil || !slices.Equal(c.Serve.Join, []string{"x", "y"}) || c.Serve.Peer != "" {
		t.Errorf("got %+v, %v", c.Serve, err)
	}
}

// A key without a value leaves the flag as it is without the file: a secret would be the text of no value.
func TestFlags_NoValueInTheFile(t *testing.T) {
	c, err := parse(t, "--config", write(t, "vcs1-secret:\nsms-secret: null\npublic-url: ~\nrequest-timeout:\njoin:\n"), "serve")
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Serve; s.VCSSecret != "" || s.SMSSecret != "" || s.PublicURL != "" || s.RequestTimeout != 10*time.Second || len(s.Join) > 0 {
		t.Errorf("got %+v", s)
	}
}

// A value of the file is the text that the file has. As a number a secret or a name would be another text.
func TestFlags_TextsOfTheFile(t *testing.T) {
	file := write(t, "vcs1-secret: 01234567890123456789\nsms-secret: 1e5\nnode-name: 007\nzone: 2026-11-29\nbackup-s3-region: &same 0x10\n"+
		"oidc-client-id: *same\njoin: [010, *same]\nshards: 12\ntrace-ratio: .5\npprof: True\nmemory: 1073741824\n")
	c, err := parse(t, "--config", file, "serve")
	if err != nil {
		t.Fatal(err)
	}
	s := c.Serve
	if got := []string{s.VCSSecret, s.SMSSecret, s.NodeName, s.Zone, s.BackupS3Region, s.OIDCClientID}; !slices.Equal(got, []string{"01234567890123456789", "1e5", "007", "2026-11-29", "0x10", "0x10"}) {
		t.Errorf("got %q", got)
	}
	if !slices.Equal(s.Join, []string{"010", "0x10"}) || s.Shards != 12 || s.TraceRatio != .5 || !s.Pprof || s.Memory != 1<<30 {
		t.Errorf("got %+v", s)
	}
}

// Service managers and containers pass on variables that are set to nothing. They hide neither the file nor the
// defaults.
func TestFlags_EmptyVariables(t *testing.T) {
	for _, name := range []string{"HTTP", "TLS_CERT", "TLS_KEY", "VCS1_SECRET", "LIMIT_ISSUES", "ONBOARDING", "REQUEST_TIMEOUT", "METRICS", "CONFIG"} {
		t.Setenv("SWITCHYARD_"+name, "")
	}
	c, err := parse(t, "serve")
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Serve; s.HTTP != "127.0.0.1:8080" || s.Onboarding != "open" || s.RequestTimeout != 10*time.Second || s.Metrics != "127.0.0.1:9090" {
		t.Errorf("got %+v", s)
	}
	file := write(t, "http: 127.0.0.1:1\ntls-cert: a\ntls-key: b\nvcs1-secret: c\nlimit-issues: 10\nonboarding: root\nmetrics: ''\n")
	if c, err = parse(t, "--config", file, "serve"); err != nil {
		t.Fatal(err)
	}
	if s := c.Serve; s.HTTP != "127.0.0.1:1" || s.TLSCert != "a" || s.TLSKey != "b" || s.VCSSecret != "c" || s.LimitIssues != 10 || s.Onboarding != "root" || s.Metrics != "" {
		t.Errorf("got %+v", s)
	}
}

func TestFlags_MistakesInTheFileAreTold(t *testing.T) {
	for text, want := range map[string]string{
		"htpp: x\n":          `no flag is called "htpp"`,
		"- http\n":           "read the configuration file",
		"onboarding: some":   "onboarding",
		"request-timeout: 5": "request-timeout",
		"http: {port: 1}":    "--http",
		"join: [[a], b]":     "one value, or a list of values",
		"join: [a, ~]":       "one value, or a list of values",
	} {
		if _, err := parse(t, "--config", write(t, text), "serve"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestRootToken(t *testing.T) {
	t.Setenv("SWITCHYARD_ROOT_TOKEN", "from-the-environment")
	if got, err := rootToken(""); err != nil || got != "from-the-environment" {
		t.Errorf("%q, %v", got, err)
	}
	t.Setenv("SWITCHYARD_ROOT_TOKEN", "from-a-secret\n")
	if got, err := rootToken(""); err != nil || got != "from-a-secret" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := rootToken(write(t, "  from-a-file\n")); err != nil || got != "from-a-file" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := rootToken(write(t, " \n")); err == nil {
		t.Error("an empty file was taken")
	}
	if _, err := rootToken(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file was taken")
	}
}

// To the node 0 is the default. An operator may mean by it that something is kept for ever, or never happens.
func TestServe_RefusesZeros(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{
		"--audit-retention", "--sweep-interval", "--stall-after", "--lane-life", "--replace-after", "--console-session", "--max-active-children",
		"--inbound-routes-per-workspace", "--inbound-claims-per-key", "--webhooks-per-host", "--webhooks-max-data",
	} {
		c, err := parse(t, "serve", flag+"=0", "--rate-limit=wrong")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Serve.Run(); err == nil || !strings.HasPrefix(err.Error(), flag+" 0: must be more") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// Flags about a bucket do nothing where backups go to none.
func TestServe_RefusesTheServiceOfNoBucket(t *testing.T) {
	t.Setenv("SWITCHYARD_ROOT_TOKEN", "the-operators-token")
	t.Setenv("AWS_ENDPOINT_URL_S3", "https://s3.example") // for other programs
	for _, row := range []struct {
		flags   []string
		refused bool
	}{
		{[]string{"--backup-s3-endpoint=https://s3.example"}, true},
		{[]string{"--backup-s3-region=eu-1"}, true},
		{[]string{"--backup-s3-endpoint=https://s3.example", "--backup-to=/backups"}, true},
		{[]string{"--backup-s3-region=eu-1", "--backup-to=s3://bucket/p"}, false},
		{nil, false},
	} {
		c, err := parse(t, append([]string{"serve"}, row.flags...)...)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Serve.nodeConfig(slog.New(slog.DiscardHandler))
		if refused := err != nil && strings.Contains(err.Error(), "need a bucket in --backup-to"); refused != row.refused {
			t.Errorf("%v: %v", row.flags, err)
		}
	}
}
