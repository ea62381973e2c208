package tracker

import (
	"bytes"
	"errors"
	"fmt"

	"switchyard/storage"
)

// QueueSummary is the state of a workspace's sessions, from counts that are kept
// (Decision 64).
type QueueSummary struct {
	Counts     map[SessionStatus]uint64 `json:"counts"`
	WaitingFor map[WaitingReason]uint64 `json:"waitingFor"`
	ByAgent    []QueueOfAgent           `json:"byAgent"`
	ByKey      []QueueOfKey             `json:"byKey"`
	// OldestCreatedAt is the time of the oldest session that is created; null for none.
	OldestCreatedAt *Timestamp `json:"oldestCreatedAt"`
}

// QueueOfAgent is the part of an agent's sessions in a QueueSummary.
type QueueOfAgent struct {
	AgentID         string     `json:"agentId"`
	Created         uint64     `json:"created"`
	Running         uint64     `json:"running"`
	Waiting         uint64     `json:"waiting"`
	ClaimersWaiting int        `json:"claimersWaiting"`
	OldestCreatedAt *Timestamp `json:"oldestCreatedAt"`
}

// QueueOfKey is the part of a concurrency key's sessions in a QueueSummary.
type QueueOfKey struct {
	Key     string `json:"key"`
	Limit   uint64 `json:"limit"`
	Running uint64 `json:"running"`
	Waiting uint64 `json:"waiting"`
}

// maxQueueRows is the most that each list of a QueueSummary has.
const maxQueueRows = 1000

// ReadQueue answers with a QueueSummary.
var ReadQueue = NewQuery[None, QueueSummary]("ReadQueue", "Count the sessions by status, reason, agent and key", Needs{Read, "sessions"}, readQueue, FromSnapshot, TakesATurn)

func readQueue(v *View, _ *None) (Reply, error) {
	q := &QueueSummary{Counts: map[SessionStatus]uint64{}, WaitingFor: map[WaitingReason]uint64{}, ByAgent: []QueueOfAgent{}, ByKey: []QueueOfKey{}}
	for _, status := range sessionStatuses {
		q.Counts[status] = 0
	}
	for _, reason := range waitingReasons {
		q.WaitingFor[reason] = 0
	}
	if err := v.eachQueueCount(queueCountStatus, func(text string, a amount) (bool, error) {
		q.Counts[SessionStatus(text)] = a.n
		return true, nil
	}); err != nil {
		return Reply{}, err
	}
	if err := v.eachQueueCount(queueCountReason, func(text string, a amount) (bool, error) {
		q.WaitingFor[WaitingReason(text)] = a.n
		return true, nil
	}); err != nil {
		return Reply{}, err
	}
	if err := v.namesOfQueue(q); err != nil {
		return Reply{}, err
	}
	for i := range q.ByKey {
		limit, err := v.keyLimit(q.ByKey[i].Key)
		if err != nil {
			return Reply{}, err
		}
		q.ByKey[i].Limit = limit
	}
	if err := v.queueOfAgents(q); err != nil {
		return Reply{}, err
	}
	oldest, err := v.oldestUnder(sessionByStatus, storage.Key(nil).Byte(SessionCreated.rank()))
	if err != nil {
		return Reply{}, err
	}
	q.OldestCreatedAt = oldest
	return jsonReply(Done, q)
}

// eachQueueCount calls fn for the counts of a kind, until it returns false.
func (v *View) eachQueueCount(kind aggregateKind, fn func(text string, a amount) (bool, error)) error {
	err := v.Rows(queueCountTable, storage.Key(nil).Byte(byte(kind)), nil, func(fields, value []byte) (bool, error) {
		a, err := parseAmount(value)
		if err != nil {
			return false, err
		}
		return fn(unStr(fields[1:]), a)
	})
	if err != nil {
		return fmt.Errorf("read the counts of the queue: %w", err)
	}
	return nil
}

