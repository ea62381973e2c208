package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/storage"
)

// Image is a shard's rows at one index of its log, for a backup. It is used by one goroutine,
// and must be closed.
type Image struct {
	*storage.Export
	Shard storage.Shard
	Index uint64 // the last entry in the rows
	Epoch uint64 // of the owner that made it
}

// ErrUnchanged is the error of Image if the shard is still at the index that was asked about.
var ErrUnchanged = errors.New("cluster: the shard is still at this index")

// imageWait is how long an image waits for copies of shards that are sent to followers.
const imageWait = 30 * time.Second

// BeginImage returns the epoch in which this node owns a shard, once it is certain that an image
// made from now on has every write acknowledged before. Its errors are *Error with NotApplied true.
func (n *Node) BeginImage(shard storage.Shard, deadline time.Time) (epoch uint64, err error) {
	epoch, ok := n.Owner(shard)
	if !ok {
		return 0, errNotOwner
	}
	if err := n.ReadBarrier(shard, deadline); err != nil {
		return 0, err
	}
	return epoch, nil
}

// Image copies the rows of a shard after BeginImage. rests returns how long the copying rests after some
// work; nil: it does not rest. If the rows are at the index unless, which is not 0, it returns
// ErrUnchanged.
func (n *Node) Image(ctx context.Context, shard storage.Shard, epoch, unless uint64, rests func(time.Duration) time.Duration) (*Image, error) {
	image := &Image{Shard: shard}
	look := func(rows pebble.Reader) error {
		at, err := readPosition(rows, shard)
		switch {
		case err != nil:
			return err
		case at.epoch != epoch || at.applied == 0:
			// The replica was dropped or replaced since the barrier.
			return errNotOwner
		case at.applied == unless:
			return ErrUnchanged
		}
		image.Index, image.Epoch = at.applied, at.epoch
		return nil
	}
	out, err := n.cfg.Store.ExportWith(ctx, shard, storage.ExportOptions{
		Wait: imageWait, Look: look, Rests: rests, Prints: true, Without: [][]byte{positionKey(shard)},
	})
	if err != nil {
		return nil, fmt.Errorf("make an image: %w", err)
	}
	image.Export = out
	return image, nil
}
