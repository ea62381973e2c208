// Package backup copies a running cluster into a directory, and makes the data of a new
// cluster from such a copy.
//
//	Take -> DIR/shards/SHA256.shard, one for each shard -> DIR/backup-MOMENT.json
//	Restore -> the data directory of one node, offline
//	Drill -> Restore into a scratch directory, and verify
//
// The workspaces' shards are copied first and the directory last, each at one index of its log.
// A backup exists from the moment in which its manifest has its name: the manifest is written
// last, when all files are on the disk and have been read back. A file is named by its SHA-256
// and never changes; backups share those of shards that did not change between them.
//
// The package starts no goroutine.
package backup
