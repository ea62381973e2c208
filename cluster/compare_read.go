package cluster

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"switchyard/storage"
)

// compareRequest asks a replica for the fingerprint of its rows at an entry. The first request begins
// to read them, and it is repeated until there is an answer: to read all rows takes minutes, longer
// than a control request may.
type compareRequest struct {
	Shard storage.Shard `json:"shard"`
	Entry uint64        `json:"entry"`
}

type compareAnswer struct {
	// Pending is set while the rows are read, or the replica has not come to the entry.
	Pending bool `json:"pending,omitempty"`
	// Missed is set if the replica was not at the entry: the owner asks for another one.
	Missed bool   `json:"missed,omitempty"`
	Failed string `json:"failed,omitempty"` // why there is no fingerprint; empty while there may be one
	Sum    string `json:"sum,omitempty"`    // in hexadecimal
	Rows   int64  `json:"rows,omitempty"`
}

func (a compareAnswer) print() string { return fmt.Sprintf("%s/%d", a.Sum, a.Rows) }

const (
	// maxReadings bounds the replicas that a node reads at the same time.
	maxReadings = 4
	// cutWithin is how long a replica waits for the entry.
	cutWithin = 15 * time.Second
	// readingKept is how long a reading goes on, or its answer is kept, while nobody asks for it.
	readingKept = 30 * time.Second
)

// errReplicaReplaced is the error of a reading during which the replica got its rows anew.
var errReplicaReplaced = errors.New("the replica was replaced meanwhile")

// replicaReader reads the replicas of this node for comparisons. It owns one goroutine for each
// reading.
type replicaReader struct {
	group func(storage.Shard) *group
	rests func(began time.Time) func(work time.Duration) time.Duration // nil: reading does not rest

	running sync.WaitGroup
	mu      sync.Mutex
	closed  bool
	current map[compareRequest]*reading
}

// reading is the reading of one replica. Its answer is under the reader's mu.
type reading struct {
	answer compareAnswer
	cancel context.CancelFunc
	unused *time.Timer // forgets it
}

func newReplicaReader(group func(storage.Shard) *group, rests func(time.Time) func(time.Duration) time.Duration) *replicaReader {
	return &replicaReader{group: group, rests: rests, current: map[compareRequest]*reading{}}
}

// handle answers rpcCompare.
func (r *replicaReader) handle(_ context.Context, _ string, body []byte) ([]byte, error) {
	var in compareRequest
	if err := decodeRequest(body, &in); err != nil {
		return nil, err
	}
	return json.Marshal(r.ask(in))
}

// ask begins the reading, or returns what it came to. An answer is given once: the rows may be others
// at the same entry after the replica was replaced.
func (r *replicaReader) ask(in compareRequest) compareAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.current[in]; known != nil {
		if known.answer.Pending {
			known.unused.Reset(readingKept)
		} else {
			r.forget(in)
		}
		return known.answer
	}
	g := r.group(in.Shard)
	switch {
	case r.closed || g == nil || !g.up.Load() || g.failed.Load() != nil:
		return compareAnswer{Failed: "the node has no replica of the shard that can be read"}
	case len(r.current) >= maxReadings:
		return compareAnswer{Failed: "the node reads other replicas"}
	}
	ctx, cancel := context.WithCancel(context.Background())
	begun := &reading{answer: compareAnswer{Pending: true}, cancel: cancel}
	begun.unused = time.AfterFunc(readingKept, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.current[in] == begun {
			r.forget(in)
		}
	})
	r.current[in] = begun
	r.running.Go(func() {
		answer := r.read(ctx, g, in.Entry)
		r.mu.Lock()
		defer r.mu.Unlock()
		begun.answer = answer
	})
	return begun.answer
}

// forget ends a reading. The caller holds mu.
func (r *replicaReader) forget(in compareRequest) {
	r.current[in].unused.Stop()
	r.current[in].cancel()
	delete(r.current, in)
}

// read returns the fingerprint of a replica at an entry.
func (r *replicaReader) read(ctx context.Context, g *group, entry uint64) compareAnswer {
	print, err := r.fingerprint(ctx, g, entry)
	switch {
	case errors.Is(err, errCutMissed):
		return compareAnswer{Missed: true}
	case err != nil:
		return compareAnswer{Failed: err.Error()}
	}
	return compareAnswer{Sum: hex.EncodeToString(print.Sum[:]), Rows: print.Rows}
}

func (r *replicaReader) fingerprint(ctx context.Context, g *group, entry uint64) (print storage.Fingerprint, err error) {
	within, cancel := context.WithTimeout(ctx, cutWithin)
	defer cancel()
	rows, err := g.machine.rowsAt(within, entry)
	if err != nil {
		return print, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	before, err := readPosition(rows, g.shard)
	if err != nil {
		return print, err
	}
	options := storage.FingerprintOptions{Without: [][]byte{positionKey(g.shard)}}
	if r.rests != nil {
		options.Rests = r.rests(time.Now())
	}
	if print, err = storage.FingerprintWith(ctx, rows, g.shard, options); err != nil {
		return print, err
	}
	// An install replaces all files of the shard, also for those who read an earlier state.
	after, err := readPosition(rows, g.shard)
	if err == nil && after != before {
		err = errReplicaReplaced
	}
	return print, err
}

// close ends all readings.
func (r *replicaReader) close() {
	r.mu.Lock()
	r.closed = true
	for in := range r.current {
		r.forget(in)
	}
	r.mu.Unlock()
	r.running.Wait()
}
