package node

import (
	"bytes"
	"encoding/base64"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// sane is a configuration that starts; it never does here.
func sane() Config {
	return Config{Data: "data", UserDir: "no\x00directory", HTTP: "127.0.0.1:0", OpenOnboarding: true, Peer: "127.0.0.1:7947", Gossip: "127.0.0.1:7946", RequestTimeout: time.Second, Logger: slog.New(slog.DiscardHandler)}
}

func key(bytes int) string { return base64.StdEncoding.EncodeToString(make([]byte, bytes)) }

func TestConfig_OfTheCluster(t *testing.T) {
	t.Parallel()
	secure := func(c *Config) {
		c.ClusterCert, c.ClusterKey, c.ClusterCA, c.GossipKey = "cert", "key", "ca", key(32)
	}
	open := func(c *Config) { c.Peer, c.Gossip, c.Advertise = "0.0.0.0:7947", "0.0.0.0:7946", "10.0.0.1" }
	for _, row := range []struct {
		name   string
		change func(*Config)
		says   []string // nothing: it is fine
	}{
		{"as it comes", func(*Config) {}, nil},
		{"alone", func(c *Config) { c.Peer, c.Gossip = "", "" }, nil},
		{"alone, and keyed", func(c *Config) { c.Peer, c.Gossip, c.GossipKey = "", "", key(16) }, []string{"--gossip-key is for nodes that have others", "--join"}},
		{"alone, and keyed by a file", func(c *Config) { c.Peer, c.Gossip, c.GossipKeyFile = "", "", "key" }, []string{"--gossip-key-file is for nodes"}},
		{"alone, and secure", func(c *Config) { secure(c); c.Peer, c.Gossip, c.GossipKey = "", "", "" }, []string{"--cluster-cert is for nodes"}},
		{"two keys", func(c *Config) { c.GossipKey, c.GossipKeyFile = key(16), "key" }, []string{"--gossip-key and --gossip-key-file", "one of them"}},
		{"no port", func(c *Config) { c.Peer = "127.0.0.1" }, []string{"--peer", "host:port"}},
		{"port too high", func(c *Config) { c.Gossip = "127.0.0.1:70000" }, []string{"--gossip", "65535"}},
		{"localhost", func(c *Config) { c.Peer, c.Gossip = "localhost:1", "[::1]:2" }, nil},

		{"open peer port", func(c *Config) { c.Peer = "10.0.0.1:7947" }, []string{"--peer 10.0.0.1:7947", "--cluster-cert", "docs/install.md", "--insecure-cluster"}},
		{"open gossip port", func(c *Config) { c.Gossip = "10.0.0.1:7946" }, []string{"--gossip 10.0.0.1:7946", "openssl rand -base64 32", "--insecure-cluster"}},
		{"open and secure", func(c *Config) { open(c); secure(c) }, nil},
		{"open and insecure", func(c *Config) { open(c); c.InsecureCluster = true }, nil},
		{"open with a key in a file", func(c *Config) { open(c); secure(c); c.GossipKey, c.GossipKeyFile = "", "key" }, nil},
		{"open with TLS and no gossip key", func(c *Config) { open(c); secure(c); c.GossipKey = "" }, []string{"SWITCHYARD_GOSSIP_KEY"}},
		{"part of TLS", func(c *Config) { c.ClusterCert = "cert" }, []string{"give all three"}},
		{"part of TLS, insecure", func(c *Config) { c.ClusterCA, c.InsecureCluster = "ca", true }, []string{"give all three"}},

		{"two keys while one is replaced", func(c *Config) { c.GossipKey = key(32) + ", " + key(16) }, nil},
		{"three keys", func(c *Config) { c.GossipKey = key(32) + "," + key(16) + "\n" + key(24) }, []string{"holds 3 keys"}},
		{"the same key twice", func(c *Config) { c.GossipKey = key(32) + "," + key(32) }, []string{"the same key twice"}},
		{"no key", func(c *Config) { c.GossipKey = " , " }, []string{"holds 0 keys"}},
		{"key of 24 bytes", func(c *Config) { c.GossipKey = key(24) }, nil},
		{"key of 20 bytes", func(c *Config) { c.GossipKey = key(20) }, []string{"holds 20 bytes", "16, 24 or 32"}},
		{"key not base64", func(c *Config) { c.GossipKey = "hunter2!" }, []string{"not base64"}},

		{"everywhere, unadvertised", func(c *Config) { open(c); secure(c); c.Advertise = "" }, []string{"--advertise"}},
		{"everywhere by an empty host", func(c *Config) { secure(c); c.Peer = ":7947" }, []string{"--peer :7947", "--advertise"}},
		{"advertised by name", func(c *Config) { open(c); secure(c); c.Advertise = "node-1.switchyard" }, nil},
		{"advertised by IPv6", func(c *Config) { open(c); secure(c); c.Advertise = "fd00::1" }, nil},
		{"advertised with a port", func(c *Config) { open(c); secure(c); c.Advertise = "10.0.0.1:7947" }, []string{"without a port"}},
		{"advertised as everything", func(c *Config) { open(c); secure(c); c.Advertise = "0.0.0.0" }, []string{"nobody can reach"}},

		{"joining", func(c *Config) { c.Join = []string{"10.0.0.1", "node-2:1", "fd00::1", "[fd00::2]:7"} }, nil},
		{"joining nothing", func(c *Config) { c.Join = []string{":7946"} }, []string{"--join"}},
		{"joining a URL", func(c *Config) { c.Join = []string{"http://node-2"} }, []string{"--join"}},
		{"joining too many", func(c *Config) { c.Join = make([]string, 65) }, []string{"64"}},
		{"expecting", func(c *Config) { c.Join, c.BootstrapExpect = []string{"a"}, 3 }, nil},
		{"expecting from nowhere", func(c *Config) { c.BootstrapExpect = 3 }, []string{"--bootstrap-expect needs --join"}},
		{"expecting less than one", func(c *Config) { c.Join, c.BootstrapExpect = []string{"a"}, -1 }, []string{"--bootstrap-expect -1"}},

		{"client URL", func(c *Config) { c.ClientURL = "https://node-1.example:8443" }, nil},
		{"client URL with a path", func(c *Config) { c.ClientURL = "https://node-1.example/api" }, []string{"--client-url", "nothing behind the port"}},
		{"client URL of a node alone", func(c *Config) { c.Peer, c.Gossip, c.ClientURL = "", "", "http://node-1:8080" }, []string{"--client-url is for nodes that have others"}},
		{"replacing soon, alone", func(c *Config) { c.Peer, c.Gossip, c.ReplaceAfter = "", "", -5*time.Minute }, []string{"--replace-after -5m0s: must be from 1s"}},
		{"replacing soon", func(c *Config) { c.ReplaceAfter = time.Millisecond }, []string{"--replace-after 1ms: must be from 1s"}},
		{"comparing before, alone", func(c *Config) { c.Peer, c.Gossip, c.CompareEvery = "", "", -time.Second }, []string{"--compare-every -1s: must be at least 1s"}},
		{"comparing always", func(c *Config) { c.CompareEvery = time.Nanosecond }, []string{"--compare-every 1ns: must be at least 1s"}},
		{"zone", func(c *Config) { c.Zone = "eu-1.a" }, nil},
		{"zone with a blank", func(c *Config) { c.Zone = "eu 1" }, []string{"--zone"}},
		{"name with a slash", func(c *Config) { c.Name = "a/b" }, []string{"--node-name"}},
		{"name too long", func(c *Config) { c.Name = strings.Repeat("n", 64) }, []string{"--node-name"}},
		{"compared all the time", func(c *Config) { c.CompareEvery = time.Millisecond }, []string{"--compare-every"}},
		{"replaced at once", func(c *Config) { c.ReplaceAfter = time.Millisecond }, []string{"--replace-after"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := sane()
			row.change(&c)
			err := c.withAddresses().validate()
			if (err == nil) != (row.says == nil) {
				t.Fatalf("got %v", err)
			}
			for _, part := range row.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("lacks %q: %v", part, err)
				}
			}
			if err != nil && c.GossipKey != "" && strings.Contains(err.Error(), c.GossipKey) {
				t.Errorf("shows the key: %v", err)
			}
		})
	}
}

