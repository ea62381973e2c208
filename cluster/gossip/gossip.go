package gossip

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"switchyard/cluster/membership"
)

// Config configures gossip.
type Config struct {
	Bind      string   // host:port; port 0 takes a free one
	Advertise string   // host; empty: see advertisedHost
	Keys      [][]byte // encrypt gossip, the first what this node sends; none: plain text
	Seeds     []string
	// Self is this node's metadata, which gossip spreads.
	Self Meta
	// Known lists the registered nodes that were not removed.
	Known func() []membership.Record
	// Reachable reports whether another node answers on its peer port. Nil means that only gossip
	// decides.
	Reachable func(node string) bool
	Logger    *slog.Logger

	Tune func(*memberlist.Config, *Times) // tests only
}

// Times are the times that tests change.
type Times struct {
	RejoinEvery  time.Duration // pause between tries to reach missing members
	StatusEvery  time.Duration // pause between updates of the members' states
	deadAfter    time.Duration // silence after which a member is dead, whatever gossip says
	leaveTimeout time.Duration // bound of announcing the departure
}

// Gossip knows which nodes are running. It does not know which nodes belong to the cluster, see
// registry.
type Gossip struct {
	cfg   Config
	times Times
	list  *memberlist.Memberlist
	name  string // this process's name in memberlist
	Addr  string // address at which others reach it
	ip    net.IP // the same address in memberlist
	port  int
	state *gossipState

	mu       sync.Mutex
	observed map[string]observation // registered nodes, by name

	stop context.CancelFunc
	done sync.WaitGroup
}

// New listens for gossip. It contacts no other node before run or contact.
func New(cfg Config) (*Gossip, error) {
	m := &Gossip{
		cfg:      cfg,
		times:    Times{RejoinEvery: 5 * time.Second, StatusEvery: time.Second, deadAfter: 30 * time.Second, leaveTimeout: time.Second},
		observed: map[string]observation{},
	}
	host, port, err := gossipBind(cfg.Bind)
	if err != nil {
		return nil, err
	}
	reached, err := advertisedHost(cfg.Advertise, host)
	if err != nil {
		return nil, err
	}
	ip, err := lookupOne(reached)
	if err != nil {
		return nil, fmt.Errorf("look up --advertise %q: %w", reached, err)
	}
	// The start time in the name makes a restarted process a new member to memberlist. Its messages
	// count at once, also from another address, while memberlist still waits for the old process.
	m.name = cfg.Self.Node + "/" + shortInstance(cfg.Self.Instance) + "/" + strconv.FormatInt(time.Now().UnixMilli(), 36)
	m.state = newGossipState(m.name, cfg.Self)
	if _, err := m.state.self.encode(); err != nil {
		return nil, err
	}

	conf := memberlist.DefaultLANConfig()
	conf.Name = m.name
	conf.BindAddr, conf.BindPort = host, port
	conf.AdvertiseAddr, conf.AdvertisePort = ip.String(), port
	if len(cfg.Keys) > 0 {
		if conf.Keyring, err = memberlist.NewKeyring(cfg.Keys[1:], cfg.Keys[0]); err != nil {
			return nil, fmt.Errorf("gossip: %w", err)
		}
	}
	conf.TCPTimeout = 2 * time.Second
	conf.GossipInterval = 500 * time.Millisecond // each round wakes an idle process; nothing here is urgent
	conf.EnableCompression = false               // of a few hundred bytes, with a new buffer each time
	conf.Delegate, conf.Events, conf.Alive, conf.Merge = m.state, m.state, m.state, m.state
	conf.Logger = log.New(gossipLog{cfg.Logger}, "", 0)
	if cfg.Tune != nil {
		cfg.Tune(conf, &m.times)
	}
	bounded, err := newTransport(host, port, conf.Logger)
	if err != nil {
		return nil, fmt.Errorf("listen for gossip at %s: %w", cfg.Bind, err)
	}
	conf.Transport, conf.BindPort, conf.AdvertisePort = bounded, bounded.GetAutoBindPort(), bounded.GetAutoBindPort()
	if m.list, err = memberlist.Create(conf); err != nil {
		_ = bounded.Shutdown() // memberlist may have done so
		return nil, fmt.Errorf("gossip at %s: %w", cfg.Bind, err)
	}
	m.ip, m.port = ip, conf.BindPort
	m.Addr = net.JoinHostPort(reached, strconv.Itoa(m.port))
	return m, nil
}

// shortInstance shortens an instance id for people.
func shortInstance(instance string) string { return instance[:min(8, len(instance))] }

// Run keeps contacting members that are missing, until close.
func (m *Gossip) Run() {
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.done.Go(func() { m.maintain(ctx) })
}

func (m *Gossip) maintain(ctx context.Context) {
	look, rejoin := time.NewTicker(m.times.StatusEvery), time.NewTicker(m.times.RejoinEvery)
	defer look.Stop()
	defer rejoin.Stop()
	m.Contact(ctx, m.missingAddrs(maxContacts))
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			m.Status()
			m.state.prune(time.Now())
		case <-rejoin.C:
			m.Contact(ctx, m.missingAddrs(maxContacts))
		}
	}
}

// Update changes this node's metadata, for example when it has joined a cluster.
func (m *Gossip) Update(self Meta) error {
	if _, err := self.encode(); err != nil {
		return err
	}
	m.state.setSelf(self)
	// The update is queued for gossip. An error only means that no node has it yet.
	if err := m.list.UpdateNode(time.Nanosecond); err != nil {
		m.cfg.Logger.Debug("spread this node's new metadata by gossip", "error", err)
	}
	return nil
}

// Close announces the departure, so that the others list this node as left and not as dead, and
// ends gossip.
func (m *Gossip) Close() error {
	if m.stop != nil {
		m.stop()
	}
	m.done.Wait()
	// Memberlist reports that a member is gone but hides whether it left. A message beside it says
	// so.
	for _, s := range m.Alive() {
		if err := m.list.SendToAddress(memberlist.Address{Addr: s.Addr, Name: s.name}, append([]byte{messageLeaving}, m.name...)); err != nil {
			m.cfg.Logger.Debug("announce the departure by gossip", "to", s.Node, "error", err)
		}
	}
	if err := m.list.Leave(m.times.leaveTimeout); err != nil {
		m.cfg.Logger.Debug("announce the departure by gossip", "error", err)
	}
	return m.Shutdown()
}

// Shutdown ends gossip without announcing it.
func (m *Gossip) Shutdown() error {
	if m.stop != nil {
		m.stop()
	}
	err := m.list.Shutdown()
	m.done.Wait()
	if err != nil {
		return fmt.Errorf("end gossip: %w", err)
	}
	return nil
}

// Alive lists the processes that gossip shows as running beside this one, of any cluster or none,
// by name.
func (m *Gossip) Alive() []Node { return m.state.alive() }

// Changes returns a channel that is closed when a process came, went or changed.
func (m *Gossip) Changes() <-chan struct{} { return m.state.changes() }

// Resolve returns a node's peer address as gossip has it.
func (m *Gossip) Resolve(node string) (addr string, ok bool) {
	seen, ok := m.state.latest(node, m.state.cluster())
	return seen.Peer, ok && seen.Peer != ""
}

// gossipLog forwards memberlist's log at debug level. Messages for an operator are logged
// elsewhere.
type gossipLog struct{ to *slog.Logger }

// Write logs a line.
func (l gossipLog) Write(line []byte) (int, error) {
	l.to.Debug("gossip", "message", strings.TrimSpace(string(line)))
	return len(line), nil
}
