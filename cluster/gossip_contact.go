package cluster

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bounds of one round of contacts.
const (
	maxContacts   = 16
	lookupTimeout = 3 * time.Second
)

// contactOutcome is the outcome of contacting an address.
type contactOutcome int

const (
	contactOK           contactOutcome = iota // gossip was exchanged
	contactUnreachable                        // no answer, or the name can't be looked up
	contactOtherKey                           // the other side uses another gossip key
	contactOtherCluster                       // the other side belongs to another cluster
)

// contactResult is the outcome for one address, or for one name that could not be looked up.
type contactResult struct {
	addr    string
	outcome contactOutcome
	cluster string // set for contactOtherCluster
	err     error
}

// contactSeeds contacts the addresses of --join, without this node's own.
func (m *gossip) contactSeeds(ctx context.Context) []contactResult {
	return m.contact(ctx, m.cfg.Seeds)
}

// contact looks the addresses up and exchanges gossip with each except this process's own. It takes
// a few seconds if no node answers.
func (m *gossip) contact(ctx context.Context, addrs []string) []contactResult {
	var targets []string
	var out []contactResult
	for _, addr := range addrs {
		found, err := lookup(ctx, addr)
		if err != nil {
			out = append(out, contactResult{addr: addr, outcome: contactUnreachable, err: err})
		}
		targets = append(targets, found...)
	}
	slices.Sort(targets)
	targets = slices.DeleteFunc(slices.Compact(targets), m.isOwnAddr)
	met := make([]contactResult, min(len(targets), maxContacts))
	var tries sync.WaitGroup
	for i := range met {
		tries.Go(func() { met[i] = m.contactAddr(ctx, targets[i]) })
	}
	tries.Wait()
	return append(out, met...)
}

func (m *gossip) contactAddr(ctx context.Context, addr string) contactResult {
	c := contactResult{addr: addr, outcome: contactUnreachable, err: ctx.Err()}
	if c.err != nil {
		return c
	}
	if _, c.err = m.list.Join([]string{addr}); c.err == nil {
		c.outcome = contactOK
		return c
	}
	text := c.err.Error()
	if _, foreign, ok := strings.Cut(text, foreignPrefix); ok {
		c.outcome = contactOtherCluster
		c.cluster, _, _ = strings.Cut(foreign, ".")
		return c
	}
	// Memberlist's errors about a stream that it can't read: both nodes have keys, only the other
	// has one, only this node has one.
	for _, sign := range []string{"no installed keys could decrypt", "encryption is not configured", "remote state is not encrypted"} {
		if strings.Contains(text, sign) {
			c.outcome = contactOtherKey
		}
	}
	return c
}

// missingAddrs lists at most n gossip addresses of registered members that gossip does not show as
// running, and the seeds if gossip shows no node at all.
func (m *gossip) missingAddrs(n int) []string {
	var out []string
	for _, rec := range m.cfg.Known() {
		if rec.Name == m.cfg.Self.Node || rec.Gossip == "" {
			continue
		}
		if s, ok := m.state.latest(rec.Name, m.state.cluster()); !ok || s.state == NodeDead {
			out = append(out, rec.Gossip)
		}
	}
	if len(m.alive()) == 0 {
		out = append(out, m.cfg.Seeds...)
	}
	if len(out) > n { // a different part each time
		start := int(time.Now().UnixNano()/int64(m.times.rejoinEvery)) % len(out)
		out = append(out[start:], out[:start]...)[:n]
	}
	return out
}

// isOwnAddr reports whether an address is this process's own.
func (m *gossip) isOwnAddr(addr string) bool {
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
		host, port = strings.Trim(addr, "[]"), strconv.Itoa(DefaultGossipPort)
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
