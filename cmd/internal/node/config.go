package node

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"switchyard/actors/tracker"
	"switchyard/cluster"
	"switchyard/console/signin"
	"switchyard/httpapi"
	"switchyard/storage"
)

// Config is a node's configuration, as the operator sets it.
type Config struct {
	// Data is the directory of the node's state; made when it is not there.
	Data string
	// HTTP and Metrics are listen addresses; an empty Metrics is off.
	HTTP    string
	Metrics string
	// Pprof serves Go's profiles at Metrics, too.
	Pprof bool
	// Name of the node in its cluster, kept at the first start; empty means the kept
	// one, or cluster.DefaultNodeName.
	Name string
	// Shards is the number of workspace shards, fixed at the first start; 0 means the
	// fixed one, or cluster.DefaultShards.
	Shards int

	// Peer and Gossip are the listen addresses for other nodes. When both are empty, and
	// Advertise, Join and BootstrapExpect too, the node is alone and opens neither;
	// otherwise an empty one is at the host of the other, or on loopback, and has the
	// port DefaultPeerPort or DefaultGossipPort.
	Peer   string
	Gossip string
	// Advertise is the host under which other nodes reach this one; empty means that
	// of Peer and Gossip.
	Advertise string
	// Join are the gossip addresses of nodes to find a cluster by.
	Join []string
	// BootstrapExpect is how many empty nodes form a cluster together; 0: this one
	// never forms a cluster with others (Decision 52).
	BootstrapExpect int
	// Zone is where the node stands, for the spread of replicas.
	Zone string
	// ReplaceAfter is how long a node may be gone before its replicas are made anew
	// elsewhere; 0 means 5 minutes.
	ReplaceAfter time.Duration
	// CompareEvery is the time after which the replicas of a shard are compared again; 0 means never.
	CompareEvery time.Duration
	// MaxFormat is the newest format of data to which this node agrees; 0 means the newest that the
	// program knows.
	MaxFormat storage.Format
	// ClusterCert, ClusterKey and ClusterCA are the PEM files of mutual TLS between
	// nodes.
	ClusterCert, ClusterKey, ClusterCA string
	// GossipKey, in base64, encrypts gossip, and nodes prove to each other on their peer
	// ports that they have it; GossipKeyFile is a file with the key. While the key is replaced
	// there are two, of which this node uses the first. Without either the
	// key is in UserDir, where the first node of the user makes it.
	GossipKey, GossipKeyFile string
	// UserDir is the directory for files that all nodes of a user share; empty: switchyard
	// in the user's configuration directory.
	UserDir string
	// InsecureCluster lets Peer and Gossip be reached by others without those.
	InsecureCluster bool

	// RootToken is the operator's token; empty turns operator access off.
	RootToken string
	// OpenOnboarding lets anyone create a workspace (Decision 12).
	OpenOnboarding bool
	// PublicURL is how clients reach the service; empty means the HTTP address.
	PublicURL string
	// ClientURL is how clients reach this very node; answers that other nodes forward
	// name it (Decision 90). Empty: they name none.
	ClientURL string
	// TLSCert and TLSKey are the PEM files of the certificate that clients are shown at
	// HTTP, and of its key; empty: clients use no TLS.
	TLSCert, TLSKey string
	// CORSOrigins are the origins whose pages may read answers in browsers (Decision 73).
	CORSOrigins []string
	// NoConsole leaves the console out, and ConsoleSession is how long a session of it lasts;
	// 0 means 12 hours (Decision 93).
	NoConsole      bool
	ConsoleSession time.Duration
	// OIDC is the identity provider that signs people in to the console; without an Issuer
	// there is none.
	OIDC signin.Config
	// SMSSecret and VCSSecret sign the calls of providers whose URLs name no workspace;
	// empty turns their endpoints off. All nodes need the same.
	SMSSecret, VCSSecret string
	// OpenInboundRoutes makes the claim of a number or repository that nobody has active
	// at once, without the operator (Decision 47).
	OpenInboundRoutes bool
	// InboundRoutes and InboundClaims bound the routes of a workspace and the pending
	// ones of a key; 0 means the defaults of tracker.InboundSettings.
	InboundRoutes, InboundClaims int
	// WebhooksAllowHTTP lets webhooks have http URLs; WebhooksAllowPrivate lets them
	// lead to any address, and WebhooksAllowCIDR to those in ranges such as
	// 10.1.0.0/16 (Decision 46).
	WebhooksAllowHTTP, WebhooksAllowPrivate bool
	WebhooksAllowCIDR                       []string
	// WebhooksPerHost is how many webhooks of a workspace may lead to one host; 0 means
	// tracker.DefaultWebhooksPerHost, or as many as a workspace may have if the API is for this
	// machine alone.
	WebhooksPerHost int
	// WebhooksMaxData bounds data and changes in the body of a delivery, in bytes each;
	// 0 means tracker.DefaultDeliveryPart.
	WebhooksMaxData int
	WebhookRates    WebhookRates
	// Rate limits the requests of each credential on this node.
	Rate httpapi.Rate
	// Shares bound what one caller or address may take.
	Shares Shares
	// Memory is the number of bytes that the process should stay below; 0 means
	// DefaultMemory. The caches of the store follow from it.
	Memory uint64
	// DiskReserve is the number of bytes to keep free on the disk; changes are refused
	// below it. 0 means a fifth of the file system, at most 256 MiB.
	DiskReserve uint64
	// LimitBytes and LimitAnswerBytes are how much a workspace may store in all, and in
	// answers kept for idempotency keys; 0: no limit, nil: the default, which depends on
	// whether other machines reach HTTP.
	LimitBytes, LimitAnswerBytes *uint64
	// The limits of workspaces that have none of their own; 0: no limit.
	LimitIssues, LimitSessions, LimitTokens, LimitSubscriptions uint64
	LimitRequestsPerSecond, LimitCreatesPerSecond               uint64
	// AuditRetention is how long entries of the audit are kept; 0 means 9600 hours.
	AuditRetention time.Duration
	// SweepInterval is the time between two sweeps of a workspace's retention; 0 means 1 hour.
	SweepInterval time.Duration
	// Backups schedules backups of the cluster.
	Backups Backups
	// StallAfter is how long a running session may be silent before it counts as
	// stalled; 0 means 10 minutes.
	StallAfter time.Duration
	// LaneLife is how long a lane token lasts unused, where no lease or budget ends its
	// session; 0 means 7 days.
	LaneLife time.Duration
	// MaxActiveChildren is how many children of a session may be unfinished; 0 means 10.
	MaxActiveChildren int
	// Idle is how long a workspace without requests stays in memory; 0 means a minute.
	Idle time.Duration
	// RequestTimeout bounds the time to answer any request, besides the wait that it asks
	// for.
	RequestTimeout time.Duration
	// SlowOperations is the time from which on operations are logged with where it went;
	// 0: none are.
	SlowOperations time.Duration
	// TraceEndpoint is the URL of a collector for traces (OTLP over HTTP); empty: there are no
	// traces. TraceRatio is the share of requests that are traced.
	TraceEndpoint string
	TraceRatio    float64
	Version       string
	Logger        *slog.Logger
}

