package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"switchyard/cmd/internal/node"
	"switchyard/internal/processors"
	"switchyard/internal/resident"
)

type serveCmd struct {
	Data              string        `help:"Directory of the node's state." default:"./data"`
	HTTP              string        `name:"http" help:"Address of the API." default:"127.0.0.1:8080"`
	Metrics           string        `help:"Address of /metrics; --metrics= turns it off." default:"127.0.0.1:9090"`
	Pprof             bool          `help:"Serve Go's profiles at /debug/pprof/ on --metrics."`
	NodeName          string        `help:"Name of this node, kept at its first start (${default_node} when not given)." placeholder:"NAME"`
	Shards            int           `help:"Number of workspace shards, fixed at the first start (${default_shards} when not given)." placeholder:"N"`
	RootTokenFile     string        `help:"File with the operator's token; SWITCHYARD_ROOT_TOKEN holds the token itself." placeholder:"FILE"`
	Onboarding        string        `help:"Who may onboard a workspace: anyone (open) or the operator (root)." enum:"open,root" default:"open"`
	PublicURL         string        `name:"public-url" help:"How clients reach the service." placeholder:"URL"`
	ClientURL         string        `name:"client-url" help:"The URL at which clients reach this very node. Clients get it when another node forwards their requests to this one, so that they can ask it directly." placeholder:"URL" group:"Cluster"`
	TLSCert           string        `name:"tls-cert" help:"Certificate for clients of --http, PEM, with what is between it and its authority. It is read again when it changes." placeholder:"FILE"`
	TLSKey            string        `name:"tls-key" help:"Its private key, PEM." placeholder:"FILE"`
	CORSOrigins       []string      `name:"cors-origins" help:"Origins whose pages may read the API's answers in browsers, such as https://app.example, compared exactly; repeatable." placeholder:"ORIGIN"`
	RequestTimeout    time.Duration `help:"Every request is answered within this." default:"10s"`
	SlowOperations    time.Duration `help:"Log operations that take at least this long, and where the time went; 0 for none." default:"1s"`
	TraceEndpoint     string        `help:"Send traces to this collector, OTLP over HTTP, such as http://127.0.0.1:4318; OTEL_EXPORTER_OTLP_HEADERS has its credentials." placeholder:"URL"`
	TraceRatio        float64       `help:"Share of requests and webhook deliveries that are traced, 0 to 1." default:"0.01"`
	SMSSecret         string        `name:"sms-secret" help:"What the provider of text messages signs with. Better in SWITCHYARD_SMS_SECRET, where others don't see it." placeholder:"SECRET"`
	VCSSecret         string        `name:"vcs1-secret" env:"SWITCHYARD_VCS1_SECRET" help:"What the host of repositories signs with. Better in SWITCHYARD_VCS1_SECRET, where others don't see it." placeholder:"SECRET"`
	InboundRoutes     string        `help:"What a workspace's claim of a repository or number is until the operator confirms it: pending (root), or active at once, first come first served (open)." enum:"root,open" default:"root"`
	InboundPerSpace   int           `name:"inbound-routes-per-workspace" help:"How many repositories and numbers a workspace may have or claim." default:"500"`
	InboundPerKey     int           `name:"inbound-claims-per-key" help:"How many workspaces may have a pending claim of one repository or number; one more removes the oldest." default:"100"`
	RateLimit         string        `help:"Requests a token may have this node carry out, such as 100/s, 600/m or 10000/h." default:"off"`
	StallAfter        time.Duration `help:"How long a running session may be silent before it counts as stalled." default:"10m"`
	LaneLife          time.Duration `help:"How long a lane token lasts unused, where no lease or budget ends its session." default:"168h"`
	MaxActiveChildren int           `help:"How many children of a session may be unfinished." default:"10"`
	LimitBytes        *byteSize     `help:"What a workspace may store, attachments, events and kept answers included; 0: no limit (64GiB where only this machine reaches the API, else 10GiB)." placeholder:"SIZE"`
	LimitAnswerBytes  *byteSize     `help:"What a workspace may store in answers kept for idempotency keys; 0: no limit (16GiB where only this machine reaches the API, else 1GiB)." placeholder:"SIZE"`
	Memory            byteSize      `help:"Memory that this node should stay below: its caches follow from it, and GOMEMLIMIT where that is not set (512MiB when not given)." placeholder:"SIZE"`
	DiskReserve       byteSize      `help:"Free space to keep on the disk, such as 512MiB: below it changes are refused (a fifth of the disk, at most 256MiB, when not given)." placeholder:"SIZE"`

	MaxConnections         int      `help:"Client connections of this node; the last sixteenth is kept for known callers, the operator and health checks." placeholder:"N" group:"Shares"`
	AddressConnections     int      `help:"Connections of one client address." placeholder:"N" group:"Shares"`
	AddressWaiting         int      `help:"Waiting requests and event streams of one client address." placeholder:"N" group:"Shares"`
	WorkspaceWaiting       int      `help:"Waiting requests of a workspace; beyond, they are answered at once." placeholder:"N" group:"Shares"`
	WorkspaceStreams       int      `help:"Event streams of a workspace." placeholder:"N" group:"Shares"`
	Exports                int      `help:"Exports of workspaces that this node sends at once, beside the operator's; a workspace has half of them at most." placeholder:"N" group:"Shares"`
	MaxBytesInFlight       byteSize `help:"Request bodies in hand, and answers and parts of event streams not taken yet, of over 16KiB each, in all." placeholder:"SIZE" group:"Shares"`
	WorkspaceBytesInFlight byteSize `help:"The same of one workspace." placeholder:"SIZE" group:"Shares"`
	AnonymousBytesInFlight byteSize `help:"The same of all callers without a valid credential; an address may have a quarter." placeholder:"SIZE" group:"Shares"`
	SignInRate             string   `help:"Sign-ins to the console that one address may try, such as 60/m; off for no bound." placeholder:"N/m" group:"Shares"`
	OnboardingRate         string   `help:"Workspaces that one address, or one user, may ask for, such as 20/h; off for no bound." placeholder:"N/h" group:"Shares"`
	AnonymousRate          string   `help:"Requests without a valid credential that one address may send, such as 6000/m; off for no bound." placeholder:"N/m" group:"Shares"`
	WorkspacesPerUser      int      `help:"Workspaces that a user may make and keep." placeholder:"N" group:"Shares"`
	TrustedProxies         []string `help:"Addresses of proxies whose --forwarded-header has the client's address; repeatable." placeholder:"CIDR" group:"Shares"`
	ForwardedHeader        string   `help:"Header in which trusted proxies append the client's address: X-Forwarded-For or Forwarded." default:"X-Forwarded-For" group:"Shares"`

	Console              bool          `help:"Serve the console at /console/; --console=false leaves it out." default:"true" group:"Console"`
	ConsoleSession       time.Duration `help:"How long a session of the console lasts." default:"12h" group:"Console"`
	OIDCIssuer           string        `name:"oidc-issuer" env:"SWITCHYARD_OIDC_ISSUER" help:"Issuer of the identity provider that signs people in to the console (OpenID Connect)." placeholder:"URL" group:"Console"`
	OIDCClientID         string        `name:"oidc-client-id" env:"SWITCHYARD_OIDC_CLIENT_ID" help:"The service's client id at the identity provider." placeholder:"ID" group:"Console"`
	OIDCClientSecretFile string        `name:"oidc-client-secret-file" env:"SWITCHYARD_OIDC_CLIENT_SECRET_FILE" help:"File with the service's client secret at the identity provider." placeholder:"FILE" group:"Console"`

	WebhooksAllowHTTP    bool     `name:"webhooks-allow-http" help:"Deliver webhooks to http URLs too, in the clear." group:"Webhooks"`
	WebhooksAllowPrivate bool     `help:"Deliver webhooks to private, loopback and other special addresses too." group:"Webhooks"`
	WebhooksAllowCIDR    []string `name:"webhooks-allow-cidr" help:"Deliver webhooks to these addresses too, private or not; repeatable." placeholder:"CIDR" group:"Webhooks"`

	WebhooksPerHost           *int      `help:"How many webhooks of a workspace may lead to one host (all of them, or 10 where --http or --public-url is not of this machine alone)." placeholder:"N" group:"Webhooks"`
	WebhooksMaxData           byteSize  `help:"Bytes that data, and changes, of an event may have in a delivery; larger ones are left out, and the delivery has the address to read them at." default:"256KiB" group:"Webhooks"`
	WebhooksWorkspaceRequests perSecond `help:"Webhook deliveries of a workspace in a second; more wait (off, or 50 where --http or --public-url is not of this machine alone)." placeholder:"N" group:"Webhooks"`
	WebhooksWorkspaceBytes    perSecond `help:"Bytes of webhook deliveries of a workspace in a second (off, or 2MiB)." placeholder:"SIZE" group:"Webhooks"`
	WebhooksHostRequests      perSecond `help:"Webhook deliveries to a host in a second, from this node (off, or 200)." placeholder:"N" group:"Webhooks"`
	WebhooksHostBytes         perSecond `help:"Bytes of webhook deliveries to a host in a second, from this node (off, or 8MiB)." placeholder:"SIZE" group:"Webhooks"`

	LimitIssues            uint64 `help:"Issues that a workspace may have; 0: no limit." placeholder:"N" group:"Limits of workspaces"`
	LimitSessions          uint64 `help:"Sessions of a workspace that may be unfinished; 0: no limit." placeholder:"N" group:"Limits of workspaces"`
	LimitTokens            uint64 `help:"Tokens that a workspace may have; 0: no limit." placeholder:"N" group:"Limits of workspaces"`
	LimitSubscriptions     uint64 `help:"Webhook subscriptions that a workspace may have; 0: no limit." placeholder:"N" group:"Limits of workspaces"`
	LimitRequestsPerSecond uint64 `help:"Requests that a workspace may send in a second; 0: no limit." placeholder:"N" group:"Limits of workspaces"`
	LimitCreatesPerSecond  uint64 `help:"Issues that a workspace may create in a second; 0: no limit." placeholder:"N" group:"Limits of workspaces"`

	AuditRetention time.Duration `help:"How long entries of the audit are kept." default:"9600h"`
	SweepInterval  time.Duration `help:"Time between two sweeps of what workspaces keep only for some days." default:"1h"`

	BackupTo         string         `help:"Take backups of the cluster into this directory, which all nodes reach, or into s3://BUCKET/PREFIX. The node that owns the directory shard takes them." placeholder:"DIR" group:"Backups"`
	BackupEvery      *time.Duration `help:"Time between two backups (24h when not given)." placeholder:"TIME" group:"Backups"`
	BackupLogEvery   *time.Duration `help:"Time between two copies of what is new in the logs of the shards; they lead to any moment between backups. 0 copies none (1m when not given)." placeholder:"TIME" group:"Backups"`
	BackupKeep       int            `help:"Number of backups to keep; 0 keeps all." placeholder:"N" group:"Backups"`
	BackupKeyFile    string         `help:"File with the key that encrypts the backups, from backup key." placeholder:"FILE" group:"Backups"`
	BackupS3Endpoint string         `name:"backup-s3-endpoint" env:"SWITCHYARD_BACKUP_S3_ENDPOINT" help:"URL of the service that has the bucket (that of AWS when not given); AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN have the credentials." placeholder:"URL" group:"Backups"`
	BackupS3Region   string         `name:"backup-s3-region" env:"SWITCHYARD_BACKUP_S3_REGION" help:"Region of the bucket (AWS_REGION, or us-east-1, when not given)." placeholder:"NAME" group:"Backups"`

	Peer            string        `help:"Address for other nodes: replication, forwarded requests. A node with none of --peer, --gossip, --advertise, --join and --bootstrap-expect is alone and opens no such port (127.0.0.1:7947 when not given)." placeholder:"ADDRESS" group:"Cluster"`
	Gossip          string        `help:"Address for finding other nodes, TCP and UDP (127.0.0.1:7946 when not given)." placeholder:"ADDRESS" group:"Cluster"`
	Advertise       string        `help:"Host under which other nodes reach this one, when it is not that of --peer." placeholder:"HOST" group:"Cluster"`
	Join            []string      `help:"Gossip addresses of nodes to find the cluster by; without it an empty node forms a cluster of one." placeholder:"HOST[:PORT]" group:"Cluster"`
	BootstrapExpect int           `help:"Form a cluster once this many empty nodes see each other; with --join on each of them." placeholder:"N" group:"Cluster"`
	Zone            string        `help:"Where this node stands; replicas of a shard are spread over zones." placeholder:"NAME" group:"Cluster"`
	ReplaceAfter    time.Duration `help:"How long a node may be gone before its replicas are made anew elsewhere." default:"5m" group:"Cluster"`
	CompareEvery    time.Duration `help:"Time after which the replicas of a shard are compared again; 0 compares none." default:"24h" group:"Cluster"`
	MaxFormat       int           `help:"Newest format of data to which this node agrees (the newest this version knows when not given). A cluster that must be able to go back to an older version needs it; see docs/upgrade.md." placeholder:"N" group:"Cluster"`
	ClusterCert     string        `help:"Certificate this node shows other nodes, PEM." placeholder:"FILE" group:"Cluster"`
	ClusterKey      string        `help:"Its private key, PEM." placeholder:"FILE" group:"Cluster"`
	ClusterCA       string        `name:"cluster-ca" help:"Authority that signed the nodes' certificates, PEM." placeholder:"FILE" group:"Cluster"`
	GossipKey       string        `help:"Encrypts gossip, and is proven on --peer: base64 of 16, 24 or 32 bytes, the same on every node; two with a comma between while it is replaced. Better in SWITCHYARD_GOSSIP_KEY, where others don't see it." placeholder:"KEY" group:"Cluster"`
	GossipKeyFile   string        `help:"File that holds the key (without a key: switchyard/gossip-key in the user's configuration directory, made at the first start)." placeholder:"FILE" group:"Cluster"`
	InsecureCluster bool          `help:"Allow --peer and --gossip on addresses others reach without TLS and key, and make no key." group:"Cluster"`

	LogFormat string `help:"text or json." enum:"text,json" default:"text"`
	LogLevel  string `help:"debug, info, warn or error." enum:"debug,info,warn,error" default:"info"`
}

