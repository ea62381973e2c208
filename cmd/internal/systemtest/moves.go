package systemtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"time"
)

// moveNodes is the least size of a fleet in which replicas move away from a node while another one is
// away.
const moveNodes = 4

// moves are faults in which replicas move away from a node and back. They need moveNodes nodes.
func moves() []fault {
	var back []*Member // nodes that drain
	return []fault{{
		// A member that was away since before a replica left the node still counts that one, and so do the
		// first entries of the log, which the new replica gets first. The two are cut off from the others
		// while the new replica is being filled. They may not elect a leader, which would lack what was
		// acknowledged meanwhile.
		name: "moved away and back", hold: 6 * time.Second,
		strike: func(ctx context.Context, f *Fleet, m *Member) error {
			if len(f.members) < moveNodes {
				return fmt.Errorf("it needs %d nodes", moveNodes)
			}
			others := f.without(m)
			f.choices.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
			away, asked, giving := others[0], others[1], others[2]
			back = []*Member{m, giving}
			comes, err := f.sendAway(away)
			if err != nil {
				return err
			}
			left, err := asked.moveAway(ctx, m, away)
			if err == nil {
				for _, other := range others {
					f.Slow(other, m, fillRate)
				}
				err = asked.moveTo(ctx, m, giving, left)
			}
			if err != nil && ctx.Err() == nil { // no promise: a busy machine's disk may hold two of the nodes up
				f.tell("the replicas did not move in time: %v", err)
				f.Mend()
				return comes()
			}
			if err != nil {
				return err
			}
			for _, other := range others[1:] {
				f.Cut(other, m)
				f.Cut(other, away)
			}
			f.mendBetween(away, m)
			if err := comes(); err != nil {
				return err
			}
			if f.choices.IntN(2) == 0 {
				m.Kill()
				return m.Start()
			}
			return nil
		},
		heal: func(ctx context.Context, f *Fleet, m *Member) error {
			f.Mend()
			for _, drained := range back {
				if err := f.other(m).operate(ctx, "POST", "/cluster/nodes/"+drained.Name+"/undrain"); err != nil {
					return err
				}
			}
			return nil
		},
	}}
}

// fillRate is how many bytes a second each connection carries to a node whose replicas are being filled:
// a log of some seconds of traffic takes some seconds.
const fillRate = 64 << 10

// moveWithin is how long replicas may take to leave a node, and to come back. Otherwise there is nothing to
// see.
const moveWithin = 30 * time.Second

// without returns the other members.
func (f *Fleet) without(m *Member) (others []*Member) {
	for _, other := range f.members {
		if other != m {
			others = append(others, other)
		}
	}
	return others
}

// sendAway cuts a member off, pauses it or kills it. comes ends that; links stay as they are then.
func (f *Fleet) sendAway(m *Member) (comes func() error, err error) {
	switch f.choices.IntN(3) {
	case 0:
		return m.Resume, m.Pause()
	case 1:
		m.Kill()
		return m.Start, nil
	}
	f.Isolate(m)
	return func() error { return nil }, nil
}

// drain asks the node to drain another one, once it has heard of it: that one may just have joined.
func (m *Member) drain(ctx context.Context, from *Member) error {
	knows := func(v ClusterView) bool {
		for _, n := range v.Nodes {
			if n.Name == from.Name {
				return true
			}
		}
		return false
	}
	if err := m.Await(ctx, "it knows "+from.Name, knows); err != nil {
		return err
	}
	return m.operate(ctx, "POST", "/cluster/nodes/"+from.Name+"/drain")
}

// moveAway asks a node to drain another one, and returns when that one has no replica of a shard with a
// voter on the node that is away. A replica whose shard lacks that node has nowhere to go in a fleet of
// four. left is how many of them there are.
func (m *Member) moveAway(ctx context.Context, from, away *Member) (left int, err error) {
	ctx, cancel := context.WithTimeout(ctx, moveWithin)
	defer cancel()
	if err := m.drain(ctx, from); err != nil {
		return 0, err
	}
	err = m.Await(ctx, from.Name+" has given its replicas away", func(v ClusterView) bool {
		left = 0
		for _, s := range v.Shards {
			members := slices.Concat(s.Voters, s.NonVoters)
			if !slices.Contains(members, from.Name) {
				continue
			}
			left++
			if s.Leader == "" || slices.Contains(members, away.Name) {
				return false
			}
		}
		held, err := from.replicas(ctx)
		return err == nil && held == left
	})
	return left, err
}

// moveTo asks a node to take a drained one back and drain another one instead. It returns when the first
// one has the first entries of a replica more than it had.
func (m *Member) moveTo(ctx context.Context, to, from *Member, had int) error {
	ctx, cancel := context.WithTimeout(ctx, moveWithin)
	defer cancel()
	if err := m.operate(ctx, "POST", "/cluster/nodes/"+to.Name+"/undrain"); err != nil {
		return err
	}
	if err := m.drain(ctx, from); err != nil {
		return err
	}
	for {
		held, err := to.replicas(ctx)
		if err == nil && held > had {
			return nil
		}
		if !pause(ctx, 10*time.Millisecond) {
			return fmt.Errorf("%s drains and %s gets no replica: %w", from.Name, to.Name, errors.Join(ctx.Err(), err))
		}
	}
}

// replicaApplied matches the last entry that a replica has applied; a node without a replica reports 0.
var replicaApplied = regexp.MustCompile(`(?m)^switchyard_shard_applied_index\{.*\} [1-9]`)

// replicas returns how many replicas the node has, by its own account. Those without entries don't count.
func (m *Member) replicas(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	c := &Client{URL: "http://" + m.fleet.address(m.n, 9090), HTTP: http.DefaultClient}
	a, err := c.Do(ctx, "GET", "/metrics", nil)
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("the metrics of %s: status %d", m.Name, a.Status)
	}
	return len(replicaApplied.FindAll(a.Body, -1)), err
}
