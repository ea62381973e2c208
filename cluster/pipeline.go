package cluster

import (
	"sync"

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
			if last { // before Raft gets the answer: it must find the pipeline closed
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
	p.once.Do(func() { close(p.quit) })
	return p.AppendPipeline.Close()
}