// stopWithin bounds the graceful stop after SIGTERM.
const stopWithin = 10 * time.Second

func (s serveCmd) Run() error {
	if err := s.refuseZeros(); err != nil {
		return err
	}
	logger := s.logger()
	slog.SetDefault(logger)
	// Libraries print by themselves: net/http logs data of webhooks' receivers that send
	// more than announced, without a limit.
	slog.SetLogLoggerLevel(slog.LevelDebug)
	cfg, err := s.nodeConfig(logger)
	if err != nil {
		return err
	}
	held, _ := os.ReadDir(s.Data) // whether it can be used at all is found out below
	first := len(held) == 0
	for _, w := range cfg.Warnings() {
		logger.Warn(w)
	}
	stop, cancel := interruptible()
	defer cancel()
	if limit := cfg.GoMemory(); os.Getenv("GOMEMLIMIT") == "" && limit > 0 {
		debug.SetMemoryLimit(limit)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(cfg.GCPercent())
	}
	managed, end := context.WithCancel(context.Background())
	var managing sync.WaitGroup
	managing.Go(func() { processors.Manage(managed, resident.Release) })
	defer managing.Wait()
	defer end()
	started := time.Now()
	n, err := node.Start(stop, cfg)
	if err != nil {
		return err
	}
	s.announce(n, first)
	failure := n.Join(stop)
	if failure == nil {
		var ready sync.WaitGroup
		ready.Go(func() {
			if err := n.WaitReady(stop); err == nil {
				logger.Info("ready", "after", time.Since(started).Round(time.Millisecond), "data", s.Data)
				resident.Release() // most of what is in memory was needed for the start alone
			}
		})
		failure = n.Wait(stop)
		cancel()
		ready.Wait()
	}
	if errors.Is(failure, context.Canceled) { // asked to, also before it came to its cluster
		logger.Info("stopping")
		failure = nil
	}
	cancel() // a second signal ends the process at once
	ctx, done := context.WithTimeout(context.Background(), stopWithin)
	defer done()
	stopped := n.Stop(ctx)
	if failure != nil && errors.Is(stopped, failure) { // the data directory is gone
		failure = nil
	}
	return errors.Join(failure, stopped)
}

// announce says where the node listens and, at its first start, how to begin.
func (s serveCmd) announce(n *node.Node, first bool) {
	fmt.Printf("Switchyard %s listens on %s%s\n", version, n.Scheme(), n.HTTPAddr())
	if n.MetricsAddr() != "" {
		fmt.Printf("Metrics are on http://%s/metrics\n", n.MetricsAddr())
	}
	if n.PeerAddr() != "" {
		fmt.Printf("Other nodes reach this one on %s (peer) and %s (gossip)\n", n.PeerAddr(), n.GossipAddr())
	}
	if first {
		auth := ""
		if s.Onboarding == "root" {
			auth = " -H \"Authorization: Bearer $SWITCHYARD_ROOT_TOKEN\""
		}
		fmt.Printf("\nMake a workspace; the answer carries its admin token:\n\n  curl -s %s%s/workspaces/onboard%s -H 'Content-Type: application/json' -d '{\"name\":\"Acme\",\"slug\":\"acme\"}'\n\n", n.Scheme(), n.HTTPAddr(), auth)
	}
}

func (s serveCmd) logger() *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(s.LogLevel)) // the flag's enum allows only valid ones
	options := &slog.HandlerOptions{Level: level}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}
