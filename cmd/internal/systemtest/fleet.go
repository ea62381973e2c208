package systemtest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Fleet is a cluster of real processes. Each node has loopback addresses of its
// own, so that fleets never meet: the API, the gossip and the advertised peer
// address are 127.a.b.i; the node's peer port is behind a relay, whose links the
// test can cut.
type Fleet struct {
	Binary string
	Dir    string // data and logs of the nodes
	Root   string // the operator's token
	// Flags are given to every node.
	Flags []string
	// Format is the newest format to which nodes of this version agree, so that those of an older version
	// can join them; 0: the newest that there is.
	Format int

	choices *rand.Rand           // of the storm under way
	tell    func(string, ...any) // what it does
	// unreadable is set while a part of some node's state can't be read.
	unreadable atomic.Bool
	net        string // "127.a.b."
	links      *links
	members    []*Member
}

// Member is one node of a fleet.
type Member struct {
	Name string
	Data string
	URL  string // of the API

	fleet *Fleet
	n     int // from 1
	flags []string
	// older is the binary of an older version that the node runs; empty: the fleet's.
	older string

	// stalls counts pauses and their ends: odd while the process is paused.
	stalls atomic.Int64

	mu      sync.Mutex
	process *Process // nil when it does not run
	log     *os.File
}

// fleetRoot is the operator's token of fleets, and fleetKey their gossip key, where
// no flag says another one.
const (
	fleetRoot = "root-of-a-test-fleet-0123456789"
	fleetKey  = "a2V5IG9mIGEgdGVzdCBmbGVldCAwMTIzNDU2Nzg5QUI="
)

// NewFleet makes a fleet without members over a directory.
func NewFleet(binary, dir string, flags ...string) *Fleet {
	f := &Fleet{
		Binary: binary, Dir: dir, Root: fleetRoot, Flags: flags,
		net: loopbackNet(),
	}
	f.links = newLinks()
	return f
}

// address of the n-th node.
func (f *Fleet) address(n, port int) string { return fmt.Sprintf("%s%d:%d", f.net, n, port) }

// peerBehind is added to a node's number for the address its peer port listens on.
const peerBehind = 100

// Add makes the next member; with seeds it joins them. It does not start it.
func (f *Fleet) Add(name string, flags ...string) (*Member, error) {
	n := len(f.members) + 1
	m := &Member{Name: name, Data: filepath.Join(f.Dir, name), URL: "http://" + f.address(n, 8080), fleet: f, n: n, flags: flags}
	if err := f.links.relay(name, f.address(n, 7947), f.address(n+peerBehind, 7947)); err != nil {
		return nil, err
	}
	f.members = append(f.members, m)
	return m, nil
}

// Members are all nodes that were added.
func (f *Fleet) Members() []*Member { return slices.Clone(f.members) }

// alive are the members that run.
func (f *Fleet) alive() (all []*Member) {
	for _, m := range f.members {
		if _, err := m.running(); err == nil {
			all = append(all, m)
		}
	}
	return all
}

// Start launches the node; WaitReady tells when it serves.
func (m *Member) Start() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.fleet
	if m.log == nil {
		var err error
		if m.log, err = os.OpenFile(filepath.Join(f.Dir, m.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return fmt.Errorf("start %s: %w", m.Name, err)
		}
	}
	_, _ = fmt.Fprintf(m.log, "--- start at %s\n", time.Now().Format(time.RFC3339Nano))
	args := append([]string{
		"--node-name", m.Name, "--data", m.Data,
		"--http", f.address(m.n, 8080), "--metrics", f.address(m.n, 9090),
		"--gossip", f.address(m.n, 7946), "--peer", f.address(m.n+peerBehind, 7947), "--advertise", strings.TrimSuffix(f.address(m.n, 0), ":0"),
	}, f.Flags...)
	if f.Format != 0 && m.older == "" {
		args = append(args, "--max-format", strconv.Itoa(f.Format))
	}
	p, err := start(cmp.Or(m.older, f.Binary), append(args, m.flags...), []string{"SWITCHYARD_ROOT_TOKEN=" + f.Root, "SWITCHYARD_GOSSIP_KEY=" + fleetKey, "SWITCHYARD_TEST_FAULTS=" + m.machine()}, m.log)
	if err != nil {
		return fmt.Errorf("start %s: %w", m.Name, err)
	}
	p.URL = m.URL
	m.process = p
	return nil
}

