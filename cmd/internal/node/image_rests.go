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
	// halvedAfter is the age of an image at which its rests have half the length, and half of that after
	// as long again, down to an eighth. While rows are copied, the space of those that are written over
	// stays in use.
	halvedAfter = 5 * time.Minute
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

// rests returns the rests of an image that began at some moment, each after some work.
func (n *Node) rests(began time.Time) func(work time.Duration) time.Duration {
	return n.restsBeside(0, began)
}

// compareRests returns the rests of the reading of a replica that began at some moment, to compare it
// with others: it works as an image does.
func (n *Node) compareRests(began time.Time) func(work time.Duration) time.Duration {
	return n.restsBeside(1, began)
}

// restsBeside returns rests of work that is so much more than the images at once.
func (n *Node) restsBeside(more int, began time.Time) func(work time.Duration) time.Duration {
	return func(work time.Duration) time.Duration {
		now := time.Now()
		length := n.images.rests.length(len(n.images.slot)+more, n.api.Requests(), now) * aged(now.Sub(began))
		return time.Duration(length * float64(work))
	}
}

// aged returns the share of the full length that the rests of an image of some age have.
func aged(age time.Duration) float64 {
	return 1 / float64(int(1)<<min(3, max(0, age/halvedAfter)))
}

// length returns the length of a rest of one of some images, in times of the work before it, at a
// moment at which the node has carried out count requests since it began.
func (r *imageRests) length(images int, count uint64, now time.Time) float64 {
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
	return fullRest * share * float64(images)
}