func TestConfig_WarnsOfAnInsecureCluster(t *testing.T) {
	t.Parallel()
	c := sane()
	c.InsecureCluster = true
	for _, peer := range []string{"127.0.0.1:7947", "10.0.0.1:7947"} {
		c.Peer = peer
		if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "--insecure-cluster") || !strings.Contains(w[0], peer) {
			t.Errorf("got %q", w)
		}
	}
	c.GossipKey = key(32)
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("with a key: %q", w)
	}
}

func TestConfig_OpensPortsForOthersOnlyWhenTold(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ given, want Config }{
		"nothing":          {},
		"a name":           {Config{Name: "node-1", Zone: "a"}, Config{}},
		"--peer":           {Config{Peer: "10.0.0.1:1"}, Config{Peer: "10.0.0.1:1", Gossip: "10.0.0.1:7946"}},
		"--gossip":         {Config{Gossip: "[::1]:1"}, Config{Peer: "[::1]:7947", Gossip: "[::1]:1"}},
		"both":             {Config{Peer: "127.0.0.1:1", Gossip: "127.0.0.2:2"}, Config{Peer: "127.0.0.1:1", Gossip: "127.0.0.2:2"}},
		"--join":           {Config{Join: []string{"a"}}, Config{Peer: "127.0.0.1:7947", Gossip: "127.0.0.1:7946"}},
		"expecting":        {Config{BootstrapExpect: 3}, Config{Peer: "127.0.0.1:7947", Gossip: "127.0.0.1:7946"}},
		"--advertise":      {Config{Advertise: "a"}, Config{Peer: "127.0.0.1:7947", Gossip: "127.0.0.1:7946"}},
		"an empty --join":  {Config{Join: []string{}}, Config{}},
		"what can't be it": {Config{Peer: "here"}, Config{Peer: "here", Gossip: "127.0.0.1:7946"}},
	} {
		if got := row.given.withAddresses(); got.Peer != row.want.Peer || got.Gossip != row.want.Gossip {
			t.Errorf("%s: --peer %q --gossip %q, want %q and %q", name, got.Peer, got.Gossip, row.want.Peer, row.want.Gossip)
		}
	}
}

