package node

import (
	"time"

	"switchyard/actors/tracker"
	"switchyard/cluster"
	"switchyard/cmd/internal/backup"
	"switchyard/httpapi"
	"switchyard/storage"
)

// shardLogs is the node's side of backup.Logs.
type shardLogs struct{ *cluster.Node }

// Owns implements backup.Logs.
func (l shardLogs) Owns(shard storage.Shard) bool {
	_, ok := l.Owner(shard)
	return ok
}

// Reach implements backup.Logs.
func (l shardLogs) Reach(shard storage.Shard, deadline time.Time) (first, applied uint64, err error) {
	if _, err := l.BeginImage(shard, deadline); err != nil {
		return 0, 0, err
	}
	stats := l.ShardStats(shard)
	return stats.FirstIndex, stats.Applied, nil
}

// newLogArchiver returns nil if no logs are archived.
func (n *Node) newLogArchiver(s *schedule) *backup.LogArchiver {
	every := n.cfg.Backups.logEvery()
	if every == 0 {
		return nil
	}
	taken := make(chan struct{}, 1)
	s.Complete = func() {
		select {
		case taken <- struct{}{}:
		default: // a pass is due already
		}
	}
	return &backup.LogArchiver{
		To: s.To, Every: every, Node: n.groups.Name(), Logs: shardLogs{n.groups},
		Newest: s.Newest, Refused: s.Refused, Kept: n.groups.KeptLogs(), Taken: taken, Now: time.Now, Logger: n.cfg.Logger,
	}
}

// wireLog is what GET /cluster shows of the archived logs.
func (s *schedule) wireLog(now time.Time) *httpapi.BackupLogStatus {
	if s.logs == nil {
		return nil
	}
	status := s.logs.Status()
	out := &httpapi.BackupLogStatus{EverySeconds: int64(s.logs.Every / time.Second), Gaps: []int{}, Failures: status.Failures}
	out.Gaps = append(out.Gaps, status.Gaps...)
	if !status.Reach.IsZero() {
		at, age := tracker.At(status.Reach), int64(status.Age(now))
		out.ReachesAt, out.AgeSeconds = &at, &age
	}
	if status.Error != "" {
		out.Error = &status.Error
	}
	return out
}
