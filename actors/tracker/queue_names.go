package tracker

import (
	"fmt"

	"switchyard/storage"
)

// queueNames decides which agents and concurrency keys a QueueSummary names. Branches,
// repositories and projects are in keys, and agents' ids are any text, so a caller gets those of
// sessions that it sees, and no others (Decision 64).
type queueNames struct {
	v     *View
	whole bool // the caller sees every session that has not ended
	seen  accessCache
	left  int // sessions that may still be looked at for a list
}

const (
	// maxNameLooked is the number of sessions that are looked at for one agent or key, and
	// maxQueueLooked that for a list of them.
	maxNameLooked  = 200
	maxQueueLooked = 20_000
)

// namesOfQueue lists the agents and the keys of a summary.
func (v *View) namesOfQueue(q *QueueSummary) (err error) {
	n := queueNames{v: v}
	if n.whole, err = v.canViewEveryIssue(); err != nil {
		return err
	}
	n.left = maxQueueLooked
	if err := v.eachQueueCount(queueCountAgent, func(agent string, a amount) (bool, error) {
		named, err := n.agent(agent)
		if named {
			q.ByAgent = append(q.ByAgent, QueueOfAgent{AgentID: agent, Created: a.n, Running: a.sum, Waiting: a.hi})
		}
		return len(q.ByAgent) < maxQueueRows && n.left > 0, err
	}); err != nil {
		return err
	}
	n.left = maxQueueLooked
	return v.eachQueueCount(queueCountKey, func(key string, a amount) (bool, error) {
		named, err := n.key(key)
		if named {
			q.ByKey = append(q.ByKey, QueueOfKey{Key: key, Running: a.n, Waiting: a.sum})
		}
		return len(q.ByKey) < maxQueueRows && n.left > 0, err
	})
}

// agent reports whether the caller sees a session of an agent, also one that has ended.
func (n *queueNames) agent(id string) (bool, error) {
	return n.among(storage.Key(nil).Str(id), sessionByAgent)
}

// key reports whether the caller sees a session with a concurrency key: one that holds it, may
// be claimed or is parked under it.
func (n *queueNames) key(key string) (bool, error) {
	seen, err := n.among(storage.Key(nil).Str(key), sessionByKey)
	if err != nil || seen {
		return seen, err
	}
	return n.among(storage.Key(nil).Byte(byte(parkConcurrency)).Str(key), sessionParked)
}

// among reports whether the caller sees one of the first sessions under a prefix of an index.
func (n *queueNames) among(prefix storage.Key, index storage.TableID) (seen bool, err error) {
	if n.whole {
		return true, nil
	}
	looked := 0
	err = n.v.Rows(index, prefix, nil, func(fields, _ []byte) (bool, error) {
		if looked++; looked > maxNameLooked || n.left <= 0 {
			return false, nil
		}
		n.left--
		_, err := sessions.Record(n.v, fields[len(fields)-storage.ListedKeyLen:], func(rec storage.Record) (err error) {
			if rec.Flags()&sessionOrphan != 0 || n.v.decidesByRecord(rec) {
				seen, err = n.v.canViewSession(rec)
			} else {
				seen, err = n.seen.byIssue(rec, n.v.canViewSession)
			}
			return err
		})
		return !seen, err
	})
	if err != nil {
		return false, fmt.Errorf("look for a session that the caller sees: %w", err)
	}
	return seen, nil
}
