package node

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"switchyard/cmd/internal/backup"
	"switchyard/storage"
)

// Backups are the settings of scheduled backups, the same on every node of a cluster.
type Backups struct {
	// To is the directory of backups, which all nodes reach, or s3://BUCKET/PREFIX; empty: none
	// are scheduled.
	To string
	// Every is the time between two backups; nil means DefaultBackupEvery.
	Every *time.Duration
	// LogEvery is the time between two passes that archive the logs of the shards, between backups;
	// nil means DefaultBackupLogEvery, and 0 archives none.
	LogEvery *time.Duration
	// Keep is how many backups are kept; 0: all.
	Keep int
	// KeyFile has the key that encrypts them; empty: they are not encrypted.
	KeyFile string
	// S3 says how to reach the bucket. Files are in the data directory before they are sent.
	S3 backup.S3
}

// DefaultBackupEvery is the time between two scheduled backups.
const DefaultBackupEvery = 24 * time.Hour

// DefaultBackupLogEvery is the time between two passes that archive the logs.
const DefaultBackupLogEvery = time.Minute

// every returns Every, or its default.
func (b *Backups) every() time.Duration {
	if b.Every != nil {
		return *b.Every
	}
	return DefaultBackupEvery
}

// logEvery returns LogEvery, or its default.
func (b *Backups) logEvery() time.Duration {
	if b.LogEvery != nil {
		return *b.LogEvery
	}
	return DefaultBackupLogEvery
}

// validateBackups reports what can't work before anything is opened.
func (c Config) validateBackups() error {
	b := c.Backups
	switch {
	case b.To == "" && (b.Every != nil || b.Keep != 0 || b.KeyFile != "" || b.LogEvery != nil):
		return fmt.Errorf("--backup-every, --backup-log-every, --backup-keep and --backup-key-file need --backup-to")
	case b.To == "":
		return nil
	case c.RootToken == "":
		return fmt.Errorf("--backup-to needs the operator's token: give --root-token-file, or set SWITCHYARD_ROOT_TOKEN")
	case b.every() < time.Second:
		return fmt.Errorf("--backup-every %s: must be at least 1s", b.every())
	case b.logEvery() < 0 || b.logEvery() > 0 && b.logEvery() < time.Second:
		return fmt.Errorf("--backup-log-every %s: must be at least 1s, or 0 to archive no logs", b.logEvery())
	case b.Keep < 0:
		return fmt.Errorf("--backup-keep %d: must be 0, for all, or more", b.Keep)
	}
	data, err := filepath.Abs(c.Data)
	to, err2 := filepath.Abs(b.To)
	if !backup.IsS3(b.To) && err == nil && err2 == nil && (to == data || strings.HasPrefix(to, data+string(filepath.Separator))) {
		return fmt.Errorf("--backup-to %s is in the data directory, and would be lost with it", b.To)
	}
	_, err = c.archive()
	return err
}

// archive returns the archive of the backups.
func (c Config) archive() (*backup.Archive, error) {
	key, err := backup.ReadKey(c.Backups.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("--backup-key-file: %w", err)
	}
	s3 := c.Backups.S3
	s3.Spool = c.Data
	// Below twice the reserve a node gives up the logs that it keeps for the archive.
	s3.KeepFree = func(total uint64) uint64 { return 2 * storage.Reserve(c.DiskReserve, total) }
	to, err := backup.PlaceAt(c.Backups.To, s3)
	if err != nil {
		return nil, fmt.Errorf("--backup-to: %w", err)
	}
	return backup.NewArchive(to, key), nil
}