// leastAuditRetention is the shortest time for which entries of the audit can be kept.
const leastAuditRetention = time.Hour

// validate reports what can't work before anything is opened.
func (c Config) validate() error {
	if c.Data == "" {
		return fmt.Errorf("no data directory: give --data")
	}
	if err := checkAddress("--http", c.HTTP); err != nil {
		return err
	}
	if c.Shards < 0 || c.Shards > cluster.MaxShards {
		return fmt.Errorf("--shards %d: must be from 1 to %d", c.Shards, cluster.MaxShards)
	}
	if c.RequestTimeout < time.Second || c.RequestTimeout > time.Minute {
		return fmt.Errorf("--request-timeout %s: must be from 1s to 1m", c.RequestTimeout)
	}
	if c.SlowOperations < 0 {
		return fmt.Errorf("--slow-operations %s: must be 0, for none, or more", c.SlowOperations)
	}
	if c.SweepInterval < 0 || c.SweepInterval > 0 && c.SweepInterval < 10*time.Millisecond {
		return fmt.Errorf("--sweep-interval %s: must be at least 10ms", c.SweepInterval)
	}
	if c.AuditRetention < 0 || c.AuditRetention > 0 && c.AuditRetention < leastAuditRetention {
		return fmt.Errorf("--audit-retention %s: must be at least %s", c.AuditRetention, leastAuditRetention)
	}
	if c.StallAfter < 0 || c.StallAfter > 0 && c.StallAfter < time.Second {
		return fmt.Errorf("--stall-after %s: must be at least 1s", c.StallAfter)
	}
	if c.LaneLife < 0 || c.LaneLife > 0 && c.LaneLife < time.Minute {
		return fmt.Errorf("--lane-life %s: must be at least 1m", c.LaneLife)
	}
	for flag, n := range map[string]int{"--inbound-routes-per-workspace": c.InboundRoutes, "--inbound-claims-per-key": c.InboundClaims} {
		if n < 0 || n > tracker.MaxInboundRoutes {
			return fmt.Errorf("%s %d: must be from 1 to %d", flag, n, tracker.MaxInboundRoutes)
		}
	}
	if c.MaxActiveChildren < 0 || c.MaxActiveChildren > 1000 {
		return fmt.Errorf("--max-active-children %d: must be from 1 to 1000", c.MaxActiveChildren)
	}
	if err := c.validateMemory(); err != nil {
		return err
	}
	if c.Pprof && c.Metrics == "" {
		return fmt.Errorf("--pprof needs --metrics: profiles are served at its address")
	}
	if n := len(c.RootToken); n > 0 && n < 16 {
		return fmt.Errorf("the root token has %s: it needs at least 16", tracker.Counted(n, "character", "characters"))
	}
	if _, err := c.webhookPolicy(); err != nil {
		return err
	}
	if _, _, err := c.limits(); err != nil {
		return err
	}
	if err := c.validateTLS(); err != nil {
		return err
	}
	if err := c.validatePublicURL(); err != nil {
		return err
	}
	if err := httpapi.CheckOrigins(c.CORSOrigins); err != nil {
		return fmt.Errorf("--cors-origins: %w", err)
	}
	if err := c.validateConsole(); err != nil {
		return err
	}
	if err := c.validateBackups(); err != nil {
		return err
	}
	if err := c.validateTraces(); err != nil {
		return err
	}
	return c.validateCluster()
}

