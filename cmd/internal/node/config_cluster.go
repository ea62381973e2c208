package node

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"

	"switchyard/httpapi"
)

// Ports of nodes that have others beside them, where the flags name none. A --join
// without a port means the gossip port.
const (
	DefaultPeerPort   = "7947"
	DefaultGossipPort = "7946"
)

const (
	// maxJoin bounds the seeds, maxBootstrap the nodes waited for.
	maxJoin      = 64
	maxBootstrap = 99
)

// names matches the valid names of nodes and zones.
var names = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// withAddresses fills in Peer and Gossip where a setting says that the node has
// others beside it.
func (c Config) withAddresses() Config {
	if c.Peer == "" && c.Gossip == "" && c.Advertise == "" && len(c.Join) == 0 && c.BootstrapExpect == 0 {
		return c
	}
	beside := func(other, port string) string {
		host, _, err := net.SplitHostPort(other)
		if err != nil {
			host = "127.0.0.1"
		}
		return net.JoinHostPort(host, port)
	}
	peer, gossip := c.Peer, c.Gossip
	if peer == "" {
		c.Peer = beside(gossip, DefaultPeerPort)
	}
	if gossip == "" {
		c.Gossip = beside(peer, DefaultGossipPort)
	}
	return c
}

// clustered reports whether the node can have others beside it; after withAddresses.
func (c Config) clustered() bool { return c.Peer != "" }

// keyed reports whether a key for gossip and the peer port was given.
func (c Config) keyed() bool { return c.GossipKey != "" || c.GossipKeyFile != "" }

// validateCluster reports what can't work, or would not be safe, among the settings
// about other nodes.
func (c Config) validateCluster() error {
	if c.Name != "" && !names.MatchString(c.Name) {
		return fmt.Errorf("--node-name %q: must be 1 to 63 of A-Z a-z 0-9 . _ -, with a letter or digit at both ends", c.Name)
	}
	if c.Zone != "" && !names.MatchString(c.Zone) {
		return fmt.Errorf("--zone %q: must be 1 to 63 of A-Z a-z 0-9 . _ -, with a letter or digit at both ends", c.Zone)
	}
	if c.ReplaceAfter != 0 && (c.ReplaceAfter < time.Second || c.ReplaceAfter > 30*24*time.Hour) {
		return fmt.Errorf("--replace-after %s: must be from 1s to 720h", c.ReplaceAfter)
	}
	if c.CompareEvery < 0 || c.CompareEvery > 0 && c.CompareEvery < time.Second {
		return fmt.Errorf("--compare-every %s: must be at least 1s, or 0 to compare no replicas", c.CompareEvery)
	}
	if !c.clustered() {
		return c.validateAlone()
	}
	for _, a := range []struct{ flag, value string }{{"--peer", c.Peer}, {"--gossip", c.Gossip}} {
		if err := checkAddress(a.flag, a.value); err != nil {
			return err
		}
	}
	if err := c.validateSecrets(); err != nil {
		return err
	}
	if err := c.validateAdvertise(); err != nil {
		return err
	}
	if _, err := httpapi.ParseClientURL(c.ClientURL); err != nil {
		return fmt.Errorf("--client-url %q: %w", c.ClientURL, err)
	}
	return c.validateBootstrap()
}

// validateAlone refuses what makes no sense without other nodes, rather than to
// ignore it.
func (c Config) validateAlone() error {
	for _, s := range []struct {
		flag  string
		given bool
	}{
		{"--cluster-cert", c.ClusterCert != ""}, {"--cluster-key", c.ClusterKey != ""}, {"--cluster-ca", c.ClusterCA != ""},
		{"--gossip-key", c.GossipKey != ""}, {"--gossip-key-file", c.GossipKeyFile != ""}, {"--insecure-cluster", c.InsecureCluster}, {"--client-url", c.ClientURL != ""},
	} {
		if s.given {
			return fmt.Errorf("%s is for nodes that have others beside them, and this one would stay alone: give --peer and --gossip, or --join", s.flag)
		}
	}
	return nil
}

