package systemtest

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/bench"
)

// smallBench replaces flags of the commands of docs/performance.md, which measure for minutes. Flags that a
// command leaves at their defaults are added.
var smallBench = []string{
	"bench --duration 20s --issues 100000", "bench --scenario create,get,list --connections 2" + shortBench,
	"bench --scenario create,get --connections 16", "bench --scenario create,get --connections 2" + shortBench,
	"bench --duration 60s", "bench --scenario get,list --connections 2" + shortBench,
	"bench --dir /the/disk --duration 20s", "bench --dir /the/disk --scenario create --connections 2" + shortBench,
	"bench > ", "bench --scenario get --connections 2" + shortBench + " > ",
	"--connections 64", "--scenario get --connections 2" + shortBench,
	"bench failover", "bench failover --kills 1 --workspaces 2 --shards 2",
	"bench scale --dir", "bench scale --nodes 1,3 --share 0.2" + shortScale + " --dir",
	"bench scale --html", "bench scale --nodes 1" + shortScale + " --html",
	"bench scale --nodes 3,9 --share 0.2", "bench scale --nodes 1 --share 0.2" + shortScale,
}

const (
	shortBench = " --warmup 0s --duration 300ms --issues 60 --workspaces 3"
	shortScale = " --connections 2 --shards 4 --warmup 0s --duration 200ms"
)

// benchCommands returns the commands of docs/performance.md in their order, those in its text included, in a
// small form. chosen chooses some of them.
func benchCommands(t *testing.T, chosen func(command string) bool) (commands []string) {
	t.Helper()
	small := strings.NewReplacer(smallBench...)
	for _, found := range regexp.MustCompile("(?m)^((?:sudo )?switchyard .*)$|`((?:sudo )?switchyard bench [^`]*(?:--|>)[^`]*)`").FindAllStringSubmatch(readPage(t, "docs/performance.md"), -1) {
		command := found[1] + found[2]
		if !chosen(command) {
			continue
		}
		shorter := small.Replace(command)
		if shorter == command && !strings.HasPrefix(command, "switchyard bench compare ") {
			t.Errorf("smallBench has nothing for %s", command)
			continue
		}
		commands = append(commands, shorter)
	}
	if len(commands) == 0 {
		t.Error("the page has no commands")
	}
	return commands
}

func isFailover(command string) bool { return strings.Contains(command, " bench failover") }
func isScale(command string) bool    { return strings.Contains(command, " bench scale") }

// TestPerformancePage runs the commands of docs/performance.md that measure a node, and looks at the reports
// that they write.
func TestPerformancePage(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 5*time.Minute)
	defer cancel()
	m := newMachines(ctx, t)
	const operator, node = "operator", "node-1"
	m.sh(node, "switchyard serve --data data")
	m.say = []string{"/the/disk", m.dir(operator), "http://any-node:8080", "http://" + m.address(node) + ":8080"}
	compared := ""
	for _, command := range benchCommands(t, func(command string) bool { return !isFailover(command) && !isScale(command) }) {
		out := m.sh(operator, command)
		if strings.Contains(command, " compare ") {
			compared = out
		}
		m.reports(operator, command, func(r *bench.Report) bool { return len(r.Results) > 0 })
	}
	// Each measurement of the first report is in the comparison.
	file, err := os.Open(m.dir(operator, "before.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	before, err := bench.ReadReport(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := range before.Results {
		if name := before.Results[i].Scenario; !strings.Contains(compared, name) {
			t.Errorf("the comparison does not have %s:\n%s", name, compared)
		}
	}
	if text, err := os.ReadFile(m.dir(operator, "figures.txt")); err != nil || !bytes.Contains(text, []byte("of its limit")) {
		t.Errorf("figures.txt: %v\n%s", err, text)
	}
}

// TestPerformancePage_Failover runs the commands of docs/performance.md that kill nodes.
func TestPerformancePage_Failover(t *testing.T) {
	t.Parallel()
	ctx, cancel := limited(t, 5*time.Minute)
	defer cancel()
	m := newMachines(ctx, t)
	for _, command := range benchCommands(t, isFailover) {
		m.sh("operator", command)
		m.reports("operator", command, func(r *bench.Report) bool { return len(r.Figures) == 4 })
	}
}

// unmeasurable matches what `bench scale` says where nodes can't be held to a share of a core.
var unmeasurable = regexp.MustCompile(`bench: .*(run it as root|mounts of this machine can't be read|none are mounted|no controller cpu|must be writable|has processes of its own|CONFIG_CFS_BANDWIDTH)`)

// TestPerformancePage_Scale runs the commands of docs/performance.md that need root and cgroups. Without these
// each says what is missing.
func TestPerformancePage_Scale(t *testing.T) {
	t.Parallel()
	for _, command := range benchCommands(t, isScale) {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := limited(t, 5*time.Minute)
			defer cancel()
			m := newMachines(ctx, t)
			const operator = "operator"
			m.say = []string{"/the/disk", m.dir(operator)}
			out, err := m.try(operator, command)
			if err != nil && unmeasurable.MatchString(out) {
				t.Skip(out)
			}
			if err != nil {
				t.Fatal(err)
			}
			// The rates, their growth, and the processor time of a request.
			for _, want := range []string{"rate/s", "us of nodes each", "of the cap"} {
				if !strings.Contains(out, want) {
					t.Errorf("%s does not print %q:\n%s", command, want, out)
				}
			}
			m.reports(operator, command, func(r *bench.Report) bool { return r.Scale != nil && len(r.Scale.Sizes) > 0 })
		})
	}
}

// reports looks at the files that a command of bench has written on a machine. The data of the run is removed.
func (m *machines) reports(machine, command string, complete func(*bench.Report) bool) {
	m.t.Helper()
	words := strings.Fields(command)
	if at := slices.Index(words, "--json"); at > 0 {
		file, err := os.Open(m.dir(machine, words[at+1]))
		if err != nil {
			m.t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		report, err := bench.ReadReport(file)
		if err != nil {
			m.t.Fatal(err)
		}
		if !complete(report) || report.Err() != nil {
			m.t.Errorf("%s: %v, %+v", command, report.Err(), report)
		}
	}
	if at := slices.Index(words, "--html"); at > 0 {
		page, err := os.ReadFile(m.dir(machine, words[at+1]))
		if err != nil {
			m.t.Fatal(err)
		}
		// Tables and plots in one page, which needs no network and no scripts.
		if !bytes.Contains(page, []byte("<table")) || !bytes.Contains(page, []byte("<svg")) || regexp.MustCompile(`<script|<link|(?:src|href)="?http`).Match(page) {
			m.t.Errorf("%s: %s", command, page)
		}
	}
	if left, err := filepath.Glob(m.dir(machine, ".switchyard-bench-*")); err != nil || len(left) > 0 {
		m.t.Errorf("%s leaves %q, %v", command, left, err)
	}
}