// validatePublicURL refuses a URL to which the service can't append its paths. The scheme is compared in lower
// case elsewhere. The error does not repeat the URL, which may have a password.
func (c Config) validatePublicURL() error {
	text := c.PublicURL
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || !strings.HasPrefix(text, u.Scheme+"://") || u.Hostname() == "" || u.User != nil ||
		strings.ContainsAny(text, "?#") || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return errors.New("--public-url: must be like https://HOST or https://HOST:PORT, in ASCII, without a user, a query or a fragment")
	}
	return nil
}

// Warnings returns the risks of a valid configuration.
func (c Config) Warnings() []string {
	c = c.withAddresses()
	w := c.shareWarnings()
	for _, secret := range [...]struct{ flag, value string }{{"--sms-secret", c.SMSSecret}, {"--vcs1-secret", c.VCSSecret}} {
		if n := len(secret.value); n > 0 && n < 16 {
			w = append(w, fmt.Sprintf("%s has %s: use a secret of 16 or more", secret.flag, tracker.Counted(n, "character", "characters")))
		}
	}
	if c.OpenInboundRoutes && c.exposed() {
		w = append(w, "--inbound-routes=open: the workspace that names a repository or number first gets what is sent about it")
	}
	if c.Metrics != "" && !loopback(c.Metrics) {
		w = append(w, "metrics are served without authentication on "+c.Metrics)
		if c.Pprof {
			w = append(w, "--pprof: anyone who reaches "+c.Metrics+" can read profiles of this node, and slow it down by asking for them")
		}
	}
	if c.SMSSecret != "" && c.PublicURL == "" {
		w = append(w, "--sms-secret without --public-url: text messages are signed with the URL their provider calls, which this node can only guess")
	}
	if c.clustered() && c.InsecureCluster && !c.keyed() && (c.ClusterCert == "" || !loopback(c.Gossip)) {
		w = append(w, "--insecure-cluster: every process that reaches "+c.Peer+" or "+c.Gossip+" can join the cluster, and read and change all data")
	}
	w = append(w, c.consoleWarnings()...)
	if c.WebhooksAllowPrivate {
		w = append(w, "--webhooks-allow-private: admins of any workspace can have requests sent to every address that this node reaches")
	}
	return w
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