func TestConfig_SeedsHaveAPort(t *testing.T) {
	t.Parallel()
	c := Config{Join: []string{"a", "b:1", "10.0.0.1", "fd00::1", "[fd00::2]:7"}}
	if got := c.seeds(); !slices.Equal(got, []string{"a:7946", "b:1", "10.0.0.1:7946", "[fd00::1]:7946", "[fd00::2]:7"}) {
		t.Errorf("got %q", got)
	}
}

func TestStart_NamesTheFlagOfAPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for flag, set := range map[string]func(*Config, string){
		"--http":    func(c *Config, a string) { c.HTTP = a },
		"--metrics": func(c *Config, a string) { c.Metrics = a },
		"--peer":    func(c *Config, a string) { c.Peer = a },
	} {
		var log bytes.Buffer
		c := sane()
		c.Data, c.Peer, c.Gossip, c.Logger = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0", slog.New(slog.NewTextHandler(&log, nil))
		set(&c, taken.Addr().String())
		_, err := Start(t.Context(), c)
		if err == nil || !strings.HasPrefix(err.Error(), flag+" "+taken.Addr().String()+": the port is taken") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// The error names the address that gossip can't have; what was opened before is closed.
func TestStart_GossipPortInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	c := sane()
	c.Data, c.Peer, c.Gossip, c.Logger = t.TempDir(), "127.0.0.1:0", taken.Addr().String(), slog.New(slog.DiscardHandler)
	if _, err := Start(t.Context(), c); err == nil || !strings.Contains(err.Error(), "gossip at "+c.Gossip) {
		t.Errorf("the error is %v", err)
	}
}
