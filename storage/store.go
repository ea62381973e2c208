package storage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

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
	// CacheBytes is the memory for the block cache and the memtables of both instances
	// together; 0 means DefaultCacheBytes.
	CacheBytes int64
	// RecordBytes is the memory for copies of often read records of RecordTables; 0 means
	// that none are kept.
	RecordBytes  int64
	RecordTables []TableID
	// ListedTables are those of RecordTables whose primary keys are made by Key.DescID of an id of the workspace.
	// Their records are also found by the docs of lists.
	ListedTables []TableID
	// SegmentBytes is the memory for rows of segments that queries read, of the table with these segments; 0 means
	// that none are kept.
	SegmentBytes int64
	SegmentTable TableID
	// Making is set while the data is made from other data. Until Made was called, Open refuses the directory
	// without it.
	Making bool
	// Logger receives Pebble's messages. Nil means slog's default.
	Logger *slog.Logger
}

// The directories of the two instances.
const (
	raftDir  = "raft"
	stateDir = "state"
)

// Store is a node's disk: opened once, closed once.
type Store struct {
	raft     *pebble.DB
	state    *pebble.DB
	records  *RecordCache  // nil: there is none
	segments *SegmentCache // nil: there is none
	space    *Space
	pace     *WritePace // of the state
	hurried  func(do func() error) error
	closing  chan struct{}
	found    chan damage    // files of the state that are damaged
	checks   sync.WaitGroup // of damage

	transfer transfer
	making   vfs.FS // has the mark of Config.Making
}

