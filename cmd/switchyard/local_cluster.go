package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// localClusterCmd runs several nodes on this machine, for `make cluster`: to see a
// cluster work and to break it, not to serve anybody.
type localClusterCmd struct {
	Nodes int    `env:"-" help:"Number of nodes." default:"3"`
	Data  string `help:"Directory of the nodes' state." default:"./data/cluster"`
}

func (l localClusterCmd) Run() error {
	if l.Nodes < 1 || l.Nodes > 9 {
		return fmt.Errorf("--nodes %d: must be from 1 to 9", l.Nodes)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	ctx, cancel := interruptible()
	defer cancel()
	go func() { <-ctx.Done(); cancel() }() // a second signal ends this program at once
	return (&localCluster{program: self, dir: l.Data, nodes: l.Nodes, out: os.Stdout, address: localAddress}).run(ctx)
}

// localAddress gives the ports of the nodes; those of a node with defaults stay
// free beside them.
func localAddress(flag string, node int) string {
	first := map[string]int{"http": 8080, "metrics": 9090, "peer": 7950, "gossip": 7960}
	return "127.0.0.1:" + strconv.Itoa(first[flag]+node)
}

const (
	// localReady is how long the nodes may take to find each other.
	localReady = time.Minute
	// localStop is how long one may take to stop before it is killed.
	localStop = stopWithin + 5*time.Second
)

// localCluster is the nodes as processes of this machine.
type localCluster struct {
	program string
	dir     string
	nodes   int
	out     io.Writer
	address func(flag string, node int) string // nodes count from 1

	mu      sync.Mutex // of out
	running []*localNode
	ended   chan *localNode
}

type localNode struct {
	name string
	http string
	cmd  *exec.Cmd
	gone chan struct{} // closed once it ended
	err  error         // valid then
}

// run starts the nodes and returns when ctx has ended and they have stopped, or
// none is left.
func (l *localCluster) run(ctx context.Context) (err error) {
	token, err := l.secret("root-token", rand.Text)
	if err != nil {
		return err
	}
	key, err := l.secret("gossip-key", gossipKey)
	if err != nil {
		return err
	}
	l.ended = make(chan *localNode, l.nodes)
	defer func() { err = errors.Join(err, l.stop()) }()
	for i := 1; i <= l.nodes; i++ {
		if err := l.start(i, token, key); err != nil {
			return err
		}
	}
	if err := l.waitReady(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	l.announce(token)
	for left := l.nodes; left > 0; left-- {
		select {
		case <-ctx.Done():
			return nil
		case n := <-l.ended:
			l.print("\n%s ended (%v). Start it again from another terminal:\n\n  %s\n\n", n.name, n.cmd.ProcessState, strings.Join(n.cmd.Args, " "))
		}
	}
	return errors.New("no node is left")
}

// secret makes one of the nodes' common secrets at the first start, and gives its file.
func (l *localCluster) secret(name string, text func() string) (string, error) {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return "", fmt.Errorf("make the data directory: %w", err)
	}
	path := filepath.Join(l.dir, name)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return path, nil
	}
	if err != nil {
		return "", fmt.Errorf("make the file %s: %w", name, err)
	}
	_, err = f.WriteString(text() + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("make the file %s: %w", name, err)
	}
	return path, nil
}

// gossipKey makes a key that the nodes prove to each other.
func gossipKey() string {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	return base64.StdEncoding.EncodeToString(key[:])
}

