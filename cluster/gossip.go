package cluster

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

type gossipConfig struct {
	Bind      string // host:port; port 0 takes a free one
	Advertise string // host; empty: see advertisedHost
	Key       []byte // encrypts; nil: in clear
	Seeds     []string
	// Self is what the others are told of this node.
	Self nodeMeta
	// Known lists the registered nodes that were not removed.
	Known func() []record
	// Reachable tells whether a node answers on its peer port right now, self
	// excluded. Nil: only gossip is asked.
	Reachable func(node string) bool
	Logger    *slog.Logger

	tune func(*memberlist.Config, *gossipTimes) // tests only
}

// gossipTimes are the times that tests change.
type gossipTimes struct {
	rejoinEvery  time.Duration // between tries to reach members that are gone
	statusEvery  time.Duration // between looks at who answers
	deadAfter    time.Duration // a member that does not answer this long is dead, whatever gossip says
	leaveTimeout time.Duration // at most, to say goodbye
}

// gossip is who is there: what this node hears of others by gossip. It says
// nothing of who belongs to the cluster, see registry.
type gossip struct {
	cfg   gossipConfig
	times gossipTimes
	list  *memberlist.Memberlist
	name  string // this process's in memberlist
	addr  string // address others reach it at
	ip    net.IP // that address as memberlist knows it
	port  int
	state *gossipState

	mu       sync.Mutex
	observed map[string]observation // by node; of the registered ones

	stop context.CancelFunc
	done sync.WaitGroup
}

// newGossip listens for gossip. It reaches for nobody before run or contact.
func newGossip(cfg gossipConfig) (*gossip, error) {
	m := &gossip{
		cfg:      cfg,
		times:    gossipTimes{rejoinEvery: 5 * time.Second, statusEvery: time.Second, deadAfter: 30 * time.Second, leaveTimeout: time.Second},
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
	// The time of the start in the name makes a restart a member of its own to
	// memberlist: it is heard at once, also at another address, while the member
	// that it was is still being given up.
	m.name = cfg.Self.Node + "/" + shortInstance(cfg.Self.Instance) + "/" + strconv.FormatInt(time.Now().UnixMilli(), 36)
	m.state = newGossipState(m.name, cfg.Self)
	if _, err := m.state.self.encode(); err != nil {
		return nil, err
	}

	conf := memberlist.DefaultLANConfig()
	conf.Name = m.name
	conf.BindAddr, conf.BindPort = host, port
	conf.AdvertiseAddr, conf.AdvertisePort = ip.String(), port
	conf.SecretKey = cfg.Key
	conf.TCPTimeout = 2 * time.Second
	conf.Delegate, conf.Events, conf.Alive, conf.Merge = m.state, m.state, m.state, m.state
	conf.Logger = log.New(gossipLog{cfg.Logger}, "", 0)
	if cfg.tune != nil {
		cfg.tune(conf, &m.times)
	}
	if m.list, err = memberlist.Create(conf); err != nil {
		return nil, fmt.Errorf("listen for gossip at %s: %w", cfg.Bind, err)
	}
	m.ip, m.port = ip, conf.BindPort // memberlist writes the free port it took
	m.addr = net.JoinHostPort(reached, strconv.Itoa(m.port))
	return m, nil
}

// shortInstance tells instances of one name apart to people.
func shortInstance(instance string) string { return instance[:min(8, len(instance))] }

// run keeps reaching for members that are gone, until close.
func (m *gossip) run() {
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.done.Go(func() { m.maintain(ctx) })
}

func (m *gossip) maintain(ctx context.Context) {
	look, rejoin := time.NewTicker(m.times.statusEvery), time.NewTicker(m.times.rejoinEvery)
	defer look.Stop()
	defer rejoin.Stop()
	m.contact(ctx, m.missingAddrs(maxContacts))
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			m.status()
			m.state.prune(time.Now())
		case <-rejoin.C:
			m.contact(ctx, m.missingAddrs(maxContacts))
		}
	}
}

// update changes what the others are told of this node, as when it has joined.
func (m *gossip) update(self nodeMeta) error {
	if _, err := self.encode(); err != nil {
		return err
	}
	m.state.setSelf(self)
	// It is queued for gossip; an error only says that nobody has it yet.
	if err := m.list.UpdateNode(time.Nanosecond); err != nil {
		m.cfg.Logger.Debug("tell the members of a change", "error", err)
	}
	return nil
}

// close says goodbye, so that the others know this node as left and not as dead,
// and ends.
func (m *gossip) close() error {
	if m.stop != nil {
		m.stop()
	}
	m.done.Wait()
	// Gossip tells that a member is gone and hides whether it left: tell that beside
	// it.
	for _, s := range m.alive() {
		if err := m.list.SendToAddress(memberlist.Address{Addr: s.addr, Name: s.name}, append([]byte{messageLeaving}, m.name...)); err != nil {
			m.cfg.Logger.Debug("say goodbye", "to", s.Node, "error", err)
		}
	}
	if err := m.list.Leave(m.times.leaveTimeout); err != nil {
		m.cfg.Logger.Debug("say goodbye", "error", err)
	}
	return m.shutdown()
}

// shutdown ends without a word.
func (m *gossip) shutdown() error {
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

// alive lists who gossip says is there beside this node, of any cluster or none, by
// name.
func (m *gossip) alive() []gossipNode { return m.state.alive() }

// changes is closed when somebody came, went or changed.
func (m *gossip) changes() <-chan struct{} { return m.state.changes() }

// resolve gives a node's peer address as gossip has it.
func (m *gossip) resolve(node string) (addr string, ok bool) {
	seen, ok := m.state.latest(node, m.state.cluster())
	return seen.Peer, ok && seen.Peer != ""
}

// gossipLog hands memberlist's log on. All of it is detail: what an operator has to
// know is said elsewhere.
type gossipLog struct{ to *slog.Logger }

// Write logs a line.
func (l gossipLog) Write(line []byte) (int, error) {
	l.to.Debug("gossip", "message", strings.TrimSpace(string(line)))
	return len(line), nil
}

// ParseGossipKey reads a --gossip-key: base64 of 16, 24 or 32 bytes.
func ParseGossipKey(text string) ([]byte, error) {
	key, err := decodeBase64(strings.TrimSpace(text))
	if err != nil || len(key) != 16 && len(key) != 24 && len(key) != 32 {
		// The key itself stays out of the message.
		return nil, errors.New("cluster: a gossip key is base64 of 16, 24 or 32 random bytes; make one with: openssl rand -base64 32")
	}
	return key, nil
}
