package actors

import (
	"errors"
	"fmt"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// pairMakers is how many goroutines make pairs of terms at a time. What they can't begin is asked for again by the next
// search of its workspace.
const pairMakers = 2

// makePairs has the pairs of terms of a segment's titles made, and returns false when that has to wait.
func (e *Engine) makePairs(shard storage.Shard, workspace storage.ID, order *storage.PairsOrder) bool {
	if e.pairMakers.Add(1) > pairMakers || !e.background.enter() {
		e.pairMakers.Add(-1)
		return false
	}
	go func() {
		defer e.background.leave()
		defer e.pairMakers.Add(-1)
		if err := e.fillPairs(shard, workspace, order); err != nil {
			order.GiveUp()
			e.log.Debug("pairs of terms not made", "workspace", workspace.String(), "segment", order.Segment.Number, "error", err)
		}
	}()
	return true
}

func (e *Engine) fillPairs(shard storage.Shard, workspace storage.ID, order *storage.PairsOrder) (err error) {
	snapshot := e.state.NewSnapshot()
	defer func() {
		if closeErr := snapshot.Close(); closeErr != nil {
			err = errors.Join(err, fmt.Errorf("close a snapshot: %w", closeErr))
		}
	}()
	v := tracker.View{View: storage.NewView(snapshot, shard, workspace)}
	return e.inTurns(func(pause func() error) error { return v.Pairs(order, pause) })
}
