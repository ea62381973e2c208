package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const someWorkspace = "0190e0a1-0000-7000-8000-000000000001"

// twoNodes is a cluster whose second node owns everything, and says so on the first
// one's answers as the given text.
func twoNodes(t *testing.T, named func(owner string) string) (urls []string, asked [2]*atomic.Int64) {
	t.Helper()
	asked = [2]*atomic.Int64{{}, {}}
	var owner string
	node := func(i int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked[i].Add(1)
			if i == 0 {
				w.Header().Set("Switchyard-Owner", named(owner))
			}
			_, _ = w.Write([]byte("{}"))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	first := node(0)
	owner = node(1)
	return []string{first, owner}, asked
}

func TestStraight_GoesToTheOwnerOnceItIsNamed(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		straight bool
		named    func(string) string
		want     [2]int64
	}{
		"straight":          {true, func(url string) string { return url }, [2]int64{1, 4}},
		"not straight":      {false, func(url string) string { return url }, [2]int64{5, 0}},
		"a stranger":        {true, func(string) string { return "http://attacker.example" }, [2]int64{5, 0}},
		"nobody":            {true, func(string) string { return "" }, [2]int64{5, 0}},
		"with another port": {true, func(url string) string { return url + "0" }, [2]int64{5, 0}},
	} {
		urls, asked := twoNodes(t, row.named)
		dial, host, err := clusterDialer(urls, row.straight, 0)
		if err != nil {
			t.Fatal(err)
		}
		d := dial()
		for range 5 {
			if status, _, err := d.do(request("GET", host, "/workspaces/"+someWorkspace+"/issues/x", "t", "")); err != nil || status != 200 {
				t.Fatalf("%s: %d, %v", name, status, err)
			}
		}
		d.close()
		if got := [2]int64{asked[0].Load(), asked[1].Load()}; got != row.want {
			t.Errorf("%s: the nodes were asked %v times, want %v", name, got, row.want)
		}
	}
}

// An owner that is gone costs the request that finds out, and no other.
func TestStraight_FallsBack(t *testing.T) {
	t.Parallel()
	urls, asked := twoNodes(t, func(url string) string { return url })
	dial, host, err := clusterDialer(urls, true, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := dial().(*straight)
	defer d.close()
	ask := request("GET", host, "/workspaces/"+someWorkspace, "t", "")
	for range 2 {
		if _, _, err := d.do(ask); err != nil {
			t.Fatal(err)
		}
	}
	d.nodes[1].close()
	d.nodes[1].addr = "127.0.0.1:1" // nobody listens there
	if _, _, err := d.do(ask); err == nil {
		t.Fatal("a node that is gone answered")
	}
	if status, _, err := d.do(ask); err != nil || status != 200 || asked[0].Load() != 2 {
		t.Errorf("%d, %v, the first node was asked %d times", status, err, asked[0].Load())
	}
}

func TestSpreadOf_WaitsForReplicasAndLeaders(t *testing.T) {
	t.Parallel()
	view := func(leads []int, voters int, leader string) []byte {
		type shard struct {
			Leader            string
			Voters, NonVoters []string
		}
		v := struct {
			Nodes  []struct{ Leads int }
			Shards []shard
		}{}
		for _, n := range leads {
			v.Nodes = append(v.Nodes, struct{ Leads int }{n})
			for range n {
				v.Shards = append(v.Shards, shard{Leader: leader, Voters: make([]string, voters)})
			}
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, row := range map[string]struct {
		body []byte
		want bool
	}{
		"spread":        {view([]int{3, 2, 2}, 3, "a"), true},
		"uneven":        {view([]int{4, 2, 1}, 3, "a"), false},
		"too few":       {view([]int{3, 2, 2}, 2, "a"), false},
		"no leader":     {view([]int{3, 2, 2}, 3, ""), false},
		"a node is out": {view([]int{3, 3}, 3, "a"), false},
	} {
		if _, got, err := spreadOf(row.body, 3); err != nil || got != row.want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
}

// A run that is interrupted does not blame the cluster.
func TestAwaitSpread_IsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"nodes":[{"leads":1}],"shards":[{}]}`))
		cancel()
	}))
	t.Cleanup(node.Close)
	if _, err := awaitSpread(ctx, &Cluster{Nodes: []*Process{{URL: node.URL}}}); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "did not spread") {
		t.Error(err)
	}
}

func TestScaleConfig_IsChecked(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*ScaleConfig){
		"nodes: 2: a cluster":          func(c *ScaleConfig) { c.Sizes = []int{1, 2, 3} },
		"nodes: 99":                    func(c *ScaleConfig) { c.Sizes = []int{99} },
		"share: 2":                     func(c *ScaleConfig) { c.Share = 2 },
		"9 nodes of 0.5 cores":         func(c *ScaleConfig) { c.Share = 0.5 },
		"connections: 0":               func(c *ScaleConfig) { c.Connections = 0 },
		"issues: 0":                    func(c *ScaleConfig) { c.Issues = 0 },
		"duration: 0s":                 func(c *ScaleConfig) { c.Duration = 0 },
		"no number of nodes":           func(c *ScaleConfig) { c.Sizes = nil },
		"share: 0.01 is not from 0.1 ": func(c *ScaleConfig) { c.Share = 0.01 },
	} {
		c := defaultScale()
		change(&c)
		if err := c.check(2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	c := defaultScale()
	if err := c.check(2); err != nil {
		t.Error(err)
	}
}

// Where cgroups can be made, a process is really put into one with its quota, and
// nothing is left of it.
func TestCaps_HoldAProcess(t *testing.T) {
	t.Parallel()
	c, err := newCaps(0.15)
	if err != nil {
		t.Skip(err)
	}
	sleeper := exec.CommandContext(t.Context(), "sleep", "60")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	if err := c.hold("one", sleeper.Process.Pid); err != nil {
		t.Error(err)
	}
	name, want := "cpu.cfs_quota_us", "1500"
	if c.v2 {
		name, want = "cpu.max", "1500 10000"
	}
	for file, want := range map[string]string{name: want, "cgroup.procs": fmt.Sprint(sleeper.Process.Pid)} {
		if got, err := os.ReadFile(filepath.Join(c.dir, "one", file)); err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s: %q, %v, want %q", file, got, err, want)
		}
	}
	if err := sleeper.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = sleeper.Wait()
	if err := c.close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(c.dir); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", c.dir, err)
	}
}

func TestRun_AsksTheOwnersOfACluster(t *testing.T) {
	t.Parallel()
	urls, asked := twoNodes(t, func(url string) string { return url })
	r := run{Config: Config{URL: urls[0] + "/", Nodes: urls}}
	dial, err := r.owners()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		d := dial()
		for range 3 {
			if _, _, err := d.do(request("GET", "x", "/workspaces/"+someWorkspace, "t", "")); err != nil {
				t.Fatal(err)
			}
		}
		d.close()
	}
	if asked[0].Load() != 2 || asked[1].Load() != 4 {
		t.Errorf("the nodes were asked %d and %d times", asked[0].Load(), asked[1].Load())
	}
	cfg := defaultConfig()
	cfg.Nodes, cfg.StartNode = urls, Binary{}.StartNode
	if err := cfg.check(); err == nil || !strings.Contains(err.Error(), "give its URL too") {
		t.Error(err)
	}
}

// defaultScale is the configuration without flags.
func defaultScale() ScaleConfig {
	return ScaleConfig{Sizes: []int{1, 3, 6, 9}, Share: 0.1, Connections: 48, Shards: 18, Issues: 32, Warmup: 2 * time.Second, Duration: 10 * time.Second, Dir: "."}
}
