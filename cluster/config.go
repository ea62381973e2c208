package cluster

import (
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"switchyard/storage"
)

// Config of a node.
type Config struct {
	// Store is the node's disk. It stays the caller's to close, after Node.Close.
	Store *storage.Store
	// NodeName names this node in the cluster, for good: it is kept in the store.
	// Empty means the kept one, or DefaultNodeName at the first start.
	NodeName string
	// Shards is the number of workspace shards, fixed when the store is first used.
	// 0 means the kept one, or DefaultShards at the first start.
	Shards int

	// Peer is the listener for other nodes; the node closes it. Nil, together with an
	// empty Gossip: a node alone, which can't be joined.
	Peer net.Listener
	// TLS secures Peer: the node's certificate, and in RootCAs the CA of all nodes.
	// Nil: in clear.
	TLS *tls.Config
	// ReplaceAfter is how long a node may be gone before its replicas are made anew
	// elsewhere; 0 means DefaultReplaceAfter.
	ReplaceAfter time.Duration
	// Gossip is the address (host:port, TCP and UDP) at which members find each other;
	// port 0 takes a free one. Empty: nobody finds this node and it finds nobody.
	Gossip string
	// Advertise is the host, a name or an IP address, under which others reach this
	// node's ports. Empty means the host that a port is bound to, or the machine's first
	// private address when that is every address.
	Advertise string
	// GossipKey encrypts gossip, and nodes prove it to each other on Peer: 16, 24 or 32
	// bytes, see ParseGossipKey. Nil: gossip is in clear, and any process may be a node.
	GossipKey []byte
	// Join lists gossip addresses (host or host:port) of nodes to find the cluster by. A
	// name is looked up at each try and may stand for several nodes; this node's own
	// address does no harm. With empty data and no Join the node forms a cluster.
	Join []string
	// BootstrapExpect is how many nodes with empty data, this one included, form a
	// cluster together when they meet none. 0: none ever does.
	BootstrapExpect int
	// Zone is where the machine stands; replicas of a shard go to different ones.
	Zone string
	// Version of the program, shown to operators.
	Version string
	// HTTP is this node's client address (host:port), shown to operators.
	HTTP string

	// Full tells whether the node's disk is too full for changes, so that others lead
	// what it leads. Nil: never.
	Full func() bool

	// Logger gets what goes wrong and, at debug level, Raft's chatter; nil means
	// slog's default.
	Logger *slog.Logger

	tune       func(*tuning) // tests only
	transports transports    // tests only; nil: the peer port's
}

// What a first start takes when Config says nothing.
const (
	DefaultNodeName = "node-1"
	DefaultShards   = 16
	// MaxShards is the most workspace shards a cluster may have.
	MaxShards = 1024
	// DefaultReplaceAfter is Config.ReplaceAfter when it says nothing.
	DefaultReplaceAfter = 5 * time.Minute
	// DefaultGossipPort is the port of a Config.Join address that names none.
	DefaultGossipPort = 7946
)

// heartbeatTimeout is how long a follower waits for its leader before it stands for
// election. A read lease is 0.6 of it.
const electionTimeout = 800 * time.Millisecond

// tuning holds the sizes and times that tests change.
type tuning struct {
	lease time.Duration // how long one leadership proof lasts

	entryBytes   int // an entry stops growing here
	entryBatches int // batches merged into one entry
	inFlight     int // entries handed to Raft and not answered yet
	queueBatches int // batches waiting per shard
	queueBytes   int // bytes waiting per shard

	snapshotBytes int64 // log bytes of one shard that trigger its snapshot
	totalBytes    int64 // log bytes of all shards that trigger snapshots
	sendingBytes  int64 // what a shard's log may grow to while a follower gets its state
	trailing      uint64

	clock func() int64 // monotonic nanoseconds
}

// maxBatch is the largest batch Propose takes. A batch of more than half a memtable
// takes Pebble longer: it is flushed by itself.
const maxBatch = 12 << 20

func defaultTuning() tuning {
	base := time.Now()
	return tuning{
		lease:         electionTimeout * 6 / 10,
		entryBytes:    4 << 20,
		entryBatches:  1024,
		inFlight:      4,
		queueBatches:  4096,
		queueBytes:    64 << 20,
		snapshotBytes: 32 << 20,
		totalBytes:    64 << 20,
		sendingBytes:  512 << 20,
		trailing:      16,
		clock:         func() int64 { return int64(time.Since(base)) },
	}
}