// Seed is where others find the node by gossip.
func (m *Member) Seed() string { return m.fleet.address(m.n, 7946) }

// running gives the process, or an error when there is none.
func (m *Member) running() (*Process, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process == nil {
		return nil, fmt.Errorf("%s does not run", m.Name)
	}
	return m.process, nil
}

// WaitReady returns when the node says it can answer for every shard.
func (m *Member) WaitReady(ctx context.Context) error {
	p, err := m.running()
	if err != nil {
		return err
	}
	if err := p.waitReady(ctx); err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	return nil
}

// Kill is kill -9. A paused process dies too.
func (m *Member) Kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.process != nil {
		m.process.Kill()
		m.process = nil
	}
}

// Pause is SIGSTOP, and Resume SIGCONT.
func (m *Member) Pause() error {
	m.stalls.Add(1)
	return m.signal(syscall.SIGSTOP)
}

// Resume lets a paused process go on.
func (m *Member) Resume() error {
	defer m.stalls.Add(1)
	return m.signal(syscall.SIGCONT)
}

func (m *Member) signal(s syscall.Signal) error {
	p, err := m.running()
	if err != nil {
		return err
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%v to %s: %w", s, m.Name, err)
	}
	return nil
}

// Terminate stops the node gracefully.
func (m *Member) Terminate(ctx context.Context) error {
	p, err := m.running()
	if err != nil {
		return err
	}
	err = p.Terminate(ctx)
	m.mu.Lock()
	m.process = nil
	m.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", m.Name, err)
	}
	return nil
}

// Exited waits for the node to end by itself and gives what it printed.
func (m *Member) Exited(ctx context.Context) (output string, failed bool, err error) {
	p, err := m.running()
	if err != nil {
		return "", false, err
	}
	select {
	case <-p.exited:
		m.mu.Lock()
		m.process = nil
		m.mu.Unlock()
		return p.Output(), p.err != nil, nil
	case <-ctx.Done():
		return p.Output(), false, fmt.Errorf("%s still runs: %w", m.Name, ctx.Err())
	}
}

// Close kills what still runs and ends the relays.
func (f *Fleet) Close() {
	for _, m := range f.members {
		m.Kill()
		if m.log != nil {
			_ = m.log.Close()
		}
	}
	f.links.close()
}

// Client talks to one node as the holder of a token.
func (m *Member) Client(token string) *Client {
	c := NewClient(m.URL, token, 8)
	if m.fleet.Format != 0 || m.older != "" { // an older version does not answer as this version's description says
		c.HTTP.Transport = &http.Transport{MaxIdleConnsPerHost: 8, MaxIdleConns: 8}
	}
	return c
}

// ClusterView is what the tests look at of GET /cluster.
type ClusterView struct {
	ClusterID string `json:"clusterId"`
	Format    int    `json:"format"`
	Nodes     []struct {
		Name     string `json:"name"`
		State    string `json:"state"`
		Leads    int    `json:"leads"`
		Replicas int    `json:"replicas"`
	} `json:"nodes"`
	Shards []struct {
		ID        int      `json:"id"`
		Leader    string   `json:"leader"`
		Voters    []string `json:"voters"`
		NonVoters []string `json:"nonVoters"`
		Applied   uint64   `json:"applied"`
		Lag       uint64   `json:"lag"`
		Differing []string `json:"differing"`
		Failed    []struct {
			Node string `json:"node"`
		} `json:"failed"`
	} `json:"shards"`
}

// View asks the node how the cluster stands.
func (m *Member) View(ctx context.Context) (ClusterView, error) {
	var v ClusterView
	err := m.Client(m.fleet.Root).Decode(ctx, "GET", "/cluster", nil, http.StatusOK, &v)
	return v, err
}

