package node

import (
	"sync"
	"time"
)

const (
	// quietRate is the number of requests a second up to which images are made and sent at full speed.
	quietRate = 5
	// busyRate is that from which their rests have the full length.
	busyRate = 25
	// fullRest is the length of such a rest, in times of the work before it and of the images at once:
	// all images together then take about a tenth of a processor.
	fullRest = 8
	// blockWork is about how long this machine works to send a block of an image, and to write it if
	// the backup is made here.
	blockWork = 600 * time.Microsecond
	// rateEvery is how often the requests are counted.
	rateEvery = 100 * time.Millisecond
)

// imageRests lets images of shards rest while requests are carried out. The kernel gives both the
// same share of the processors and of the disk.
type imageRests struct {
	mu    sync.Mutex
	since time.Time
	count uint64  // of requests then
	rate  float64 // of requests, lately
}

// restAfter returns how long an image rests after some work.
func (n *Node) restAfter(work time.Duration) time.Duration {
	return n.images.rests.after(work, len(n.images.slot), n.api.Requests(), time.Now())
}

// after returns how long one of some images rests after some work, at a moment at which the node has carried
// out count requests since it began.
func (r *imageRests) after(work time.Duration, images int, count uint64, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch passed := now.Sub(r.since); {
	case passed < rateEvery:
	case passed < 20*rateEvery:
		// The mean of some looks: within one there are few requests.
		r.rate += (float64(count-r.count)/passed.Seconds() - r.rate) / 4
		r.since, r.count = now, count
	default: // this is the first image for a while
		r.rate, r.since, r.count = busyRate, now, count
	}
	share := min(1, max(0, (r.rate-quietRate)/(busyRate-quietRate)))
	return time.Duration(fullRest * share * float64(images) * float64(work))
}
