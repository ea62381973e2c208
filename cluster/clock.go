package cluster

import (
	"log/slog"
	"sync"
	"time"
)

// The times that owners write, such as those until which leases and idempotency keys last, are read
// by their successors. An owner whose clock is a day ahead would forget every key of the last day. So
// a node whose clock differs from those of most other nodes leaves shards to them.

const (
	// clockTolerance is how far a node's clock may be from those of most others.
	clockTolerance = 10 * time.Second
	// clockMemory is how long another node's answer counts.
	clockMemory = 5 * time.Second
	// clockWitnesses is the number of other nodes that it takes: of two nodes nobody can say which
	// one is wrong.
	clockWitnesses = 2
)

// clockSample is what another node's clock said.
type clockSample struct {
	ahead time.Duration // by how much it was ahead of this node's
	began time.Time     // the exchange
	at    time.Time
}

// peerClocks compares this node's clock with those of the others.
type peerClocks struct {
	now    func() time.Time
	logger *slog.Logger

	mu      sync.Mutex
	samples map[string]clockSample
	off     bool // as it was logged last
}

func newPeerClocks(now func() time.Time, logger *slog.Logger) *peerClocks {
	return &peerClocks{now: now, logger: logger, samples: map[string]clockSample{}}
}

// note records what a node's clock said in an exchange that began and ended at these moments.
func (c *peerClocks) note(node string, said, began, ended time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ahead time.Duration // the other node wrote its time somewhere between the two moments
	switch {
	case said.After(ended):
		ahead = said.Sub(ended)
	case said.Before(began):
		ahead = said.Sub(began)
	}
	c.samples[node] = clockSample{ahead, began, ended}
}

// forget drops a node that is not a member any more.
func (c *peerClocks) forget(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.samples, node)
}

// judge counts the nodes whose clocks agree with this node's clock after it has changed, and those whose clocks
// agree with it as it was before, by exchanges that began after a moment. An exchange before the moment counts if
// it showed that the clock was wrong by as much as it has changed. No exchange counts for longer than clockMemory.
// judge returns the number of all other nodes, too.
func (c *peerClocks) judge(moment time.Time, change time.Duration) (after, before, others int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.now()
	for _, s := range c.samples {
		now, then := s.ahead, s.ahead+change
		past := !s.began.After(moment)
		if past {
			now, then = s.ahead-change, s.ahead
		}
		agrees := now.Abs() <= clockTolerance
		differed := then.Abs() > clockTolerance
		switch {
		case at.Sub(s.at) > clockMemory, past && (!differed || !agrees):
		case agrees && now.Abs() <= then.Abs():
			after++
		case !differed:
			before++
		}
	}
	return after, before, len(c.samples)
}

// isOff reports whether this node's clock differs from those of most others that answer.
func (c *peerClocks) isOff() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	var heard, ahead, behind int
	var example time.Duration
	for _, s := range c.samples {
		if age := now.Sub(s.at); age < -clockMemory || age > clockMemory {
			continue
		}
		heard++
		switch {
		case s.ahead > clockTolerance:
			ahead++
			example = s.ahead
		case s.ahead < -clockTolerance:
			behind++
			example = s.ahead
		}
	}
	off := heard >= clockWitnesses && max(ahead, behind) > heard/2
	if off != c.off {
		c.off = off
		if off {
			c.logger.Error("the clock of this node differs from those of most others: it leaves the shards to them", "their_clocks_are_ahead_by", example.Round(time.Second))
		} else {
			c.logger.Info("the clock of this node agrees with those of most others again")
		}
	}
	return off
}
