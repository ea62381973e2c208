package tracker

import (
	"fmt"
	"slices"

	"switchyard/storage"
)

// queueHeads caches where the claim queue begins. Claimed sessions leave tombstones in
// the store for a while, at the front of the queue; without this cache each claim would
// iterate over all of them.
//
// A head is correct as long as every session that enters the queue is noted: all code
// that stores a claimable session calls lower. Owned by the workspace's goroutine.
type queueHeads struct {
	heads map[queueHeadKey]queueHead
	// providers are the providers of the sessions in the queue, by agent; see
	// queuedProviders.
	providers map[string]queueProviders
	// raised is set if the running command has moved a head up, or noted providers.
	raised bool
}

// queueHeadKey identifies a part of a queue: the sessions of one urgency, of all agents or
// of one.
type queueHeadKey struct {
	agent   string // "" for all
	urgency byte
}

// queueHead says that a part has no session before first, or none at all.
type queueHead struct {
	first storage.ID
	empty bool
}

// maxQueueHeads limits the cache.
const maxQueueHeads = 4096

func (f *queueHeads) forget() {
	clear(f.heads)
	clear(f.providers)
}

// raise sets the head of a part.
func (f *queueHeads) raise(key queueHeadKey, head queueHead) {
	if f.heads == nil {
		f.heads = map[queueHeadKey]queueHead{}
	}
	if len(f.heads) >= maxQueueHeads {
		clear(f.heads)
	}
	f.raised = true
	f.heads[key] = head
}

// lower notes that a session can be claimed.
func (f *queueHeads) lower(s *sessionRecord) {
	id := s.id()
	for _, agent := range [2]string{"", s.AgentID} {
		key := queueHeadKey{agent, urgency(s.Inner.Rank)}
		head, known := f.heads[key]
		if known && (head.empty || string(id[:]) < string(head.first[:])) {
			f.heads[key] = queueHead{first: id}
		}
	}
	f.addProvider(s.AgentID, s.Provider)
}

// walkQueue calls fn for the claimable sessions of an agent, or of all with "", in the
// order of claims, until fn returns false. The entry is valid until fn returns.
func (tx *Tx) walkQueue(agent string, fn func(e *queuedEntry, pk []byte) (bool, error)) error {
	for rank := int(PriorityUrgent.rank()); rank >= 0; rank-- {
		more, err := tx.walkUrgency(agent, urgency(byte(rank)), nil, fn)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// walkUrgency is walkQueue for the sessions of one urgency, from an id on; nil is the beginning.
// more is false if fn has ended it.
func (tx *Tx) walkUrgency(agent string, urgency byte, from []byte, fn func(e *queuedEntry, pk []byte) (bool, error)) (more bool, err error) {
	queue := &tx.buffer.queue
	key := queueHeadKey{agent, urgency}
	whole := from == nil
	if whole {
		head, known := queue.heads[key]
		if head.empty {
			return true, nil
		}
		if known {
			from = head.first[:]
		}
	}
	index, start := sessionQueue, storage.Key(nil)
	if agent != "" {
		index, start = sessionQueueByAgent, start.Str(agent)
	}
	prefix := slices.Concat(start, storage.Key{urgency})
	empty := true
	more = true
	err = tx.Rows(index, prefix, from, func(fields, _ []byte) (bool, error) {
		e, err := parseQueued(fields[len(prefix):], agent == "")
		if err != nil {
			return false, err
		}
		if agent != "" {
			e.agent = start
		}
		if empty && whole {
			queue.raise(key, queueHead{first: e.session})
		}
		empty = false
		more, err = fn(&e, fields[len(fields)-storage.ListedKeyLen:])
		return more, err
	})
	if err != nil {
		return false, fmt.Errorf("walk the claim queue: %w", err)
	}
	if empty && whole {
		queue.raise(key, queueHead{empty: true})
	}
	return more, nil
}

// countEngaged updates the number of sessions that an agent works on, registered or
// not; old is nil for a new session, and s for one that is removed.
func (tx *Tx) countEngaged(old, s *sessionRecord) error {
	was, is := old != nil && old.engaged(), s != nil && s.engaged()
	of := s
	if of == nil {
		of = old
	}
	if was == is || of.AgentID == unassigned {
		return nil
	}
	agent := agentKey(of.AgentID)
	n, err := tx.Counter(engagedTable, agent)
	if err != nil {
		return err
	}
	if is {
		n++
	} else {
		n--
	}
	return tx.SetCounter(engagedTable, agent, n)
}
