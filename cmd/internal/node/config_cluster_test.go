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
	return Config{Data: "data", HTTP: "127.0.0.1:0", Peer: "127.0.0.1:7947", Gossip: "127.0.0.1:7946", RequestTimeout: time.Second, Logger: slog.New(slog.DiscardHandler)}
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
		{"only gossip", func(c *Config) { c.Peer = "" }, []string{"--peer and --gossip go together"}},
		{"alone, and joining", func(c *Config) { c.Peer, c.Gossip, c.Join = "", "", []string{"a"} }, []string{"--join needs --peer and --gossip"}},
		{"alone, and keyed", func(c *Config) { c.Peer, c.Gossip, c.GossipKey = "", "", key(16) }, []string{"--gossip-key needs --peer"}},
		{"no port", func(c *Config) { c.Peer = "127.0.0.1" }, []string{"--peer", "host:port"}},
		{"port too high", func(c *Config) { c.Gossip = "127.0.0.1:70000" }, []string{"--gossip", "65535"}},
		{"localhost", func(c *Config) { c.Peer, c.Gossip = "localhost:1", "[::1]:2" }, nil},

		{"open peer port", func(c *Config) { c.Peer = "10.0.0.1:7947" }, []string{"--peer 10.0.0.1:7947", "--cluster-cert", "docs/operations.md", "--insecure-cluster"}},
		{"open gossip port", func(c *Config) { c.Gossip = "10.0.0.1:7946" }, []string{"--gossip 10.0.0.1:7946", "openssl rand -base64 32", "--insecure-cluster"}},
		{"open and secure", func(c *Config) { open(c); secure(c) }, nil},
		{"open and insecure", func(c *Config) { open(c); c.InsecureCluster = true }, nil},
		{"open with TLS and no gossip key", func(c *Config) { open(c); secure(c); c.GossipKey = "" }, []string{"SWITCHYARD_GOSSIP_KEY"}},
		{"part of TLS", func(c *Config) { c.ClusterCert = "cert" }, []string{"give all three"}},
		{"part of TLS, insecure", func(c *Config) { c.ClusterCA, c.InsecureCluster = "ca", true }, []string{"give all three"}},

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

		{"zone", func(c *Config) { c.Zone = "eu-1.a" }, nil},
		{"zone with a blank", func(c *Config) { c.Zone = "eu 1" }, []string{"--zone"}},
		{"name with a slash", func(c *Config) { c.Name = "a/b" }, []string{"--node-name"}},
		{"name too long", func(c *Config) { c.Name = strings.Repeat("n", 64) }, []string{"--node-name"}},
		{"replaced at once", func(c *Config) { c.ReplaceAfter = time.Millisecond }, []string{"--replace-after"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			c := sane()
			row.change(&c)
			err := c.validate()
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
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("on loopback: %q", w)
	}
	c.Peer = "10.0.0.1:7947"
	if w := c.Warnings(); len(w) != 1 || !strings.Contains(w[0], "--insecure-cluster") {
		t.Errorf("got %q", w)
	}
}

func TestConfig_SeedsHaveAPort(t *testing.T) {
	t.Parallel()
	c := Config{Join: []string{"a", "b:1", "10.0.0.1", "fd00::1", "[fd00::2]:7"}}
	if got := c.seeds(); !slices.Equal(got, []string{"a:7946", "b:1", "10.0.0.1:7946", "[fd00::1]:7946", "[fd00::2]:7"}) {
		t.Errorf("got %q", got)
	}
}

func TestConfig_AdvertisesWhatOthersReach(t *testing.T) {
	t.Parallel()
	for _, row := range [][3]string{
		{"", "10.0.0.1:80", "10.0.0.1:80"},
		{"node-1", "0.0.0.0:80", "node-1:80"},
		{"fd00::1", "[::]:80", "[fd00::1]:80"},
		{"203.0.113.1", "10.0.0.1:80", "203.0.113.1:80"},
		{"node-1", "127.0.0.1:80", "127.0.0.1:80"}, // nobody else reaches that
	} {
		if got := (Config{Advertise: row[0]}).advertised(row[1]); got != row[2] {
			t.Errorf("%s as %s: %s", row[1], row[0], got)
		}
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
