package tracker

import (
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
var ReadQueue = NewQuery[None, QueueSummary]("ReadQueue", "Count the sessions by status, reason, agent and key", Needs{Read, "sessions"}, readQueue, FromSnapshot)

func readQueue(v *View, _ *None) (Reply, error) {
	q := &QueueSummary{Counts: map[SessionStatus]uint64{}, WaitingFor: map[WaitingReason]uint64{}, ByAgent: []QueueOfAgent{}, ByKey: []QueueOfKey{}}
	for _, status := range sessionStatuses {
		q.Counts[status] = 0
	}
	for _, reason := range waitingReasons {
		q.WaitingFor[reason] = 0
	}
	if err := v.eachQueueCount(queueCountStatus, func(text string, a amount) { q.Counts[SessionStatus(text)] = a.n }); err != nil {
		return Reply{}, err
	}
	if err := v.eachQueueCount(queueCountReason, func(text string, a amount) { q.WaitingFor[WaitingReason(text)] = a.n }); err != nil {
		return Reply{}, err
	}
	if err := v.eachQueueCount(queueCountAgent, func(text string, a amount) {
		if len(q.ByAgent) < maxQueueRows {
			q.ByAgent = append(q.ByAgent, QueueOfAgent{AgentID: text, Created: a.n, Running: a.sum, Waiting: a.hi})
		}
	}); err != nil {
		return Reply{}, err
	}
	if err := v.eachQueueCount(queueCountKey, func(text string, a amount) {
		if len(q.ByKey) < maxQueueRows {
			q.ByKey = append(q.ByKey, QueueOfKey{Key: text, Running: a.n, Waiting: a.sum})
		}
	}); err != nil {
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

// eachQueueCount calls fn for the counts of a kind.
func (v *View) eachQueueCount(kind aggregateKind, fn func(text string, a amount)) error {
	err := v.Rows(queueCountTable, storage.Key(nil).Byte(byte(kind)), nil, func(fields, value []byte) (bool, error) {
		a, err := parseAmount(value)
		if err == nil {
			fn(unStr(fields[1:]), a)
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("read the counts of the queue: %w", err)
	}
	return nil
}

// queueOfAgents completes the agents of a summary, and counts their sessions in the claim
// queue by what they wait for.
func (v *View) queueOfAgents(q *QueueSummary) (err error) {
	for i := range q.ByAgent {
		a := &q.ByAgent[i]
		if v.claimers != nil {
			group, _ := claimTopic(a.AgentID, "").Group()
			a.ClaimersWaiting = v.claimers(v.Workspace(), group)
		}
		if a.Created == 0 {
			continue
		}
		if a.OldestCreatedAt, err = v.oldestOf(a.AgentID); err != nil {
			return err
		}
	}
	anyone := 0
	if v.claimers != nil {
		group, _ := claimTopic("", "").Group()
		anyone = v.claimers(v.Workspace(), group)
	}
	x, failed := explainer{v: v}, error(nil)
	if err := v.eachQueueCount(queueCountQueued, func(agent string, a amount) {
		full, err := x.agentFull(agent)
		if err != nil {
			failed = err
		}
		group, _ := claimTopic(agent, "").Group()
		switch {
		case full:
			q.WaitingFor[WaitingAgentFull] += a.n
		case anyone == 0 && (v.claimers == nil || v.claimers(v.Workspace(), group) == 0):
			q.WaitingFor[WaitingNoClaimer] += a.n
		}
	}); err != nil {
		return err
	}
	return failed
}

// oldestOf returns the time of an agent's oldest session that is created.
func (v *View) oldestOf(agent string) (oldest *Timestamp, err error) {
	earlier := func(at *Timestamp) {
		if at != nil && (oldest == nil || *at < *oldest) {
			oldest = at
		}
	}
	at, err := v.oldestUnder(sessionUnqueued, storage.Key(nil).Str(agent))
	if err != nil {
		return nil, err
	}
	earlier(at)
	// The claim queue has the sessions of each priority in the order of their age.
	prefix := storage.Key(nil).Str(agent)
	for from := []byte(nil); ; {
		var rank []byte
		var pk []byte
		if err := v.Rows(sessionQueueByAgent, prefix, from, func(fields, _ []byte) (bool, error) {
			rank = append(rank, fields[len(prefix)])
			pk = append(pk, fields[len(fields)-storage.ListedKeyLen:]...)
			return false, nil
		}); err != nil {
			return nil, fmt.Errorf("look for an agent's oldest session: %w", err)
		}
		if pk == nil {
			return oldest, nil
		}
		if at, err = v.createdAt(pk); err != nil {
			return nil, err
		}
		earlier(at)
		if rank[0] == 0xff {
			return oldest, nil
		}
		from = []byte{rank[0] + 1}
	}
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
