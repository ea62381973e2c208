package storage

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Config says where and how a node's data is kept.
type Config struct {
	// Dir holds the two instances as raft/ and state/.
	Dir string
	// FS is the file system; nil means the machine's.
	FS vfs.FS
	// CacheBytes bounds the block cache of the state; 0 means 64 MiB.
	CacheBytes int64
	// Logger gets what Pebble has to say; nil means slog's default.
	Logger *slog.Logger
}

// Store is a node's disk: opened once, closed once.
type Store struct {
	raft  *pebble.DB
	state *pebble.DB
}

// Open opens both instances, making them when they are not there. A directory
// that another process holds open is an error.
func Open(cfg Config) (*Store, error) {
	if cfg.FS == nil {
		cfg.FS = vfs.Default
	}
	if cfg.CacheBytes == 0 {
		cfg.CacheBytes = 64 << 20
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	raft := options(cfg, 8<<20)
	raft.MemTableSize = 32 << 20
	state := options(cfg, cfg.CacheBytes)
	state.MemTableSize = 32 << 20
	// The replication log is the state's write-ahead log.
	state.DisableWAL = true

	var s Store
	failed := make(chan error, 1)
	go func() { // both at once: each waits for the disk
		var err error
		s.raft, err = pebble.Open(filepath.Join(cfg.Dir, "raft"), raft)
		failed <- err
	}()
	var stateErr error
	s.state, stateErr = pebble.Open(filepath.Join(cfg.Dir, "state"), state)
	raftErr := <-failed
	if raftErr != nil || stateErr != nil {
		if raftErr == nil {
			_ = s.raft.Close()
		}
		if stateErr == nil {
			_ = s.state.Close()
		}
		if raftErr != nil {
			return nil, fmt.Errorf("open the replication log in %s: %w", cfg.Dir, raftErr)
		}
		return nil, fmt.Errorf("open the state in %s: %w", cfg.Dir, stateErr)
	}
	return &s, nil
}

func options(cfg Config, cache int64) *pebble.Options {
	o := &pebble.Options{
		FS:                          cfg.FS,
		CacheSize:                   cache,
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       24,
		MaxOpenFiles:                1000,
		Logger:                      logger{cfg.Logger},
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	o.Levels[len(o.Levels)-1].Compression = func() *sstable.CompressionProfile { return sstable.ZstdCompression }
	return o
}

// Raft is the instance that holds the replication logs; writes to it are synced
// by whoever makes them.
func (s *Store) Raft() *pebble.DB { return s.raft }

// State is the instance that holds what the logs amount to.
func (s *Store) State() *pebble.DB { return s.state }

// FlushState makes all applied state durable, so that the log before it may go.
func (s *Store) FlushState() error {
	if err := s.state.Flush(); err != nil {
		return fmt.Errorf("flush the state: %w", err)
	}
	return nil
}

// Close flushes the state and closes both instances.
func (s *Store) Close() error {
	err := s.FlushState()
	if e := s.state.Close(); err == nil && e != nil {
		err = fmt.Errorf("close the state: %w", e)
	}
	if e := s.raft.Close(); err == nil && e != nil {
		err = fmt.Errorf("close the replication log: %w", e)
	}
	return err
}

// logger hands Pebble's messages to slog: the routine ones at debug level.
type logger struct{ to *slog.Logger }

func (l logger) Infof(format string, args ...any) {
	l.to.Debug(fmt.Sprintf(format, args...), "component", "pebble")
}

func (l logger) Errorf(format string, args ...any) {
	l.to.Error(fmt.Sprintf(format, args...), "component", "pebble")
}

// Fatalf is called when Pebble can't go on without risking what was stored: a
// failed write to its log or manifest. The process must not answer anything
// after that.
func (l logger) Fatalf(format string, args ...any) {
	l.to.Error(fmt.Sprintf(format, args...), "component", "pebble", "fatal", true)
	panic("storage: " + fmt.Sprintf(format, args...))
}
