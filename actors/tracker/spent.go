package tracker

import "time"

// Spent says where the time of a request went, as far as it passed through the engine of this
// node. It is measured only if On is set, by the goroutine that carries the request out, and read
// after that.
type Spent struct {
	On bool
	// Queue is the time in which others were served: other commands of the workspace, the
	// batch before, and heavy queries. Engine is the time in which commands ran; that of
	// queries is not measured. Commit is the time from a command's run until its
	// batch was durable on a quorum.
	Queue, Engine, Commit time.Duration
}

// Add adds what a part of a request took.
func (s *Spent) Add(part Spent) {
	s.Queue += part.Queue
	s.Engine += part.Engine
	s.Commit += part.Commit
}
