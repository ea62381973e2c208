package actors

import (
	"fmt"
	"sync"
	"time"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// The metrics of sessions and pending deliveries are sums over the workspaces of all shards
// that this node owns (Decision 64). Each workspace keeps its own counts. A scrape
// adds up those of a bounded number of workspaces, and the next scrape goes on from there. So a
// node with few workspaces shows the present counts, and one with many shows those of its
// last round.

// backlogStep limits the workspaces and webhooks that one scrape looks at.
const backlogStep = 2000

// backlogSurvey adds up the counts of workspaces.
type backlogSurvey struct {
	mu    sync.Mutex // held while a scrape counts; guards the rest
	step  int
	known *tracker.Backlog // of the last complete round; nil before its end
	round surveyRound
	// seen are the counts that were last returned, at the time seenAt; nil before.
	seen   *tracker.Backlog
	seenAt time.Time
}

// surveyRound is a round through all shards.
type surveyRound struct {
	counts *tracker.Backlog // nil before the round begins
	shard  int
	// from is the first workspace of the shard that is not counted. When all are, hooks is set
	// and hook is the key of the first webhook that is not counted.
	from  storage.ID
	hooks bool
	hook  []byte
}

// backlog continues the round and returns the counts of the last complete one. During the first
// round it returns what is counted so far.
func (e *Engine) backlog() (tracker.Backlog, error) {
	s := &e.survey
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.round
	if r.counts == nil {
		r.counts = tracker.NewBacklog()
	}
	for room := s.step; room > 0 && r.shard < len(e.shards); {
		if err := r.count(e.shards[r.shard], &room); err != nil {
			s.round = surveyRound{}
			return tracker.Backlog{}, err
		}
	}
	if r.shard == len(e.shards) {
		s.known, s.round = r.counts, surveyRound{}
	}
	seen := s.known
	if seen == nil {
		seen = r.counts
	}
	result := seen.Clone()
	s.seen, s.seenAt = &result, e.cfg.Clock()
	return result.Clone(), nil
}

// backlogFresh is how long Backlog returns the same counts.
const backlogFresh = time.Second

// Backlog returns the counts that the metrics show. It counts once in backlogFresh at most,
// however often it is called.
func (e *Engine) Backlog() (tracker.Backlog, error) {
	s := &e.survey
	s.mu.Lock()
	if s.seen != nil && e.cfg.Clock().Sub(s.seenAt).Abs() < backlogFresh {
		defer s.mu.Unlock()
		return s.seen.Clone(), nil
	}
	s.mu.Unlock()
	return e.backlog()
}

// count counts in a shard as far as there is room, and passes to the next shard at its end.
func (r *surveyRound) count(s *shard, room *int) error {
	s.mu.RLock()
	owned := s.owned
	s.mu.RUnlock()
	if !owned || !s.work.enter() {
		r.next()
		return nil
	}
	defer s.work.leave() // the store stays open until then
	if !r.hooks {
		if err := r.countSessions(s, room); err != nil || !r.hooks {
			return err
		}
	}
	of := func(id storage.ID) storage.View { return storage.NewView(s.engine.state, s.number, id) }
	system := of(storage.SystemID)
	var err error
	if r.hook, err = r.counts.AddDeliveries(&system, of, r.hook, room); err != nil || len(r.hook) > 0 {
		return err
	}
	r.next()
	return nil
}

func (r *surveyRound) countSessions(s *shard, room *int) error {
	r.hooks = true
	err := storage.NewWalk(s.engine.state).WorkspacesFrom(s.number, r.from, func(v *storage.View) (bool, error) {
		if *room <= 0 {
			r.from, r.hooks = v.Workspace(), false
			return false, nil
		}
		*room--
		return true, r.counts.AddSessions(v)
	})
	if err != nil {
		return fmt.Errorf("count the sessions of shard %d: %w", s.number, err)
	}
	return nil
}

func (r *surveyRound) next() {
	r.shard++
	r.from, r.hooks, r.hook = storage.ID{}, false, nil
}
