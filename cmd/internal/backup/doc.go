// Package backup copies a running cluster into an archive, and makes the data of a new
// cluster from such a copy. An archive is a place, such as a directory, and maybe a key that
// encrypts all of its files.
//
//	Take -> shards/SHA256.shard, one for each shard -> backup-MOMENT.json
//	LogArchiver -> log/SEGMENT.log, entries of a shard's log -> marks/NODE.json
//	Restore -> the data directory of one node, offline
//	Drill -> Restore into a scratch directory, and verify
//	Recover -> the same as Restore, from the data directories of nodes that are left
//
// The workspaces' shards are copied first and the directory last, each at one index of its log.
// A backup exists from the moment in which its manifest has its name: the manifest is written
// last, when all files are durable and have been read back. A file is named by the SHA-256 of
// its content, or by a keyed hash of that in an encrypted archive, and never changes; backups
// share those of shards that did not change between them.
//
// The logs of the shards are archived between backups by the nodes that own the shards. A segment is
// consecutive entries of one log, and its name has the shard, the range of indexes and the times. A
// restore to a moment puts the images of a backup in place, and applies the entries behind them. Each
// node has a small file beside the segments, log/CLUSTER-NODE.json. If it is missing, the segments may be, too.
//
// The package starts no goroutine.
package backup
