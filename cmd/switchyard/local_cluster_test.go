package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// playsNode makes the test binary play a node.
const playsNode = "LOCAL_CLUSTER_TEST_NODE"

func TestMain(m *testing.M) {
	if os.Getenv(playsNode) != "" {
		os.Exit(playNode(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// playNode serves /readyz where --http says until it is told to stop.
func playNode(args []string) int {
	flag := func(name string) string { return args[slices.Index(args, name)+1] }
	if os.Getenv("SWITCHYARD_HTTP") != "" {
		fmt.Fprintln(os.Stderr, "the shell's settings came through")
	}
	ln, err := net.Listen("tcp", flag("--http"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	go func() { _ = http.Serve(ln, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})) }()
	fmt.Fprintln(os.Stderr, "up as", strings.Join(args, " "))
	<-stop.Done()
	fmt.Fprintln(os.Stderr, "down")
	return 0
}

// watched tells when what is written has a text in it.
type watched struct {
	mu      sync.Mutex
	b       bytes.Buffer
	waiting map[string]chan struct{}
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.b.Write(p)
	for text, seen := range w.waiting {
		if strings.Contains(w.b.String(), text) {
			close(seen)
			delete(w.waiting, text)
		}
	}
	return n, err
}

func (w *watched) seen(text string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := make(chan struct{})
	if strings.Contains(w.b.String(), text) {
		close(c)
		return c
	}
	if w.waiting == nil {
		w.waiting = map[string]chan struct{}{}
	}
	w.waiting[text] = c
	return c
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

func await(t *testing.T, out *watched, what <-chan struct{}) {
	t.Helper()
	select {
	case <-what:
	case <-time.After(2 * time.Minute):
		t.Fatalf("never came:\n%s", out)
	}
}

// ownAddress returns an address of the loopback network that no other process is likely to use: ports of 127.0.0.1
// may be taken between the choice of a port and the start of a node. It is 127.0.0.1 where there is no other.
func ownAddress() string {
	address := fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return "127.0.0.1:0"
	}
	ln.Close()
	return address
}

// playCluster is a local cluster of played nodes on free ports.
func playCluster(t *testing.T, out *watched) *localCluster {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string]string{}
	var held []net.Listener
	own := ownAddress()
	for _, flag := range []string{"http", "metrics", "peer", "gossip"} {
		for i := 1; i <= 3; i++ {
			ln, err := net.Listen("tcp", own)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, ln)
			addresses[fmt.Sprint(flag, i)] = ln.Addr().String()
		}
	}
	for _, ln := range held { // only now, so that all differ
		ln.Close()
	}
	return &localCluster{program: self, dir: filepath.Join(t.TempDir(), "cluster"), nodes: 3, out: out, address: func(flag string, i int) string {
		return addresses[fmt.Sprint(flag, i)]
	}}
}

func TestLocalCluster_RunsStopsInOrderAndRunsAgain(t *testing.T) {
	t.Setenv(playsNode, "1")
	t.Setenv("SWITCHYARD_HTTP", "127.0.0.1:1")
	out := &watched{}
	l := playCluster(t, out)
	var token []byte
	for range 2 {
		out.mu.Lock()
		out.b.Reset()
		out.mu.Unlock()
		l.running = nil
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- l.run(ctx) }()
		await(t, out, out.seen("Ctrl-C stops them"))
		cancel()
		if err := <-ended; err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		said := out.String()
		at := -1
		for _, text := range []string{"stopping node-3\n", "node-3 | down\n", "stopping node-2\n", "node-2 | down\n", "stopping node-1\n", "node-1 | down\n"} {
			next := strings.Index(said, text)
			if next <= at {
				t.Errorf("%q is missing or out of order:\n%s", text, said)
			}
			at = next
		}
		for _, text := range []string{
			"3 nodes, each of which answers", "node-2 | up as serve --node-name node-2 --data " + l.dir + "/node-2 --http " + l.address("http", 2),
			" --bootstrap-expect 3 ", " --gossip-key-file " + l.dir + "/gossip-key", "cluster status --url http://" + l.address("http", 3) + " --token-file " + l.dir + "/root-token", "/workspaces/onboard",
		} {
			if !strings.Contains(said, text) {
				t.Errorf("lacks %q:\n%s", text, said)
			}
		}
		if strings.Contains(said, "came through") {
			t.Error("the shell's settings reached the nodes")
		}
		now, err := os.ReadFile(filepath.Join(l.dir, "root-token"))
		if err != nil || len(now) < 17 || token != nil && !bytes.Equal(now, token) {
			t.Errorf("root token %q, then %q, %v", token, now, err)
		}
		token = now
	}
}

func TestLocalCluster_GoesOnWithoutOne(t *testing.T) {
	t.Setenv(playsNode, "1")
	out := &watched{}
	l := playCluster(t, out)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.run(ctx) }()
	await(t, out, out.seen("Ctrl-C stops them"))
	if err := l.running[1].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	await(t, out, out.seen("node-2 ended (signal: killed). Start it again"))
	cancel()
	if err := <-ended; err != nil || strings.Contains(out.String(), "stopping node-2") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestLocalCluster_StopsAllWhenOneCantStart(t *testing.T) {
	t.Setenv(playsNode, "1")
	out := &watched{}
	l := playCluster(t, out)
	taken, err := net.Listen("tcp", l.address("http", 3))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if err := l.run(t.Context()); err == nil || !strings.Contains(err.Error(), "node-3 ended at once") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, n := range l.running {
		<-n.gone
	}
}

func TestPrefixed_KeepsNoEndlessLine(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &prefixed{prefix: "n | ", print: func(format string, args ...any) { fmt.Fprintf(&out, format, args...) }}
	_, _ = p.Write([]byte("a\nb"))
	_, _ = p.Write([]byte("c\n\n"))
	if out.String() != "n | a\nn | bc\nn | \n" {
		t.Errorf("%q", out.String())
	}
	_, _ = p.Write(bytes.Repeat([]byte("x"), maxLine+1))
	if len(p.line) > maxLine {
		t.Errorf("keeps %d bytes", len(p.line))
	}
}
