package cluster

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
)

// card is what a node tells of itself by gossip. Its names are short because it
// may have 512 bytes; they are part of the protocol.
type card struct {
	Node     string `json:"n"`
	Instance string `json:"i"`
	Cluster  string `json:"c,omitempty"` // empty: it waits for one
	Peer     string `json:"p,omitempty"`
	HTTP     string `json:"h,omitempty"`
	Zone     string `json:"z,omitempty"`
	Version  string `json:"v,omitempty"`
}

func (c card) encode() ([]byte, error) {
	meta, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write what gossip tells of this node: %w", err)
	}
	if len(meta) > memberlist.MetaMaxSize {
		return nil, fmt.Errorf("cluster: the node's name, zone, version and addresses take %d bytes, and gossip has room for %d: shorten --zone or --advertise", len(meta), memberlist.MetaMaxSize)
	}
	return meta, nil
}

func parseCard(meta []byte) (card, error) {
	var c card
	if err := json.Unmarshal(meta, &c); err != nil {
		return card{}, fmt.Errorf("read what gossip tells of a node: %w", err)
	}
	return c, checkNodeName(c.Node)
}

// sighting is a process that gossip told of.
type sighting struct {
	card
	name    string // in memberlist
	gossip  string // address
	started int64  // from its name: milliseconds of its own clock
	state   NodeState
	since   time.Time
}

// Bounds of what gossip may make this node remember.
const (
	maxSightings = 4 * maxNodes
	keepGone     = 10 * time.Minute
)

// noteLeaving starts the message of a process that is about to leave; its name in
// memberlist follows.
const noteLeaving byte = 1

// hearsay collects what memberlist tells. Memberlist calls it with its own lock
// held, so nothing here calls memberlist, ever.
type hearsay struct {
	name string

	mu      sync.Mutex
	self    card
	seen    map[string]*sighting // by name in memberlist, without this process
	left    map[string]bool      // said that they leave
	changed chan struct{}
}

func newHearsay(name string, self card) *hearsay {
	return &hearsay{name: name, self: self, seen: map[string]*sighting{}, left: map[string]bool{}, changed: make(chan struct{})}
}

func (h *hearsay) setSelf(self card) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.self = self
	h.note()
}

func (h *hearsay) cluster() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.self.Cluster
}

func (h *hearsay) changes() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// note is called with mu held.
func (h *hearsay) note() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// live lists the processes that are there.
func (h *hearsay) live() []sighting {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []sighting
	for _, s := range h.seen {
		if s.state == NodeAlive {
			out = append(out, *s)
		}
	}
	slices.SortFunc(out, func(a, b sighting) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Instance, b.Instance), cmp.Compare(b.started, a.started))
	})
	return out
}

// node gives the sighting of a member that counts: of those that are there the
// one started last, or else the last that went.
func (h *hearsay) node(name, cluster string) (sighting, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var best *sighting
	for _, s := range h.seen {
		if s.Node == name && s.Cluster == cluster && (best == nil || s.outdoes(best)) {
			best = s
		}
	}
	if best == nil {
		return sighting{}, false
	}
	return *best, true
}

func (s *sighting) outdoes(other *sighting) bool {
	if here, there := s.state == NodeAlive, other.state == NodeAlive; here != there {
		return here
	} else if !here {
		return s.since.After(other.since)
	}
	return s.started > other.started
}

// prune forgets who went long ago.
func (h *hearsay) prune(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.seen, func(name string, s *sighting) bool {
		gone := s.state != NodeAlive && now.Sub(s.since) > keepGone
		if gone {
			delete(h.left, name)
		}
		return gone
	})
}

// NodeMeta tells memberlist what to spread of this node.
func (h *hearsay) NodeMeta(int) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	meta, err := h.self.encode()
	if err != nil {
		return nil // its setter has checked
	}
	return meta
}

// NotifyMsg takes the goodbye of a process.
func (h *hearsay) NotifyMsg(message []byte) {
	if len(message) == 0 || message[0] != noteLeaving {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	name := string(message[1:])
	if s := h.seen[name]; s != nil && !h.left[name] {
		h.left[name] = true
		if s.state == NodeDead { // the goodbye came second
			s.state = NodeLeft
			h.note()
		}
	}
}

// GetBroadcasts has nothing to add to gossip.
func (h *hearsay) GetBroadcasts(int, int) [][]byte { return nil }

// LocalState has nothing to add to what two members exchange.
func (h *hearsay) LocalState(bool) []byte { return nil }

// MergeRemoteState gets nothing.
func (h *hearsay) MergeRemoteState([]byte, bool) {}

// NotifyJoin is told of a process that came.
func (h *hearsay) NotifyJoin(n *memberlist.Node) { h.see(n, NodeAlive) }

// NotifyUpdate is told of a process that changed its card.
func (h *hearsay) NotifyUpdate(n *memberlist.Node) { h.see(n, NodeAlive) }

// NotifyLeave is told of a process that went, whether it left or died.
func (h *hearsay) NotifyLeave(n *memberlist.Node) { h.see(n, NodeDead) }

func (h *hearsay) see(n *memberlist.Node, state NodeState) {
	if n.Name == h.name {
		return
	}
	c, err := parseCard(n.Meta)
	if err != nil {
		return // NotifyAlive keeps such out
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seen[n.Name]
	if s == nil {
		s = &sighting{name: n.Name, started: startOf(n.Name)}
		h.seen[n.Name] = s
	}
	if state == NodeDead && h.left[n.Name] {
		state = NodeLeft
	}
	s.card, s.gossip = c, n.Address()
	if s.state != state {
		s.state, s.since = state, time.Now()
	}
	h.note()
}

func startOf(name string) int64 {
	started, err := strconv.ParseInt(name[strings.LastIndexByte(name, '/')+1:], 36, 64)
	if err != nil {
		return 0
	}
	return started
}

var errOtherCluster = errors.New("a member of another cluster")

// NotifyAlive keeps strangers out of this node's gossip: two clusters that meet
// stay two.
func (h *hearsay) NotifyAlive(n *memberlist.Node) error {
	if n.Name == h.name {
		return nil
	}
	c, err := parseCard(n.Meta)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.self.Cluster != "" && c.Cluster != "" && c.Cluster != h.self.Cluster {
		return errOtherCluster
	}
	if h.seen[n.Name] == nil && len(h.seen) >= maxSightings {
		return errors.New("too many members")
	}
	return nil
}

// foreignMark stands before the other cluster's id in the error of a contact:
// memberlist hands on its text only.
const foreignMark = "cluster: the other side belongs to cluster "

// NotifyMerge ends a contact with the members of another cluster.
func (h *hearsay) NotifyMerge(nodes []*memberlist.Node) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	foreign := ""
	for _, n := range nodes {
		c, err := parseCard(n.Meta)
		switch {
		case n.Name == h.name || n.State != memberlist.StateAlive || err != nil || c.Cluster == "":
		case h.self.Cluster == "" || c.Cluster == h.self.Cluster:
			return nil
		default:
			foreign = c.Cluster
		}
	}
	if foreign != "" {
		return errors.New(foreignMark + foreign + ".")
	}
	return nil
}