// queueOfAgents completes the agents of a summary, and counts their sessions in the claim
// queue by what they wait for.
func (v *View) queueOfAgents(q *QueueSummary) (err error) {
	oldest, err := v.oldestSessions()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, oldest.close()) }()
	for i := range q.ByAgent {
		a := &q.ByAgent[i]
		if v.claimers != nil {
			group, _ := claimTopic(a.AgentID, "").Group()
			a.ClaimersWaiting = v.claimers(v.Workspace(), group)
		}
		if a.Created == 0 {
			continue
		}
		if a.OldestCreatedAt, err = oldest.of(a.AgentID); err != nil {
			return err
		}
	}
	anyone := 0
	if v.claimers != nil {
		group, _ := claimTopic("", "").Group()
		anyone = v.claimers(v.Workspace(), group)
	}
	return v.eachQueueCount(queueCountQueued, func(agent string, a amount) (bool, error) {
		full, err := v.agentFull(agent)
		if err != nil {
			return false, err
		}
		group, _ := claimTopic(agent, "").Group()
		switch {
		case full:
			q.WaitingFor[WaitingAgentFull] += a.n
		case anyone == 0 && (v.claimers == nil || v.claimers(v.Workspace(), group) == 0):
			q.WaitingFor[WaitingNoClaimer] += a.n
		}
		return true, nil
	})
}

// oldestSessions finds the oldest created session of each of many agents, with one cursor
// over each of the two indexes that have them.
type oldestSessions struct {
	v                *View
	unqueued, queued *storage.Cursor
}

// oldestSessions opens the cursors, to be closed.
func (v *View) oldestSessions() (*oldestSessions, error) {
	unqueued, err := v.Cursor(sessionUnqueued)
	if err != nil {
		return nil, err
	}
	queued, err := v.Cursor(sessionQueueByAgent)
	if err != nil {
		return nil, errors.Join(err, unqueued.Close())
	}
	return &oldestSessions{v: v, unqueued: unqueued, queued: queued}, nil
}

func (o *oldestSessions) close() error { return errors.Join(o.unqueued.Close(), o.queued.Close()) }

// of returns the time of an agent's oldest session that is created; nil for none. Primary
// keys of sessions are in the order of their age, the newest first.
func (o *oldestSessions) of(agent string) (*Timestamp, error) {
	prefix := storage.Key(nil).Str(agent)
	var oldest []byte
	entry := func(c *storage.Cursor, found bool) (after []byte) {
		if !found || !bytes.HasPrefix(c.Fields(), prefix) {
			return nil
		}
		pk := c.Fields()[len(c.Fields())-storage.ListedKeyLen:]
		if bytes.Compare(pk, oldest) > 0 {
			oldest = append(oldest[:0], pk...)
		}
		return c.Fields()[len(prefix):]
	}
	end := append(bytes.Clone(prefix[:len(prefix)-1]), prefix[len(prefix)-1]+1)
	entry(o.unqueued, o.unqueued.SeekLT(end))
	// The claim queue has the sessions of each priority in the order of their age.
	from := prefix
	for {
		rest := entry(o.queued, o.queued.SeekGE(from))
		if len(rest) == 0 || rest[0] == 0xff {
			break
		}
		from = append(from[:len(prefix)], rest[0]+1)
	}
	if err := errors.Join(o.unqueued.Err(), o.queued.Err()); err != nil {
		return nil, fmt.Errorf("look for an agent's oldest session: %w", err)
	}
	if oldest == nil {
		return nil, nil
	}
	return o.v.createdAt(oldest)
}

// oldestUnder returns the time of the last session under a prefix of an index, in which
// the newest come first; nil for none.
func (v *View) oldestUnder(index storage.TableID, prefix storage.Key) (*Timestamp, error) {
	var pk []byte
	if err := v.RowsBack(index, prefix, nil, func(fields, _ []byte) (bool, error) {
		pk = append(pk, fields[len(fields)-storage.ListedKeyLen:]...)
		return false, nil
	}); err != nil {
		return nil, fmt.Errorf("look for the oldest session: %w", err)
	}
	if pk == nil {
		return nil, nil
	}
	return v.createdAt(pk)
}

// createdAt returns the time when a session was made, by its primary key.
func (v *View) createdAt(pk []byte) (*Timestamp, error) {
	row, err := sessions.Get(v, pk)
	if err != nil || row == nil {
		return nil, err
	}
	return &row.Value.CreatedAt, nil
}
