package cluster

import (
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// ownDirectory is the directory shard of this node.
type ownDirectory struct{ node *Node }

// owned returns false while the node opens: other nodes' requests come before its groups are made.
func (d ownDirectory) owned() (epoch uint64, ok bool) {
	if d.node.owners.Load() == nil {
		return 0, false
	}
	return d.node.Owner(0)
}

func (d ownDirectory) barrier(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(relayTimeout)
	}
	return d.node.ReadBarrier(0, deadline)
}

func (d ownDirectory) state() *pebble.DB { return d.node.cfg.Store.State() }

func (d ownDirectory) propose(epoch uint64, batch []byte) <-chan error {
	outcome := make(chan error, 1)
	d.node.Propose(0, epoch, batch, func(err error) { outcome <- err })
	return outcome
}