// Open opens both instances, making them when they are not there. A directory
// that another process holds open is an error.
func Open(cfg Config) (*Store, error) {
	if cfg.FS == nil {
		cfg.FS = vfs.Default
	}
	plain := cfg.FS
	if cfg.CacheBytes == 0 {
		cfg.CacheBytes = DefaultCacheBytes
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	s := Store{
		records: newRecordCache(cfg.RecordBytes, cfg.RecordTables, cfg.ListedTables), segments: NewSegmentCache(cfg.SegmentBytes, cfg.SegmentTable),
		space: newSpace(cfg.FS, cfg.Dir, cfg.Logger), closing: make(chan struct{}), found: make(chan damage, damages), making: plain,
	}
	if cfg.Making {
		if err := beginMaking(plain, cfg.Dir); err != nil {
			return nil, err
		}
	} else if err := checkMade(plain, cfg.Dir); err != nil {
		return nil, err
	}
	if err := s.space.room(); err != nil {
		// An export or import that a crash ended may have taken the space.
		if !removeTransfers(plain, cfg.Dir) {
			return nil, err
		}
		if err := s.space.room(); err != nil {
			return nil, err
		}
	}
	cfg.FS = vfs.OnDiskFull(cfg.FS, s.space.spent)
	// Both instances share one cache, and reserve their memtables in it.
	cache := pebble.NewCache(cfg.CacheBytes)
	defer cache.Unref() // the instances hold it from here on
	raft, state := raftOptions(cfg, cache), stateOptions(cfg, cache)
	short := func() bool { return s.space.Shortage() != Ample }
	pace := func(o *pebble.Options, name string) *pacer {
		p := &pacer{FS: o.FS, logger: cfg.Logger, name: name, closing: s.closing}
		if name == stateDir {
			p.found = s.found
		}
		p.compactions = rests{every: urgencyEvery, short: short, closing: s.closing}
		p.flushes = rests{every: flushUrgencyEvery, short: short, closing: s.closing}
		o.FS, o.EventListener = p, p.listener()
		return p
	}
	raftPacer, statePacer := pace(raft, raftDir), pace(state, stateDir)
	s.hurried = statePacer.hurried

	failed := make(chan error, 1)
	go func() { // both at once: each waits for the disk
		var err error
		s.raft, err = openRaft(filepath.Join(cfg.Dir, raftDir), raft, raftPacer)
		failed <- err
	}()
	var stateErr error
	s.state, stateErr = pebble.Open(filepath.Join(cfg.Dir, stateDir), state)
	raftErr := <-failed
	if raftErr != nil || stateErr != nil {
		if raftErr == nil {
			_ = s.raft.Close()
		}
		if stateErr == nil {
			_ = s.state.Close()
		}
		if raftErr != nil {
			return nil, openError("open the replication log in "+cfg.Dir, raftErr)
		}
		return nil, openError("open the state in "+cfg.Dir, stateErr)
	}
	raftPacer.watch(s.raft)
	statePacer.watch(s.state)
	s.pace = newWritePace(func() int32 { return s.state.Metrics().Levels[0].Sublevels })
	// Only now is it certain that no other process uses the directory.
	err := s.transfer.open(plain, cfg.Dir, state)
	if err == nil {
		err = s.space.presence.notice(cfg.Dir)
	}
	if err != nil {
		_ = s.state.Close()
		_ = s.raft.Close()
		return nil, err
	}
	return &s, nil
}

// openRaft opens the instance with the replication logs. Pebble begins the first file of a new instance's
// write-ahead log in its oldest format, without the offsets of synced writes, and raises the format after
// that. Damage in the middle of such a file passes for a write that a crash tore, and the writes behind it
// would be dropped. So no write goes to that file: a flush begins the next one.
func openRaft(dir string, o *pebble.Options, p *pacer) (*pebble.DB, error) {
	db, err := pebble.Open(dir, o)
	if err != nil || !p.raised.Load() {
		return db, err
	}
	if _, err := db.AsyncFlush(); err != nil { // the next file is there when it returns
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// raftOptions suit a log: written once in order, read again only after a crash or
// by a follower that lags, and soon deleted.
func raftOptions(cfg Config, cache *pebble.Cache) *pebble.Options {
	o := options(cfg, cache)
	_, o.MemTableSize = memTables(cfg.CacheBytes)
	// Logs are truncated long before they would need merging: compacting or compressing them early
	// only works on entries that are about to be deleted.
	o.L0CompactionThreshold = int(unmergedLog / o.MemTableSize)
	o.L0StopWritesThreshold = 4 * o.L0CompactionThreshold
	for i := range o.Levels {
		o.Levels[i].Compression = func() *sstable.CompressionProfile { return sstable.NoCompression }
	}
	// Compactions of the log run one at a time, so the next one can only begin when one ends or when
	// it is asked for. Pebble's default scheduler also looks ten times a second, which is much of what
	// an idle process does.
	o.CompactionConcurrencyRange = func() (int, int) { return 1, 1 }
	o.Experimental.CompactionScheduler = pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()
	return o
}

// separateFrom is the size in bytes from which a value is kept in a file of its own
// kind, which compactions leave where it is. Events are above it, most issues are
// below: a GET should not take two reads.
const separateFrom = 1200

// stateOptions are for data that is read: filters, caches, few levels. All levels use the fast
// compression: a bottom level in zstd cost a third of a create's CPU.
func stateOptions(cfg Config, cache *pebble.Cache) *pebble.Options {
	o := options(cfg, cache)
	o.MemTableSize, _ = memTables(cfg.CacheBytes)
	// The replication log is the state's write-ahead log.
	o.DisableWAL = true
	// Without a log, tables queued behind a memtable would be lost in a crash although
	// Ingest has returned.
	o.Experimental.DisableIngestAsFlushable = func() bool { return true }
	// A second compaction, within level 0, is begun while the first one doesn't keep up.
	o.L0CompactionThreshold, o.L0StopWritesThreshold = 4, stopLevels
	o.CompactionConcurrencyRange = func() (int, int) { return 1, 2 }
	// A merge of level 0, of a few MB of keys of all tables, writes all of the level that it goes to.
	o.LBaseMaxBytes = 16 << 20
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		o.Levels[i].BlockSize = 8 << 10
		// One index block per table: a second level would be one more block to fetch
		// for every look-up.
		o.Levels[i].IndexBlockSize = 256 << 10
	}
	o.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		return pebble.ValueSeparationPolicy{
			Enabled: true, MinimumSize: separateFrom, MaxBlobReferenceDepth: 10,
			RewriteMinimumAge: 5 * time.Minute, TargetGarbageRatio: 0.3,
		}
	}
	return o
}

func options(cfg Config, cache *pebble.Cache) *pebble.Options {
	return &pebble.Options{
		FS:                          cfg.FS,
		Cache:                       cache,
		FormatMajorVersion:          pebbleFormats[FormatOldest], // see Raise
		MemTableStopWritesThreshold: 3,
		MaxOpenFiles:                1000,
		Logger:                      logger{cfg.Logger, cfg.Dir},
	}
}

// Raft returns the instance with the replication logs. Its writers sync their writes.
func (s *Store) Raft() *pebble.DB { return s.raft }

// State returns the instance with the applied state of the logs. It is written by CommitState,
// ReplaceState and Import.Ingest alone.
func (s *Store) State() *pebble.DB { return s.state }

// Records returns the cache of the state's records; nil if there is none.
func (s *Store) Records() *RecordCache { return s.records }

// Segments returns the cache of the state's segments; nil if there is none.
func (s *Store) Segments() *SegmentCache { return s.segments }

// CommitState commits a batch to the state, without waiting for the disk.
func (s *Store) CommitState(batch *pebble.Batch) error {
	w, err := s.beginBatch(batch)
	defer s.endBatch(w)
	if err != nil {
		return fmt.Errorf("read a batch: %w", err)
	}
	return batch.Commit(pebble.NoSync)
}

// writing is what a batch writes of the rows that may be kept in caches.
type writing struct {
	hashes           []uint64 // of records
	ranges, segments int
}

// beginBatch drops what a batch is about to write from the caches. endBatch is due whatever it returns.
func (s *Store) beginBatch(batch *pebble.Batch) (w writing, err error) {
	if s.records == nil && s.segments == nil {
		return w, nil
	}
	for ops := batch.Reader(); ; {
		kind, key, value, more, err := ops.Next()
		if err != nil || !more {
			return w, err
		}
		switch kind {
		case pebble.InternalKeyKindLogData:
		case pebble.InternalKeyKindRangeDelete:
			if s.records.touches(key, value) {
				s.records.beginRange(key, value)
				w.ranges++
			}
			if s.segments.replaces(key, value) {
				s.segments.begin(key, value)
				w.segments++
			}
		default:
			if len(key) > prefixLen && s.records.keeps(TableID(key[prefixLen])) {
				w.hashes = append(w.hashes, s.records.begin(key))
			}
		}
	}
}

func (s *Store) endBatch(w writing) {
	s.records.end(w.hashes)
	for range w.ranges {
		s.records.endRange()
	}
	for range w.segments {
		s.segments.end()
	}
}

// ReplaceState runs do, which changes keys of a shard in the state otherwise than by a
// batch.
func (s *Store) ReplaceState(shard Shard, do func() error) error {
	start, end := ShardRange(shard)
	if s.records != nil {
		s.records.beginRange(start, end)
		defer s.records.endRange()
	}
	if s.segments != nil {
		s.segments.begin(start, end)
		defer s.segments.end()
	}
	return do()
}

// WritePace returns the pace of writes to the state.
func (s *Store) WritePace() *WritePace { return s.pace }

// Memory returns the memory of both instances.
func (s *Store) Memory() MemoryUse { return memoryUse(s.raft.Metrics(), s.state.Metrics()) }

// DiskUse returns the bytes on disk of the instance with the logs and of the one with the state.
func (s *Store) DiskUse() (log, state uint64) {
	return diskUse(s.raft.Metrics()), diskUse(s.state.Metrics())
}

// diskUse is DiskSpaceUsage with all files of values. Pebble's own figure lacks those that were there when it was
// opened, and falls below zero when they are deleted.
func diskUse(m *pebble.Metrics) uint64 {
	return m.DiskSpaceUsage() - m.BlobFiles.Local.LiveSize + m.BlobFiles.LiveSize
}

// Space tells how full the disk is, once it is watched.
func (s *Store) Space() *Space { return s.space }

// Watch begins to watch the free space of the disk, which ends with Close. reserve
// is the number of bytes to keep free; 0 means a fifth of the file system, at most
// 256 MiB. It is called once; a file system that can't be measured is not watched.
func (s *Store) Watch(reserve uint64) { s.space.watch(reserve) }

// CompactRaft gives back the space of deleted log entries. Compactions would do so in time; on a
// disk that gets full that may be too late. It skips small amounts.
func (s *Store) CompactRaft(ctx context.Context) error {
	if tables := s.raft.Metrics().Total(); tables.TablesSize < worthCompacting {
		return nil
	}
	if err := s.raft.Compact(ctx, []byte{0}, []byte{0xff, 0xff, 0xff}, false); err != nil {
		return fmt.Errorf("compact the replication log: %w", err)
	}
	return nil
}

// FlushState makes all applied state durable, so that the log before it may go.
func (s *Store) FlushState() error {
	if err := s.hurried(s.state.Flush); err != nil {
		return fmt.Errorf("flush the state: %w", err)
	}
	return nil
}

// Close flushes the state and closes both instances.
func (s *Store) Close() error {
	s.space.stopWatching()
	close(s.closing)
	s.checks.Wait()
	s.pace.close()
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
type logger struct {
	to  *slog.Logger
	dir string
}

func (l logger) Infof(format string, args ...any) {
	l.to.Debug(fmt.Sprintf(format, args...), "component", "pebble")
}

func (l logger) Errorf(format string, args ...any) {
	l.to.Error(fmt.Sprintf(format, args...), "component", "pebble")
}

// Fatalf is called when Pebble can't go on without risking what was stored: a
// write or sync of its log or manifest failed, on a full disk for one, and it is
// not known how much of it reached the disk. Nothing may be answered after that, and
// going on can't be safe, so the process ends, with the reason as its last line.
// Acknowledged writes are on disk, and a restart replays the log up to the torn
// end. The panic gets a goroutine of its own, since a recover around the failed
// write would leave Pebble's locks held and the rest of the process waiting for
// them.
//
// A flush or compaction that fails does not come here: Pebble reports it, keeps
// what it has and tries again; see pacer. Nor does damage in a file of the state; see damaged.
func (l logger) Fatalf(format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	if strings.Contains(reason, syscall.ENOSPC.Error()) {
		reason = fmt.Sprintf("the disk that holds %s is full: free some space and start again; what was acknowledged is not lost: %s", l.dir, reason)
	}
	l.to.Error(reason, "component", "pebble", "fatal", true)
	go panic("storage: ending the process, since what is on disk is uncertain: " + reason)
	select {}
}
