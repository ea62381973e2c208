package tracker

import (
	"fmt"
	"slices"

	"switchyard/storage"
)

// queueFloors remembers where the claim queue begins. What was claimed leaves its
// mark in the store for a while, and a queue is taken from at its front: without
// this each claim would walk over the marks of all before it.
//
// A floor is right as long as no session gets into the queue below it unnoticed:
// whatever stores a session that can be claimed calls lower. Owned by the workspace's
// goroutine.
type queueFloors struct {
	floors map[floorKey]queueFloor
	// raised: the running command has moved a floor up.
	raised bool
}

// floorKey names a part of a queue: all sessions of an urgency, or those of one
// agent.
type floorKey struct {
	agent   string // "": of all
	urgency byte
}

// queueFloor says that there is nothing older than first, or nothing at all.
type queueFloor struct {
	first storage.ID
	empty bool
}

// maxFloors bounds what is remembered.
const maxFloors = 4096

func (f *queueFloors) forget() { clear(f.floors) }

// raise notes what the front of a part is.
func (f *queueFloors) raise(key floorKey, floor queueFloor) {
	if f.floors == nil {
		f.floors = map[floorKey]queueFloor{}
	}
	if len(f.floors) >= maxFloors {
		clear(f.floors)
	}
	f.raised = true
	f.floors[key] = floor
}

// lower notes that a session can be claimed.
func (f *queueFloors) lower(s *sessionRecord) {
	id := s.id()
	for _, agent := range [2]string{"", s.AgentID} {
		key := floorKey{agent, urgency(s.Inner.Rank)}
		floor, known := f.floors[key]
		if known && (floor.empty || string(id[:]) < string(floor.first[:])) {
			f.floors[key] = queueFloor{first: id}
		}
	}
}

// walkQueue walks the sessions that can be claimed, of an agent or with "" of all,
// in the order of claims, until fn returns false. The entry is valid until then.
func (tx *Tx) walkQueue(agent string, fn func(e *queuedEntry, pk []byte) (bool, error)) error {
	index, start := sessionQueue, storage.Key(nil)
	if agent != "" {
		index, start = sessionQueueByAgent, start.Str(agent)
	}
	queue := &tx.ledger.queue
	for rank := int(PriorityUrgent.rank()); rank >= 0; rank-- {
		key := floorKey{agent, urgency(byte(rank))}
		floor, known := queue.floors[key]
		if floor.empty {
			continue
		}
		prefix := slices.Concat(start, storage.Key{key.urgency})
		var from []byte
		if known {
			from = floor.first[:]
		}
		empty, more := true, true
		err := tx.Rows(index, prefix, from, func(fields, _ []byte) (bool, error) {
			e, err := parseQueued(fields[len(prefix):], agent == "")
			if err != nil {
				return false, err
			}
			if agent != "" {
				e.agent = start
			}
			if empty {
				empty = false
				queue.raise(key, queueFloor{first: e.session})
			}
			more, err = fn(&e, fields[len(fields)-storage.ListedKeyLen:])
			return more, err
		})
		if err != nil {
			return fmt.Errorf("walk the claim queue: %w", err)
		}
		if empty {
			queue.raise(key, queueFloor{empty: true})
		}
		if !more {
			return nil
		}
	}
	return nil
}

// countEngaged keeps the number of sessions that an agent is at, registered or not;
// old is nil for a new session.
func (tx *Tx) countEngaged(old, s *sessionRecord) error {
	was, is := old != nil && old.engaged(), s.engaged()
	if was == is || s.AgentID == unassigned {
		return nil
	}
	agent := agentKey(s.AgentID)
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