func (l *localCluster) start(i int, token, key string) error {
	n := &localNode{name: "node-" + strconv.Itoa(i), http: l.address("http", i), gone: make(chan struct{})}
	seeds := make([]string, 0, l.nodes)
	for j := 1; j <= l.nodes; j++ {
		seeds = append(seeds, l.address("gossip", j))
	}
	n.cmd = exec.Command(l.program, "serve", "--node-name", n.name, "--data", filepath.Join(l.dir, n.name),
		"--http", n.http, "--client-url", "http://"+n.http, "--metrics", l.address("metrics", i), "--peer", l.address("peer", i), "--gossip", l.address("gossip", i),
		"--join", strings.Join(seeds, ","), "--bootstrap-expect", strconv.Itoa(l.nodes), "--root-token-file", token, "--gossip-key-file", key)
	for _, v := range os.Environ() { // settings of the shell's would be the same for all
		if !strings.HasPrefix(v, "SWITCHYARD_") {
			n.cmd.Env = append(n.cmd.Env, v)
		}
	}
	apart(n.cmd)
	n.cmd.Stderr = &prefixed{prefix: n.name + " | ", print: l.print}
	if err := n.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", n.name, err)
	}
	l.running = append(l.running, n)
	go func() {
		n.err = n.cmd.Wait()
		l.ended <- n // has room for all
		close(n.gone)
	}()
	return nil
}

// waitReady returns once every node answers for the whole cluster.
func (l *localCluster) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, localReady)
	defer cancel()
	client := &http.Client{Timeout: time.Second}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for _, n := range l.running {
		for !ready(ctx, client, n.http) {
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s was not ready after %s; its log is above", n.name, localReady)
			case early := <-l.ended:
				return fmt.Errorf("%s ended at once (%v); its log is above", early.name, early.cmd.ProcessState)
			case <-tick.C:
			}
		}
	}
	return nil
}

func ready(ctx context.Context, client *http.Client, address string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return false
	}
	res, err := client.Do(req)
	if err != nil {
		return false
	}
	return res.Body.Close() == nil && res.StatusCode == http.StatusOK
}

func (l *localCluster) announce(token string) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s, each of which answers every request:\n\n", plural(l.nodes, "node"))
	for i, n := range l.running {
		fmt.Fprintf(&b, "  %s  http://%s  metrics http://%s/metrics  process %d\n", n.name, n.http, l.address("metrics", i+1), n.cmd.Process.Pid)
	}
	first, last := l.running[0].http, l.running[len(l.running)-1].http
	fmt.Fprintf(&b, "\nMake a workspace; the answer carries its admin token:\n\n  curl -s http://%s/workspaces/onboard -H 'Content-Type: application/json' -d '{\"name\":\"Acme\",\"slug\":\"acme\"}'\n", first)
	fmt.Fprintf(&b, "\nSee the cluster:\n\n  %s cluster status --url http://%s --token-file %s\n\nCtrl-C stops them one after another. State is kept in %s.\n\n", l.program, last, token, l.dir)
	l.print("%s", b.String())
}

// stop ends the nodes, the last first: each hands over what it leads while there
// is somebody to take it.
func (l *localCluster) stop() error {
	var errs []error
	for i := len(l.running) - 1; i >= 0; i-- {
		n := l.running[i]
		select {
		case <-n.gone:
			continue
		default:
		}
		l.print("stopping %s\n", n.name)
		if err := n.stop(); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", n.name, err))
		}
	}
	return errors.Join(errs...)
}

func (n *localNode) stop() error {
	_ = n.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by now
	deadline := time.NewTimer(localStop)
	defer deadline.Stop()
	select {
	case <-n.gone:
		return n.err
	case <-deadline.C:
		_ = n.cmd.Process.Kill()
		<-n.gone
		return fmt.Errorf("killed: it did not end within %s", localStop)
	}
}

func (l *localCluster) print(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintf(l.out, format, args...)
}

// prefixed prints what is written to it line by line behind a prefix.
type prefixed struct {
	prefix string
	print  func(format string, args ...any)
	line   []byte
}

// maxLine bounds what is kept of a line that does not end.
const maxLine = 64 << 10

// Write implements io.Writer.
func (p *prefixed) Write(b []byte) (int, error) {
	p.line = append(p.line, b...)
	for {
		end := bytes.IndexByte(p.line, '\n')
		if end < 0 && len(p.line) < maxLine {
			return len(b), nil
		}
		if end < 0 {
			end = len(p.line) - 1
		}
		p.print("%s%s\n", p.prefix, bytes.TrimRight(p.line[:end+1], "\n"))
		p.line = append(p.line[:0], p.line[end+1:]...)
	}
}
