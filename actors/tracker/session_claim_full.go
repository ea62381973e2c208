package tracker

import (
	"bytes"
	"fmt"

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
