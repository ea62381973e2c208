package cluster

import (
	"sync"

	"github.com/hashicorp/raft"
)

// pipeline sends a peer entries before the answers to those before them have come.
//
// A refusal ends it here, because of what Raft does: it takes no answer after a
// refused one, and may yet send one more request, which waits for the answers
// before it to be taken. Raft closes the pipeline only after that, so it waits for
// ever. The goroutine that replicates to the peer would be lost: the peer gets
// heartbeats but no entry any more for as long as this node leads, and Raft's
// Shutdown, which waits for that goroutine, never ends.
// (The same was found by grafana/pyroscope, pull request 5518.)
type pipeline struct {
	raft.AppendPipeline
	answers chan raft.AppendFuture
	quit    chan struct{}
	once    sync.Once
}

func newPipeline(to raft.AppendPipeline) *pipeline {
	p := &pipeline{AppendPipeline: to, answers: make(chan raft.AppendFuture), quit: make(chan struct{})}
	go p.relay()
	return p
}

// relay passes the answers on. It ends with the pipeline.
func (p *pipeline) relay() {
	answers := p.AppendPipeline.Consumer()
	for {
		select {
		case answer := <-answers:
			last := refused(answer)
			if last { // before Raft knows: it must find the pipeline closed
				_ = p.AppendPipeline.Close()
			}
			select {
			case p.answers <- answer:
			case <-p.quit:
				return
			}
			if last {
				return
			}
		case <-p.quit:
			return
		}
	}
}

// refused tells whether Raft takes no answer after this one.
func refused(answer raft.AppendFuture) bool {
	if answer.Error() != nil {
		return true
	}
	response := answer.Response()
	return !response.Success || response.Term > answer.Request().Term
}

// Consumer gives the answers, up to the first that refuses.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// Close ends the pipeline.
func (p *pipeline) Close() error {
	p.once.Do(func() { close(p.quit) })
	return p.AppendPipeline.Close()
}
