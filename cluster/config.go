package cluster

import (
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	"switchyard/storage"
)

// Config configures a node.
type Config struct {
	// Store is the node's disk. The caller closes it, after Node.Close.
	Store *storage.Store
	// NodeName names this node in the cluster for good; the store keeps it. Empty means the kept
	// name, or DefaultNodeName at the first start.
	NodeName string
	// Shards is the number of workspace shards. It is fixed when the store is first used. 0 means
	// the kept number, or DefaultShards at the first start.
	Shards int

	// Peer is the listener for other nodes; the node closes it. If Peer is nil and Gossip is empty,
	// the node runs alone and no other node can join it.
	Peer net.Listener
	// TLS secures Peer: it holds the node's certificate and, in RootCAs, the CA of all nodes. Nil
	// means plain text.
	TLS *tls.Config
	// MaxForwarded bounds the connections on which other nodes forward requests to this one. 0 means
	// the bound of the other kinds of connections.
	MaxForwarded int
	// ReplaceAfter is how long a node may be gone before its replicas are replaced on other nodes.
	// 0 means DefaultReplaceAfter.
	ReplaceAfter time.Duration
	// CompareEvery is the time after which the owner of a shard compares its replicas again. 0 means
	// never.
	CompareEvery time.Duration
	// Rests returns how long the reading of a replica that began at a moment rests after some work. Nil
	// means that it does not rest.
	Rests func(began time.Time) func(work time.Duration) time.Duration
	// Gossip is the address (host:port, TCP and UDP) of this node's gossip. Port 0 takes a free
	// port. Empty disables gossip: the node finds no others, and they do not find it.
	Gossip string
	// Advertise is the host, a name or an IP address, at which other nodes reach this node's ports.
	// Empty means the host that a port is bound to or, for a port bound to every address, the
	// machine's first private address.
	Advertise string
	// GossipKeys encrypt gossip and prove nodes to each other on Peer: the first by this node, and
	// each of them is taken from others. Each has 16, 24 or 32 bytes. None leaves gossip in plain
	// text, and any process may act as a node.
	GossipKeys [][]byte
	// Join lists gossip addresses (host or host:port) by which to find the cluster. A name is
	// looked up at each try and may resolve to several nodes; this node's own address is ignored. A
	// node with empty data and no Join forms a cluster of its own.
	Join []string
	// BootstrapExpect is the number of nodes with empty data, this one included, that form a
	// cluster together when they find none. 0 means that this node waits for a cluster to join.
	BootstrapExpect int
	// Zone is the failure domain of the machine. Replicas of a shard are spread over zones.
	Zone string
	// Version of the program, shown to operators.
	Version string
	// MaxFormat is the newest format to which this node agrees; while a node agrees to no newer one,
	// the cluster can be taken back to the version of the program before. 0 means the newest that
	// the program knows.
	MaxFormat storage.Format
	// HTTP is this node's client address (host:port), shown to operators.
	HTTP string

	// Full reports whether the node's disk is too full for changes; other nodes then take over the
	// shards it leads. Nil means never.
	Full func() bool
	// Spent reports whether the disk has no more room than this node needs for itself. It then
	// takes no changes from the leaders of its shards until there is room again. Nil means never.
	Spent func() bool
	// Spare returns the number of bytes that the node may still take while Spent reports true, for changes
	// without which a shard could get no owner. Nil means none.
	Spare func() uint64

	// LogWritten is told of each write to the logs of the shards how long it took, until it was on
	// disk. It must not block. Nil does nothing.
	LogWritten func(took time.Duration)

	// Clock is the time of day; nil means time.Now.
	Clock func() time.Time

	// Logger receives warnings and errors and, at debug level, Raft's messages. Nil means slog's
	// default.
	Logger *slog.Logger

	tune       func(*tuning) // tests only
	transports transports    // tests only; nil means the peer port's
}

// Defaults of a first start, and bounds.
const (
	DefaultNodeName = "node-1"
	DefaultShards   = 128
	// MaxShards is the largest number of workspace shards of a cluster.
	MaxShards = 1024
	// DefaultReplaceAfter is the default of Config.ReplaceAfter.
	DefaultReplaceAfter = 5 * time.Minute
)

// electionTimeout is how long a follower waits for its leader before it stands for election. A read
// lease lasts 0.6 of it.
const electionTimeout = 800 * time.Millisecond

// tuning holds the sizes and times that tests change.
type tuning struct {
	lease time.Duration // length of a read lease

	entryBytes   int // an entry takes no more batches from this size on
	entryBatches int // batches merged into one entry
	inFlight     int // entries in Raft without an answer
	queueBatches int // batches waiting per shard
	queueBytes   int // bytes of small batches, and of large ones, waiting per shard

	nodeQueueBytes int64 // bytes of large batches waiting in all shards

	snapshotBytes int64 // log bytes of one shard that trigger its snapshot
	totalBytes    int64 // log bytes of all shards that trigger snapshots
	sendingBytes  int64 // bound of a shard's log while a follower gets its state
	keepBytes     int64 // bound of the logs of all shards that are kept for an archive
	trailing      uint64
	// keepPrevious has a truncation leave the entries since the snapshot before: a replica that was
	// away for less than that time gets them, and not the whole state.
	keepPrevious bool

	shutdown  time.Duration // bounds the wait for the end of a dropped replica
	lostGrace time.Duration // 0 means placement.LostGrace
	// commit is Raft's CommitTimeout: a follower to which no entries go gets a request without entries
	// after once to twice that time, beside the heartbeats. With Raft's 50 ms these requests are half of
	// what an idle shard costs, with 4 s still a third. The leader watchdog does what they are for, see
	// quiet.go.
	commit time.Duration

	clock      func() int64 // monotonic nanoseconds
	leaseClock func() int64 // nanoseconds of a leader's lease; see leaseClock
}

// maxBatch is the size of the largest batch that Propose takes: what the largest command writes,
// and what a batch has before it is closed. Pebble flushes a batch of more than half a memtable by
// itself, which takes longer.
const maxBatch = 28 << 20

func defaultTuning() tuning {
	base := time.Now()
	return tuning{
		lease:        electionTimeout * 6 / 10,
		entryBytes:   4 << 20,
		entryBatches: 1024,
		inFlight:     4,
		queueBatches: 4096,
		queueBytes:   64 << 20,

		nodeQueueBytes: 256 << 20,
		snapshotBytes:  32 << 20,
		totalBytes:     64 << 20,
		sendingBytes:   512 << 20,
		keepBytes:      1 << 30,
		trailing:       16,
		keepPrevious:   true,

		shutdown:   10 * time.Second,
		commit:     time.Minute,
		clock:      func() int64 { return int64(time.Since(base)) },
		leaseClock: newLeaseClock(time.Now).now,
	}
}
