package gossip

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"switchyard/cluster/membership"
)

// DefaultPort is the port of an address without one.
const DefaultPort = 7946

// Bounds of one round of contacts.
const (
	maxContacts   = 16
	lookupTimeout = 3 * time.Second
)

// ContactOutcome is the outcome of contacting an address.
type ContactOutcome int

// The outcomes of a contact.
const (
	ContactOK           ContactOutcome = iota // gossip was exchanged
	ContactUnreachable                        // no answer, or the name can't be looked up
	ContactOtherKey                           // the other side uses another gossip key
	ContactOtherCluster                       // the other side belongs to another cluster
)

// ContactResult is the outcome for one address, or for one name that could not be looked up.
type ContactResult struct {
	Addr    string
	Outcome ContactOutcome
	Cluster string // set for ContactOtherCluster
	err     error
}

// ContactSeeds contacts the addresses of --join, without this node's own.
func (m *Gossip) ContactSeeds(ctx context.Context) []ContactResult {
	return m.Contact(ctx, m.cfg.Seeds)
}

// Contact looks the addresses up and exchanges gossip with each except this process's own. It takes
// a few seconds if no node answers.
func (m *Gossip) Contact(ctx context.Context, addrs []string) []ContactResult {
	var targets []string
	var out []ContactResult
	for _, addr := range addrs {
		found, err := lookup(ctx, addr)
		if err != nil {
			out = append(out, ContactResult{Addr: addr, Outcome: ContactUnreachable, err: err})
		}
		targets = append(targets, found...)
	}
	slices.Sort(targets)
	targets = slices.DeleteFunc(slices.Compact(targets), m.isOwnAddr)
	met := make([]ContactResult, min(len(targets), maxContacts))
	var tries sync.WaitGroup
	for i := range met {
		tries.Go(func() { met[i] = m.contactAddr(ctx, targets[i]) })
	}
	tries.Wait()
	return append(out, met...)
}

func (m *Gossip) contactAddr(ctx context.Context, addr string) ContactResult {
	c := ContactResult{Addr: addr, Outcome: ContactUnreachable, err: ctx.Err()}
	if c.err != nil {
		return c
	}
	if _, c.err = m.list.Join([]string{addr}); c.err == nil {
		c.Outcome = ContactOK
		return c
	}
	text := c.err.Error()
	if _, foreign, ok := strings.Cut(text, foreignPrefix); ok {
		c.Outcome = ContactOtherCluster
		c.Cluster, _, _ = strings.Cut(foreign, ".")
		return c
	}
	// Memberlist's errors about a stream that it can't read: both nodes have keys, only the other
	// has one, only this node has one.
	for _, sign := range []string{"no installed keys could decrypt", "encryption is not configured", "remote state is not encrypted"} {
		if strings.Contains(text, sign) {
			c.Outcome = ContactOtherKey
		}
	}
	return c
}

// missingAddrs lists at most n gossip addresses of registered members that gossip does not show as
// running, and the seeds if gossip shows no node at all.
func (m *Gossip) missingAddrs(n int) []string {
	var out []string
	for _, rec := range m.cfg.Known() {
		if rec.Name == m.cfg.Self.Node || rec.Gossip == "" {
			continue
		}
		if s, ok := m.state.latest(rec.Name, m.state.cluster()); !ok || s.State == membership.NodeDead {
			out = append(out, rec.Gossip)
		}
	}
	if len(m.Alive()) == 0 {
		out = append(out, m.cfg.Seeds...)
	}
	if len(out) > n { // a different part each time
		start := int(time.Now().UnixNano()/int64(m.times.RejoinEvery)) % len(out)
		out = append(out[start:], out[:start]...)[:n]
	}
	return out
}

// isOwnAddr reports whether an address is this process's own.
func (m *Gossip) isOwnAddr(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != strconv.Itoa(m.port) {
		return false
	}
	ip := net.ParseIP(host)
	if ip.Equal(m.ip) {
		return true
	}
	bound, _, err := gossipBind(m.cfg.Bind)
	if err != nil || !net.ParseIP(bound).IsUnspecified() {
		return ip.Equal(net.ParseIP(bound))
	}
	all, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(all, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}

// lookup resolves host or host:port to numeric addresses.
func lookup(ctx context.Context, addr string) ([]string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		host, port = strings.Trim(addr, "[]"), strconv.Itoa(DefaultPort)
	}
	if net.ParseIP(host) != nil {
		return []string{net.JoinHostPort(host, port)}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	for i := range found {
		found[i] = net.JoinHostPort(found[i], port)
	}
	return found, nil
}
