package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// Restore puts an export of the shard, which came from its leader, in place of the
// state. A crash at any moment leaves the old state with its log, or the new one:
//
//  1. A row says which snapshot is being restored.
//  2. The export is ingested, whole, and flushed. Its position tells from here on that
//     it is there.
//  3. The row becomes the newest snapshot.
//  4. Raft deletes the log, which ended before the snapshot.
//
// A start that finds the row goes on from 3 or forgets it, see recoverRestore.
func (m *stateMachine) Restore(source io.ReadCloser) error {
	_ = source.Close() // nothing is in it
	received := m.snapshots.received
	m.snapshots.received = nil
	if received == nil {
		return errors.New("cluster: no snapshot was received")
	}
	if err := m.restore(received); err != nil {
		err = errors.Join(err, received.rows.Close())
		return fmt.Errorf("restore shard %d: %w", m.shard, err)
	}
	return nil
}

func (m *stateMachine) restore(received *receivedSnapshot) error {
	if m.err != nil {
		return m.err
	}
	s := m.snapshots
	if err := s.commit(func(b *pebble.Batch) error {
		return s.put(b, kindRestoring, snapshotRow{SnapshotMeta: received.meta})
	}); err != nil {
		return err
	}
	if err := received.rows.Ingest(context.Background()); err != nil {
		return err
	}
	m.flusher.written()
	at, err := readPosition(m.db, m.shard)
	if err != nil {
		return err
	}
	if at.applied < received.meta.Index {
		err := fmt.Errorf("the export stands at entry %d, before its snapshot's %d", at.applied, received.meta.Index)
		m.stop(err)
		return err
	}
	if err := s.restored(snapshotRow{received.meta, at.applied}); err != nil {
		return err
	}
	m.at = at
	m.applied.Store(at.applied)
	m.shrunk(m.pending.Swap(0))
	return nil
}

// restored makes what was ingested the newest snapshot.
func (s *snapshotStore) restored(row snapshotRow) error {
	return s.commit(func(b *pebble.Batch) error {
		return errors.Join(s.put(b, kindSnapshot, row), b.Delete(raftKey(s.shard, kindRestoring, nil), nil))
	})
}

// commit makes rows durable.
func (s *snapshotStore) commit(fill func(*pebble.Batch) error) error {
	b := s.store.Raft().NewBatch()
	err := fill(b)
	if err == nil {
		err = b.Commit(pebble.Sync)
	}
	return errors.Join(err, b.Close())
}

// recoverRestore ends what a crash interrupted: when the state is the one that was
// being restored it counts, and the log, which does not lead there, goes; else
// nothing has happened.
func (s *snapshotStore) recoverRestore(at position, log *logStore) error {
	row, err := s.latest(kindRestoring)
	if err != nil || row == nil {
		return err
	}
	if at.applied < row.Index {
		if err := s.store.Raft().Delete(raftKey(s.shard, kindRestoring, nil), pebble.Sync); err != nil {
			return fmt.Errorf("forget a restore of shard %d: %w", s.shard, err)
		}
		return nil
	}
	if first, last := log.bounds(); last != 0 {
		if err := log.DeleteRange(first, last); err != nil {
			return err
		}
	}
	row.Imported = at.applied
	if err := s.restored(*row); err != nil {
		return fmt.Errorf("finish a restore of shard %d: %w", s.shard, err)
	}
	return nil
}
