package backup

import (
	"context"
	"time"
)

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
