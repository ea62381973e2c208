package tracker

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"switchyard/storage"
)

// The queue of all sessions has those of agents that have reached their limit, too. There may be any number
// of these in front of others. So a claim of any agent that meets many of them searches the queues of the
// other agents instead.

const (
	// maxFullPassed is the number of sessions of full agents that a claim passes over before it searches
	// the queues of the others.
	maxFullPassed = 1000
	// maxQueues is the number of agents with sessions in the queue up to which a claim does so.
	maxQueues = 1000
)

// queuesWithRoom returns the agents with sessions in the queue that have room for one. all is false
// if there are more agents than maxQueues.
func (q *claim) queuesWithRoom() (agents []string, all bool, err error) {
	q.begin() // what a search has found takes no room
	cursor, err := q.tx.Cursor(sessionQueueByAgent)
	if err != nil {
		return nil, false, fmt.Errorf("list the agents with queued sessions: %w", err)
	}
	defer func() { _ = cursor.Close() }()
	looked := 0
	for ok := cursor.SeekGE(nil); ok; {
		if looked++; looked > maxQueues {
			return nil, false, nil
		}
		agent := bytes.Clone(strs(cursor.Fields(), 1)[0])
		if agent == nil {
			return nil, false, fmt.Errorf("%w: queue entry without an agent", storage.ErrFormat)
		}
		room, err := q.roomOf(agent)
		if err != nil {
			return nil, false, err
		}
		if room > 0 {
			agents = append(agents, unStr(agent))
		}
		agent[len(agent)-1] = 1 // behind all entries of the agent
		ok = cursor.SeekGE(agent)
	}
	return agents, true, cursor.Err()
}

// claimable is a session that a search has found, with its place in the queue of all.
type claimable struct {
	urgency byte
	session storage.ID
	pk      []byte
}

func (a *claimable) compare(b *claimable) int {
	return cmp.Or(cmp.Compare(a.urgency, b.urgency), bytes.Compare(a.session[:], b.session[:]))
}

// findByAgent is find by the queues of some agents.
func (q *claim) findByAgent(agents []string) error {
	q.begin()
	var best []claimable // in the order of the queue, at most the limit
	for _, agent := range agents {
		if err := q.tx.walkQueue(agent, func(e *queuedEntry, pk []byte) (bool, error) {
			s := claimable{e.urgency, e.session, pk}
			if q.looked == q.most || len(best) == q.limit && s.compare(&best[q.limit-1]) > 0 {
				return false, nil
			}
			takes, full, err := q.look(e, pk)
			if err != nil || !takes {
				return !full, err
			}
			s.pk = bytes.Clone(pk)
			at, _ := slices.BinarySearchFunc(best, s, func(a, b claimable) int { return a.compare(&b) })
			best = slices.Insert(best, at, s)
			best = best[:min(len(best), q.limit)]
			return true, nil
		}); err != nil {
			return err
		}
	}
	for i := range best {
		q.found = append(q.found, best[i].pk)
	}
	return nil
}
