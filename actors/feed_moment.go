package actors

import (
	"github.com/cockroachdb/pebble/v2"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// A round shows events by the rights of the moment that it reads, its snapshot. Older rights
// may have ended before an event of the snapshot. Later ones may be about an issue that was
// hidden from the listener before they began, and that the snapshot has where it was until then.

// moment is the state of a workspace that a round reads.
type moment struct {
	// version is the state as far as callers are concerned. Its epoch is zero if that may have
	// changed while the snapshot was made.
	version accessVersion
	view    storage.View
}

// moment returns the state that a snapshot has. epoch is that in which this node owned the
// shard before the snapshot, and generation is the workspace's access generation before it.
func (f *feed) moment(snapshot pebble.Reader, epoch, generation uint64) *moment {
	e := f.engine
	m := &moment{version: accessVersion{workspace: f.workspace, shard: e.shardOf(f.workspace).number, generation: generation, epoch: epoch}}
	if e.generations.of(f.workspace).Load() != generation {
		m.version.epoch = 0
	}
	m.view = storage.NewView(snapshot, m.version.shard, f.workspace)
	return m
}

// rights returns an admission to an operation with the rights that the caller has at the
// moment. The credential was looked at for a.
func (m *moment) rights(a *admission, op *tracker.Op) (*admission, error) {
	if a.target == m.version {
		return a, nil
	}
	fresh, err := a.renewed(&m.view, m.version)
	if err != nil {
		return nil, err
	}
	req := tracker.Request{Caller: fresh.caller}
	return fresh, req.Admit(op, op.Needs)
}
