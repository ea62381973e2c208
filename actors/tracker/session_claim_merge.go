package tracker

import (
	"bytes"
	"container/heap"

	"switchyard/storage"
)

// maxReadAhead is the number of sessions that a merge reads from the queue of an agent at a time. The
// first read is of one session: most claims take sessions of few agents.
const maxReadAhead = 64

// findByAgent is find by the queues of some agents, which it merges in the order of the queue of all.
// So a search that may look at no more sessions has found the first ones.
func (q *claim) findByAgent(agents []string) error {
	q.begin()
	for rank := int(PriorityUrgent.rank()); rank >= 0; rank-- {
		if err := q.mergeQueues(agents, urgency(byte(rank))); err != nil || q.ended() {
			return err
		}
	}
	return nil
}

// ended reports whether the search has found its limit, or may look at no more sessions.
func (q *claim) ended() bool { return len(q.found) == q.limit || q.looked == q.most }

// mergeQueues goes on with the sessions of one urgency.
func (q *claim) mergeQueues(agents []string, urgency byte) error {
	var queues agentQueues
	for _, agent := range agents {
		key := storage.Key(nil).Str(agent)
		if room, err := q.roomOf(key); err != nil {
			return err
		} else if room <= 0 {
			continue // the sessions that were found take its places
		}
		a := &agentQueue{agent: agent, key: key, urgency: urgency, size: 1}
		if err := a.read(q.tx); err != nil {
			return err
		}
		if len(a.ahead) > 0 {
			queues = append(queues, a)
		}
	}
	heap.Init(&queues)
	for len(queues) > 0 && !q.ended() {
		first := queues[0]
		s := &first.ahead[0]
		takes, full, err := q.look(&s.queuedEntry, s.pk)
		if err != nil {
			return err
		}
		if takes {
			q.found = append(q.found, bytes.Clone(s.pk))
		}
		if first.ahead = first.ahead[1:]; len(first.ahead) == 0 && !full {
			if err := first.read(q.tx); err != nil {
				return err
			}
		}
		if full || len(first.ahead) == 0 {
			heap.Pop(&queues)
		} else {
			heap.Fix(&queues, 0)
		}
	}
	return nil
}

// agentQueue reads the queue of an agent, of one urgency, some sessions at a time. An iterator that
// stays open for each of 1,000 agents would take more memory.
type agentQueue struct {
	agent   string
	key     storage.Key // agent as in keys
	urgency byte
	ahead   []aheadSession // read and not looked at
	size    int            // of the next read
	next    []byte         // the id of the session behind; nil at the beginning and the end
	begun   bool
	text    []byte // of the sessions ahead
}

// aheadSession is an entry of an agent's queue with the session's primary key.
type aheadSession struct {
	queuedEntry
	pk []byte
}

// read reads the sessions behind those that were read before. ahead must be empty; it is empty after
// the last one.
func (a *agentQueue) read(tx *Tx) error {
	if a.begun && a.next == nil {
		return nil
	}
	from := a.next
	a.begun, a.next, a.ahead, a.text = true, nil, nil, a.text[:0]
	keep := func(b []byte) []byte {
		n := len(a.text)
		a.text = append(a.text, b...)
		return a.text[n:]
	}
	_, err := tx.walkUrgency(a.agent, a.urgency, from, func(e *queuedEntry, pk []byte) (bool, error) {
		if len(a.ahead) == a.size {
			a.next = bytes.Clone(e.session[:])
			return false, nil
		}
		s := aheadSession{*e, keep(pk)}
		s.agent, s.provider = a.key, keep(e.provider)
		a.ahead = append(a.ahead, s)
		return true, nil
	})
	a.size = min(2*a.size, maxReadAhead)
	return err
}

// agentQueues is a heap of queues that have sessions ahead, with the first session of all on top.
type agentQueues []*agentQueue

// Len implements heap.Interface.
func (h agentQueues) Len() int { return len(h) }

// Less implements heap.Interface.
func (h agentQueues) Less(i, j int) bool {
	return bytes.Compare(h[i].ahead[0].session[:], h[j].ahead[0].session[:]) < 0
}

// Swap implements heap.Interface.
func (h agentQueues) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *agentQueues) Push(x any) { *h = append(*h, x.(*agentQueue)) }

// Pop implements heap.Interface. The queue may have no sessions ahead.
func (h *agentQueues) Pop() any {
	old := *h
	a := old[len(old)-1]
	*h = old[:len(old)-1]
	return a
}