// Owner asks the node which one owns a workspace, until there is one.
func (m *Member) Owner(ctx context.Context, workspace string) (string, error) {
	var at struct {
		Owner string `json:"owner"`
	}
	for {
		answer, err := m.Client(m.fleet.Root).Do(ctx, "GET", "/cluster/workspaces/"+workspace, nil)
		switch {
		case err != nil:
			return "", err
		case answer.Status == http.StatusOK:
			if err := json.Unmarshal(answer.Body, &at); err != nil || at.Owner != "" {
				return at.Owner, err
			}
		case answer.Status != http.StatusServiceUnavailable:
			return "", fmt.Errorf("%s: the owner of %s: %d %s", m.Name, workspace, answer.Status, answer.Body)
		}
		if !pause(ctx, 20*time.Millisecond) {
			return "", fmt.Errorf("%s: waiting for an owner of %s: %w", m.Name, workspace, ctx.Err())
		}
	}
}

// Await asks until the cluster stands as wanted, or says what it saw last.
func (m *Member) Await(ctx context.Context, what string, wanted func(ClusterView) bool) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last ClusterView
	var failure error
	for {
		v, err := m.View(ctx)
		if err == nil {
			if wanted(v) {
				return nil
			}
			last = v
		} else if ctx.Err() == nil {
			failure = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			seen, _ := json.Marshal(last)
			return errors.Join(fmt.Errorf("%s: waiting until %s: %w; last seen: %s", m.Name, what, ctx.Err(), seen), failure)
		}
	}
}

// Settled reports whether every shard is led and has this many voters, none failed or far
// behind. While there are writes, the reports of leaders and followers are not of
// one moment, so a little behind is not behind.
func Settled(voters int) func(ClusterView) bool { return settled(voters, 1000) }

// Level is Settled without writes: nobody is behind at all.
func Level(voters int) func(ClusterView) bool { return settled(voters, 0) }

// quietLooks is how many looks, 50 ms apart, Quiet asks for: 12 s, since the timer of a
// search index comes 10 s after a write.
const quietLooks = 240

// Quiet is Level for so long that what the service does by itself some time after a
// write, such as bringing a search index up to date, is over too. Each use needs its
// own.
func Quiet(voters int) func(ClusterView) bool {
	level, applied, looks := Level(voters), uint64(0), 0
	return func(v ClusterView) bool {
		sum := uint64(0)
		for _, s := range v.Shards {
			sum += s.Applied
		}
		if !level(v) || sum != applied {
			applied, looks = sum, 0
		}
		looks++
		return looks > quietLooks
	}
}

// Shared reports whether no node leads many more shards than another: leaderships stay
// where they are then, until something happens.
func Shared(v ClusterView) bool {
	least, most := len(v.Shards), 0
	for _, n := range v.Nodes {
		if n.State == "alive" {
			least, most = min(least, n.Leads), max(most, n.Leads)
		}
	}
	return most-least <= 1
}

func settled(voters int, lag uint64) func(ClusterView) bool {
	return func(v ClusterView) bool {
		for _, s := range v.Shards {
			if s.Leader == "" || len(s.Voters) != voters || len(s.NonVoters) != 0 || len(s.Failed) != 0 || s.Lag > lag {
				return false
			}
		}
		return len(v.Shards) > 0
	}
}

// Fingerprint is the sum of a replica's rows, and the entry up to which it has applied the
// log.
type Fingerprint struct{ Applied, Rows string }

// Fingerprints runs `switchyard inspect --fingerprint` over the data of a stopped node. It
// returns the fingerprints of its replicas by shard.
func Fingerprints(ctx context.Context, binary, data string) (map[int]Fingerprint, error) {
	out, err := exec.CommandContext(ctx, binary, "inspect", "--data", data, "--fingerprint").Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, fmt.Errorf("inspect: %w\n%s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("inspect: %w", err)
	}
	prints := map[int]Fingerprint{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 4 {
			continue
		}
		if shard, err := strconv.Atoi(fields[0]); err == nil { // below the table's head
			prints[shard] = Fingerprint{Applied: fields[2], Rows: fields[len(fields)-1]}
		}
	}
	if len(prints) == 0 {
		return nil, fmt.Errorf("inspect: no shard in %s", out)
	}
	return prints, nil
}

// Keep copies the nodes' logs to a directory that outlives the test.
func (f *Fleet) Keep(to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return fmt.Errorf("keep the logs: %w", err)
	}
	for _, m := range f.members {
		if err := copyFile(filepath.Join(to, m.Name+".log"), filepath.Join(f.Dir, m.Name+".log")); err != nil {
			return fmt.Errorf("keep the logs: %w", err)
		}
	}
	return nil
}

func copyFile(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
