package gossip

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"switchyard/cluster/membership"
)

// Meta is the metadata that a node spreads by gossip. Its JSON names are short because
// memberlist allows 512 bytes; they are part of the protocol.
type Meta struct {
	Node     string `json:"n"`
	Instance string `json:"i"`
	Cluster  string `json:"c,omitempty"` // empty while the node waits for a cluster
	Peer     string `json:"p,omitempty"`
	HTTP     string `json:"h,omitempty"`
	Zone     string `json:"z,omitempty"`
	Version  string `json:"v,omitempty"`
}

func (c Meta) encode() ([]byte, error) {
	meta, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode this node's gossip metadata: %w", err)
	}
	if len(meta) > memberlist.MetaMaxSize {
		return nil, fmt.Errorf("cluster: the node's name, zone, version and addresses take %d bytes, and gossip has room for %d: shorten --zone or --advertise", len(meta), memberlist.MetaMaxSize)
	}
	return meta, nil
}

func parseNodeMeta(meta []byte) (Meta, error) {
	var c Meta
	if err := json.Unmarshal(meta, &c); err != nil {
		return Meta{}, fmt.Errorf("decode a node's gossip metadata: %w", err)
	}
	return c, membership.CheckNodeName(c.Node)
}

// Node is a process that gossip reported.
type Node struct {
	Meta
	name    string // name in memberlist
	Addr    string // address
	started int64  // from its name: milliseconds of its own clock
	State   membership.NodeState
	Since   time.Time
}

// Bounds of the memory for gossip.
const (
	maxGossipNodes = 4 * membership.MaxNodes
	forgetAfter    = 10 * time.Minute
)

// messageLeaving is the first byte of the message of a process that is about to leave; the
// process's name in memberlist follows.
const messageLeaving byte = 1

// gossipState collects memberlist's events. Memberlist calls it while holding its own lock, so
// gossipState must never call memberlist.
type gossipState struct {
	name string

	mu      sync.Mutex
	self    Meta
	nodes   map[string]*Node // by name in memberlist, without this process
	leaving map[string]bool  // processes that announced that they leave
	changed chan struct{}
}

func newGossipState(name string, self Meta) *gossipState {
	return &gossipState{name: name, self: self, nodes: map[string]*Node{}, leaving: map[string]bool{}, changed: make(chan struct{})}
}

func (h *gossipState) setSelf(self Meta) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.self = self
	h.notifyChanged()
}

func (h *gossipState) cluster() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.self.Cluster
}

func (h *gossipState) changes() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// notifyChanged wakes those that wait for a change. The caller holds mu.
func (h *gossipState) notifyChanged() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// alive lists the running processes.
func (h *gossipState) alive() []Node {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []Node
	for _, s := range h.nodes {
		if s.State == membership.NodeAlive {
			out = append(out, *s)
		}
	}
	slices.SortFunc(out, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Instance, b.Instance), cmp.Compare(b.started, a.started))
	})
	return out
}

// latest returns the gossip record to use for a node: that of the running process started last or,
// if none is running, of the process that went last.
func (h *gossipState) latest(name, cluster string) (Node, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var best *Node
	for _, s := range h.nodes {
		if s.Node == name && s.Cluster == cluster && (best == nil || s.supersedes(best)) {
			best = s
		}
	}
	if best == nil {
		return Node{}, false
	}
	return *best, true
}

func (s *Node) supersedes(other *Node) bool {
	if here, there := s.State == membership.NodeAlive, other.State == membership.NodeAlive; here != there {
		return here
	} else if !here {
		return s.Since.After(other.Since)
	}
	return s.started > other.started
}

// prune forgets processes that went long ago.
func (h *gossipState) prune(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.nodes, func(name string, s *Node) bool {
		gone := s.State != membership.NodeAlive && now.Sub(s.Since) > forgetAfter
		if gone {
			delete(h.leaving, name)
		}
		return gone
	})
}

// NodeMeta returns the metadata of this node to memberlist.
func (h *gossipState) NodeMeta(int) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	meta, err := h.self.encode()
	if err != nil {
		return nil // the setter has checked it
	}
	return meta
}

// NotifyMsg handles the announcement of a process that leaves.
func (h *gossipState) NotifyMsg(message []byte) {
	if len(message) == 0 || message[0] != messageLeaving {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	name := string(message[1:])
	if s := h.nodes[name]; s != nil && !h.leaving[name] {
		h.leaving[name] = true
		if s.State == membership.NodeDead { // the announcement came after the departure
			s.State = membership.NodeLeft
			h.notifyChanged()
		}
	}
}

// GetBroadcasts returns nothing: gossip carries no messages of ours.
func (h *gossipState) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState returns nothing to exchange with another member.
func (h *gossipState) LocalState(bool) []byte { return nil }

// MergeRemoteState ignores the other member's state, which is empty.
func (h *gossipState) MergeRemoteState([]byte, bool) {}

// NotifyJoin records a process that came.
func (h *gossipState) NotifyJoin(n *memberlist.Node) { h.record(n, membership.NodeAlive) }

// NotifyUpdate records a process whose metadata changed.
func (h *gossipState) NotifyUpdate(n *memberlist.Node) { h.record(n, membership.NodeAlive) }

// NotifyLeave records a process that went, whether it left or died.
func (h *gossipState) NotifyLeave(n *memberlist.Node) { h.record(n, membership.NodeDead) }

func (h *gossipState) record(n *memberlist.Node, state membership.NodeState) {
	if n.Name == h.name {
		return
	}
	c, err := parseNodeMeta(n.Meta)
	if err != nil {
		return // NotifyAlive refuses such nodes
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.nodes[n.Name]
	if s == nil {
		s = &Node{name: n.Name, started: startOf(n.Name)}
		h.nodes[n.Name] = s
	}
	if state == membership.NodeDead && h.leaving[n.Name] {
		state = membership.NodeLeft
	}
	s.Meta, s.Addr = c, n.Address()
	if s.State != state {
		s.State, s.Since = state, time.Now()
	}
	h.notifyChanged()
}

func startOf(name string) int64 {
	started, err := strconv.ParseInt(name[strings.LastIndexByte(name, '/')+1:], 36, 64)
	if err != nil {
		return 0
	}
	return started
}

var errOtherCluster = errors.New("the node belongs to another cluster")

// NotifyAlive refuses processes of other clusters, so that two clusters that meet stay separate.
func (h *gossipState) NotifyAlive(n *memberlist.Node) error {
	if n.Name == h.name {
		return nil
	}
	c, err := parseNodeMeta(n.Meta)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.self.Cluster != "" && c.Cluster != "" && c.Cluster != h.self.Cluster {
		return errOtherCluster
	}
	if h.nodes[n.Name] == nil && len(h.nodes) >= maxGossipNodes {
		return errors.New("too many members")
	}
	return nil
}

// foreignPrefix starts the error of a contact with another cluster; the cluster's id follows.
// Memberlist passes on only the text.
const foreignPrefix = "cluster: the other side belongs to cluster "

// NotifyMerge refuses to exchange gossip with members of another cluster.
func (h *gossipState) NotifyMerge(nodes []*memberlist.Node) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	foreign := ""
	for _, n := range nodes {
		c, err := parseNodeMeta(n.Meta)
		switch {
		case n.Name == h.name || n.State != memberlist.StateAlive || err != nil || c.Cluster == "":
		case h.self.Cluster == "" || c.Cluster == h.self.Cluster:
			return nil
		default:
			foreign = c.Cluster
		}
	}
	if foreign != "" {
		return errors.New(foreignPrefix + foreign + ".")
	}
	return nil
}
