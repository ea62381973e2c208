package cluster

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// pipeline sends entries to a follower without waiting for the answers to earlier ones.
//
// A refusal ends the pipeline here, because of a fault in Raft: after a refusal it takes no more
// answers, but it may still send one more request, which waits until the earlier answers have been
// taken. Raft closes the pipeline only after that, so it waits for ever. The goroutine that
// replicates to the follower is lost: the follower gets heartbeats but no entries for as long as
// this node leads, and Raft's Shutdown, which waits for that goroutine, never returns.
// (grafana/pyroscope found the same, pull request 5518.)
//
// A follower that is behind by more than one request ends the pipeline too. By pipeline Raft sends at
// most MaxAppendEntries entries for each new entry of the log and for each CommitTimeout. A shard
// that nobody writes to, or that can't commit before this follower has the entries, would take
// seconds for each request. Without a pipeline Raft sends until the follower has the whole log.
//
// Raft begins with that at the next entry of the log, or after CommitTimeout. So there is a new entry,
// an empty one, whenever a pipeline ends.
//
// A follower that lacks less than that may wait for the next entry, too: Raft was told of all entries
// before it sent the first of them. The shard may not be able to take another entry before the
// follower has these. So an empty one follows here as well, when no answer has come for a moment.
type pipeline struct {
	raft.AppendPipeline
	last   func() uint64 // index of the newest entry in this node's log
	resume func()        // makes Raft send what the follower lacks; nil for nothing
	silent *atomic.Bool  // nothing is sent while it is set; nil: never
	// await waits until a request may be sent; nil: at once.
	await    func(*raft.AppendEntriesRequest) error
	inFlight atomic.Int64 // requests without an answer
	answers  chan raft.AppendFuture
	quit     chan struct{}
	once     sync.Once
}

// pipelineLag is the number of entries that a follower may be behind by a pipeline on which no
// request is under way.
const pipelineLag = maxAppendEntries + 1

// pipelinePause is how long a follower that lacks entries waits for a request. A busy disk takes less.
const pipelinePause = redialEvery

func newPipeline(to raft.AppendPipeline, last func() uint64, resume func()) *pipeline {
	if resume == nil {
		resume = func() {}
	}
	p := &pipeline{AppendPipeline: to, last: last, resume: resume, answers: make(chan raft.AppendFuture), quit: make(chan struct{})}
	go p.relay()
	return p
}

// AppendEntries sends a request.
func (p *pipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if p.silent != nil && p.silent.Load() {
		return nil, errSilent
	}
	if p.await != nil {
		if err := p.await(args); err != nil {
			return nil, err
		}
	}
	p.inFlight.Add(1)
	future, err := p.AppendPipeline.AppendEntries(args, resp)
	if err != nil {
		p.inFlight.Add(-1)
	}
	return future, err
}

// relay passes the answers on. It ends with the pipeline.
func (p *pipeline) relay() {
	answers := p.AppendPipeline.Consumer()
	pause := time.NewTimer(pipelinePause)
	defer pause.Stop()
	var has uint64 // newest entry that the follower has
	for {
		select {
		case answer := <-answers:
			inFlight := p.inFlight.Add(-1)
			has = newestOf(answer.Request())
			ended, behind := refused(answer), inFlight == 0 && has+pipelineLag <= p.last()
			if ended || behind { // before Raft gets the answer: it must find the pipeline closed
				_ = p.AppendPipeline.Close()
			}
			if !p.pass(answer) || ended {
				return
			}
			if behind {
				p.pass(behindAnswer{answer})
				return
			}
			pause.Reset(pipelinePause)
		case <-pause.C:
			if has > 0 && has < p.last() && p.inFlight.Load() == 0 {
				p.resume()
				pause.Reset(pipelinePause)
			}
		case <-p.quit:
			return
		}
	}
}

// pass gives Raft an answer. It returns false if the pipeline was closed.
func (p *pipeline) pass(answer raft.AppendFuture) bool {
	select {
	case p.answers <- answer:
		return true
	case <-p.quit:
		return false
	}
}

// newestOf returns the index of the newest entry that a follower has which took the request.
func newestOf(request *raft.AppendEntriesRequest) uint64 {
	return request.PrevLogEntry + uint64(len(request.Entries))
}

// behindAnswer is an answer that the follower has not given: it makes Raft leave the pipeline.
type behindAnswer struct{ to raft.AppendFuture }

func (behindAnswer) Error() error       { return nil }
func (r behindAnswer) Start() time.Time { return r.to.Start() }

// Request returns a request without entries, since none are refused.
func (r behindAnswer) Request() *raft.AppendEntriesRequest {
	return &raft.AppendEntriesRequest{Term: r.to.Request().Term}
}

func (r behindAnswer) Response() *raft.AppendEntriesResponse {
	return &raft.AppendEntriesResponse{Term: r.to.Request().Term}
}

// refused reports whether Raft takes no more answers after this one.
func refused(answer raft.AppendFuture) bool {
	if answer.Error() != nil {
		return true
	}
	response := answer.Response()
	return !response.Success || response.Term > answer.Request().Term
}

// Consumer returns the answers up to the first refusal.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// Close ends the pipeline.
func (p *pipeline) Close() error {
	err := p.AppendPipeline.Close()
	p.once.Do(func() {
		close(p.quit)
		p.resume()
	})
	return err
}
