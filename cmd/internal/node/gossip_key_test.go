package node

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

func TestGossipKey_IsMadeOnce(t *testing.T) {
	t.Parallel()
	c := sane()
	c.Data = t.TempDir()
	first, err := c.gossipKeys()
	if err != nil || len(first) != 1 || len(first[0]) != 32 {
		t.Fatalf("%d keys, %v", len(first), err)
	}
	if again, err := c.gossipKeys(); err != nil || !reflect.DeepEqual(again, first) {
		t.Errorf("at the second start it is another key: %v", err)
	}
	path := filepath.Join(c.Data, gossipKeyFile)
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	// Another node of the machine is told of the file.
	other := sane()
	other.Data, other.GossipKeyFile = t.TempDir(), path
	if got, err := other.gossipKeys(); err != nil || !reflect.DeepEqual(got, first) {
		t.Errorf("by --gossip-key-file it is another key: %v", err)
	}
	if err := os.WriteFile(path, []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.gossipKeys(); err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "not a key") {
		t.Errorf("a spoiled file: %v", err)
	}
	other.GossipKeyFile = "nowhere"
	if _, err := other.gossipKeys(); err == nil || !strings.Contains(err.Error(), "--gossip-key-file") {
		t.Errorf("no file: %v", err)
	}
}

func TestGossipKey_IsNotMadeWhereNoneIsNeeded(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"given":    func(c *Config) { c.GossipKey = key(16) },
		"insecure": func(c *Config) { c.InsecureCluster = true },
		"alone":    func(c *Config) { c.Peer, c.Gossip = "", "" },
	} {
		c := sane()
		c.Data = t.TempDir()
		change(&c)
		got, err := c.gossipKeys()
		if err != nil || (got != nil) != (name == "given") {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if made, err := fs.Glob(os.DirFS(c.Data), "*"); err != nil || len(made) != 0 {
			t.Errorf("%s: made %q, %v", name, made, err)
		}
	}
}

// Nodes of one user have one key, also when they start at the same time. Where the
// user has no directory for it, a node keeps its own.
func TestGossipKey_IsTheUsers(t *testing.T) {
	t.Parallel()
	user := filepath.Join(t.TempDir(), "config", "switchyard")
	keys := make([][][]byte, 8)
	var wg sync.WaitGroup
	for i := range keys {
		c := sane()
		c.Data, c.UserDir = t.TempDir(), user
		wg.Go(func() {
			var err error
			if keys[i], err = c.gossipKeys(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if len(k) != 1 || len(k[0]) != 32 || !reflect.DeepEqual(k, keys[0]) {
			t.Errorf("keys %x and %x", k, keys[0])
		}
	}
	if made, err := os.ReadDir(user); err != nil || len(made) != 1 {
		t.Errorf("made %v, %v", made, err)
	}
	if info, err := os.Stat(filepath.Join(user, gossipKeyFile)); err != nil || info.Mode() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
}

// A node with defaults listens for clients alone.
func TestStart_OpensNoPortForOthers(t *testing.T) {
	t.Parallel()
	c := sane()
	c.Data, c.Peer, c.Gossip, c.Logger = t.TempDir(), "", "", slog.New(slog.DiscardHandler)
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.Stop(t.Context()) }()
	if n.PeerAddr() != "" || n.GossipAddr() != "" {
		t.Errorf("it listens on %s and %s", n.PeerAddr(), n.GossipAddr())
	}
	if _, err := os.Stat(filepath.Join(c.Data, gossipKeyFile)); err == nil {
		t.Error("it has made a key for others")
	}
}

// startWithPorts starts a node that others may join.
func startWithPorts(t *testing.T, change func(*Config)) *Node {
	t.Helper()
	c := sane()
	c.Name, c.Data, c.Peer, c.Gossip = "the-name-of-it", t.TempDir(), "127.0.0.1:0", "127.0.0.1:0"
	change(&c)
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Stop(context.Background()) })
	if err := n.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

// A process that reaches the peer port and has no key learns nothing of the node, and
// its control requests are not carried out; not even if it knows names and cluster.
func TestStart_PeerPortTellsStrangersNothing(t *testing.T) {
	t.Parallel()
	n := startWithPorts(t, func(*Config) {})
	for _, clusterID := range []string{n.groups.ClusterID(), "another"} {
		hello := `{"cluster":"` + clusterID + `","from":"b","to":"the-name-of-it"}`
		framed := "\x00\x00\x00" + string(rune(len(hello))) + hello
		call := "\x00\x00\x00\x03\x08{}" // a request for a step of a workflow
		for _, request := range []string{"C" + framed + call, "C\x02" + strings.Repeat("n", 32) + strings.Repeat("p", 32) + framed + call} {
			conn, err := net.Dial("tcp", n.PeerAddr())
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
			if _, err := conn.Write([]byte(request)); err != nil {
				t.Fatal(err)
			}
			_ = conn.(*net.TCPConn).CloseWrite()
			var told bytes.Buffer
			_, _ = told.ReadFrom(conn) // until the node hangs up, by whatever means
			_ = conn.Close()
			if told.Len() > 65 || strings.Contains(told.String(), "the-name") || strings.Contains(told.String(), n.groups.ClusterID()) {
				t.Errorf("%q is answered %q", request, told.String())
			}
		}
	}
}

// Gossip tells its members to those alone who have the key.
func TestStart_GossipTellsStrangersNothing(t *testing.T) {
	t.Parallel()
	keyed := startWithPorts(t, func(*Config) {})
	open := startWithPorts(t, func(c *Config) { c.InsecureCluster = true })
	for name, row := range map[string]struct {
		node  *Node
		key   []byte
		heard bool
	}{
		"no key": {keyed, nil, false}, "another key": {keyed, make([]byte, 32), false}, "no key, and none needed": {open, nil, true},
	} {
		heard := &heardOf{}
		conf := memberlist.DefaultLocalConfig()
		conf.Name, conf.BindAddr, conf.BindPort, conf.AdvertisePort = "stranger", "127.0.0.1", 0, 0
		conf.SecretKey, conf.LogOutput, conf.Events = row.key, io.Discard, heard
		stranger, err := memberlist.Create(conf)
		if err != nil {
			t.Fatal(err)
		}
		_, err = stranger.Join([]string{row.node.GossipAddr()})
		_ = stranger.Shutdown()
		if got := heard.of("the-name-of-it"); got != row.heard {
			t.Errorf("%s: has heard of the node: %t, %v", name, got, err)
		}
	}
}

// heardOf notes the names that memberlist tells.
type heardOf struct {
	mu    sync.Mutex
	names []string
}

func (h *heardOf) of(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.names, func(n string) bool { return strings.Contains(n, name) })
}

func (h *heardOf) NotifyJoin(n *memberlist.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.names = append(h.names, n.Name)
}

func (h *heardOf) NotifyLeave(*memberlist.Node)  {}
func (h *heardOf) NotifyUpdate(*memberlist.Node) {}
