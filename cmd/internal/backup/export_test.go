package backup

import (
	"context"
	"io/fs"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/cluster"
)

// Furthest returns what is left of a shard in the remains of nodes.
func Furthest(remains []*cluster.Remains, shard int) RecoveredShard {
	var all []*left
	for _, r := range remains {
		all = append(all, &left{Remains: r})
	}
	s, _ := furthest(all, shard)
	return s
}

// IsOwn reports whether a file is of the user that made is of.
func IsOwn(at, made fs.FileInfo) bool { return isOwn(at, made) }

// SetS3 changes the size of the parts in which a place of S3 is sent files, and how long it may
// be silent.
func SetS3(place Place, part uint64, silence time.Duration) {
	p := place.(*s3Place)
	p.part, p.silence = part, silence
}

// PartOf returns the size of the parts in which a place of S3 is sent a file.
func PartOf(place Place, size int64) uint64 { return place.(*s3Place).partOf(size) }

// HurryS3 has a place of S3 try again at once.
func HurryS3(place Place) {
	place.(*s3Place).pause = func(ctx context.Context, _ int) error { return context.Cause(ctx) }
}

// SetS3Disk has a place of S3 find so many bytes free on the disk of its spool, of total in all.
func SetS3Disk(place Place, free func() uint64, total uint64) {
	place.(*s3Place).usage = func(string) (vfs.DiskUsage, error) {
		return vfs.DiskUsage{AvailBytes: free(), TotalBytes: total}, nil
	}
}

// On has a restore make its data on a disk.
func (r Restoring) On(disk vfs.FS) Restoring { r.disk = disk; return r }

// On has a drill make its data on a disk.
func (d Drilling) On(disk vfs.FS) Drilling { d.disk = disk; return d }

// On has a recovery make its data on a disk.
func (r Recovering) On(disk vfs.FS) Recovering { r.disk = disk; return r }