func (c Config) validateSecrets() error {
	given := 0
	for _, file := range []string{c.ClusterCert, c.ClusterKey, c.ClusterCA} {
		if file != "" {
			given++
		}
	}
	if given != 0 && given != 3 {
		return errors.New("--cluster-cert, --cluster-key and --cluster-ca go together: give all three, or none")
	}
	if c.GossipKey != "" && c.GossipKeyFile != "" {
		return errors.New("--gossip-key and --gossip-key-file say the same thing: give one of them")
	}
	if c.GossipKey != "" {
		if _, err := parseGossipKeys("--gossip-key", c.GossipKey); err != nil {
			return err
		}
	}
	if c.InsecureCluster {
		return nil
	}
	if given == 0 && !loopback(c.Peer) {
		return fmt.Errorf("--peer %s can be reached by other machines and would have no TLS: give --cluster-cert, --cluster-key and --cluster-ca "+
			"(docs/install.md shows how to make them), or --insecure-cluster where everybody on the network may read and write all data", c.Peer)
	}
	if !c.keyed() && !loopback(c.Gossip) {
		return fmt.Errorf("--gossip %s can be reached by other machines and would not be encrypted: set SWITCHYARD_GOSSIP_KEY to what "+
			"`openssl rand -base64 32` prints, the same on every node, or give --insecure-cluster where everybody on the network may join", c.Gossip)
	}
	return nil
}

func (c Config) validateAdvertise() error {
	if c.Advertise == "" {
		for _, a := range []struct{ flag, value string }{{"--peer", c.Peer}, {"--gossip", c.Gossip}} {
			if wildcard(a.value) {
				return fmt.Errorf("%s %s listens on every address of this machine: say with --advertise which one other nodes reach", a.flag, a.value)
			}
		}
		return nil
	}
	if ip := net.ParseIP(c.Advertise); ip != nil {
		if ip.IsUnspecified() {
			return fmt.Errorf("--advertise %s: nobody can reach that; give the address or name under which other nodes reach this one", c.Advertise)
		}
		return nil
	}
	if strings.ContainsAny(c.Advertise, ":/ ") {
		return fmt.Errorf("--advertise %q: must be an IP address or a host name, without a port; the ports are those of --peer and --gossip", c.Advertise)
	}
	return nil
}

func (c Config) validateBootstrap() error {
	if len(c.Join) > maxJoin {
		return fmt.Errorf("--join: %d addresses; a few are enough, and %d the most", len(c.Join), maxJoin)
	}
	for _, seed := range c.seeds() {
		if err := checkAddress("--join", seed); err != nil {
			return err
		}
	}
	if c.BootstrapExpect < 0 || c.BootstrapExpect > maxBootstrap {
		return fmt.Errorf("--bootstrap-expect %d: must be from 1 to %d", c.BootstrapExpect, maxBootstrap)
	}
	if c.BootstrapExpect > 0 && len(c.Join) == 0 {
		return errors.New("--bootstrap-expect needs --join, the same on every node: without it this node forms a cluster of its own")
	}
	return nil
}

// seeds are the gossip addresses of --join, each with its port.
func (c Config) seeds() []string {
	out := make([]string, 0, len(c.Join))
	for _, seed := range c.Join {
		out = append(out, withPort(seed))
	}
	return out
}

// withPort adds the gossip port where a seed has none.
func withPort(seed string) string {
	if ip := net.ParseIP(seed); ip != nil || !strings.Contains(seed, ":") {
		return net.JoinHostPort(strings.Trim(seed, "[]"), DefaultGossipPort)
	}
	return seed
}

func checkAddress(flag, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" && flag == "--join" {
		return fmt.Errorf("%s %q: must be host:port", flag, address)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%s %q: the port must be a number up to 65535", flag, address)
	}
	return nil
}

// wildcard reports whether an address means all of the machine's addresses.
func wildcard(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "" || net.ParseIP(host).IsUnspecified())
}
