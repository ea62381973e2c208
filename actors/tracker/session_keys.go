package tracker

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"switchyard/storage"
)

// At most as many sessions as its limit hold a concurrency key at once, from the time when
// an agent begins to work on them until it doesn't any more (Decision 63). Sessions of a
// full key are parked under it: those that come while it is full, and those in the claim
// queue when it becomes full. A place that becomes free is offered to the first parked
// session of each agent and provider, in the order of claims, since another agent's claims
// can't take the first of all; the claim decides. It is offered to the next one, too, while
// the agent works on another session of the first one's issue.

// MaxConcurrencyKey is the length of a concurrency key, in bytes.
const MaxConcurrencyKey = 128

// isConcurrencyKey reports whether a text can be a concurrency key.
func isConcurrencyKey(text string) bool {
	return text != "" && len(text) <= MaxConcurrencyKey && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// ConcurrencyField is a field of an issue that an agent's sessions have a concurrency key of.
type ConcurrencyField string

// The fields that make concurrency keys.
const (
	ConcurrentRepo    ConcurrencyField = "repo"
	ConcurrentBranch  ConcurrencyField = "branch"
	ConcurrentProject ConcurrencyField = "project"
)

// EnumValues implements Enumerated.
func (ConcurrencyField) EnumValues() []string {
	return enumTexts([]ConcurrencyField{ConcurrentRepo, ConcurrentBranch, ConcurrentProject})
}

// concurrencyKeys returns the keys of a session: those of its dispatch, and those that its
// agent adds from the issue.
func concurrencyKeys(given []string, agent *Agent, issue *Issue) []string {
	keys := []string{}
	add := func(key string) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, key := range given {
		add(key)
	}
	if agent == nil {
		return keys
	}
	for _, field := range agent.ConcurrencyBy {
		value := map[ConcurrencyField]*string{ConcurrentRepo: issue.Repo, ConcurrentBranch: issue.Branch, ConcurrentProject: issue.ProjectID}[field]
		if value != nil && *value != "" {
			add(fieldKey(string(field) + ":" + *value))
		}
	}
	return keys
}

// fieldKey returns a text as a concurrency key. A hash takes the place of the end of one
// that is too long or has other characters.
func fieldKey(text string) string {
	if isConcurrencyKey(text) {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	visible := strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '_'
		}
		return r
	}, text)
	return visible[:min(len(visible), MaxConcurrencyKey-33)] + "#" + hex.EncodeToString(sum[:16])
}

// The states of the entries of a key in the index of sessions by key.
const (
	keyQueued byte = iota
	keyHeld
)

func addKeyEntries(e *storage.Entries, s *sessionRecord) {
	state := keyQueued
	switch {
	case s.engaged():
		state = keyHeld
	case !s.queued():
		return
	}
	for _, key := range s.ConcurrencyKeys {
		e.Add(e.Key().Str(key).Byte(state))
	}
}

// keyLimit returns the number of sessions that may hold a key at once.
func (v *View) keyLimit(key string) (uint64, error) {
	row, err := concurrencyLimits.Get(v, storage.Key(nil).Str(key))
	if err != nil {
		return 0, fmt.Errorf("read the limit of a concurrency key: %w", err)
	}
	if row == nil {
		return 1, nil
	}
	return uint64(row.Value.Limit), nil
}

// freePlaces returns the number of places of a key that are free.
func (tx *Tx) freePlaces(key string) (uint64, error) {
	limit, err := tx.keyLimit(key)
	if err != nil {
		return 0, err
	}
	held, err := tx.tallied(queueCountKey, key)
	if err != nil || held.n >= limit {
		return 0, err
	}
	return limit - held.n, nil
}

// fullKey returns the first of a session's keys that has no free place, or "".
func (tx *Tx) fullKey(s *sessionRecord) (string, error) {
	for _, key := range s.ConcurrencyKeys {
		if free, err := tx.freePlaces(key); err != nil || free == 0 {
			return key, err
		}
	}
	return "", nil
}

// takesPlaces returns CONFLICT if a session can't begin to run for the want of a place of
// one of its keys.
func (tx *Tx) takesPlaces(s *sessionRecord) error {
	key, err := tx.fullKey(s)
	if err != nil || key == "" {
		return err
	}
	message, hint := fmt.Sprintf("The concurrency key %q has no free place.", key), "Wait until a session that holds it ends, or raise its limit."
	prefix := storage.Key(nil).Str(key).Byte(keyHeld)
	var pk []byte
	if err := tx.Rows(sessionByKey, prefix, nil, func(fields, _ []byte) (bool, error) {
		pk = append(pk, fields[len(prefix):]...)
		return false, nil
	}); err != nil {
		return fmt.Errorf("look for the holder of a key: %w", err)
	}
	var holder *storage.Row[sessionRecord]
	if _, err := sessions.Record(tx, pk, func(rec storage.Record) error {
		seen, err := tx.canViewSession(rec)
		if err == nil && seen {
			holder, err = sessions.Decode(rec)
		}
		return err
	}); err != nil {
		return fmt.Errorf("read the holder of a key: %w", err)
	}
	if holder != nil {
		return holder.Value.conflict(fmt.Sprintf("%s Session %s holds it.", message, holder.Value.ID), hint)
	}
	return s.conflict(message, hint)
}

// keyWork is what a command has to do about concurrency keys before it ends.
type keyWork struct {
	freed []freedPlace
	full  []string
}

// freedPlace is a place of a key that has become free; for one agent and provider alone if
// a session in the claim queue has left it without a claim, or can't be claimed for a while.
type freedPlace struct {
	key             string
	all             bool
	agent, provider string
}

// keysMoved notes what a session's new place means for others that have its keys; old and
// s may be nil.
func (tx *Tx) keysMoved(old, s *sessionRecord) error {
	from, to := parkedKey(old), parkedKey(s)
	if from != to {
		if from != "" {
			if err := tx.countKey(from, 0, -1); err != nil {
				return err
			}
		}
		if to != "" {
			if err := tx.countKey(to, 0, 1); err != nil {
				return err
			}
		}
	}
	if old != nil && len(old.ConcurrencyKeys) > 0 {
		for _, key := range old.ConcurrencyKeys {
			if old.engaged() && (s == nil || !s.engaged()) {
				if err := tx.countKey(key, -1, 0); err != nil {
					return err
				}
				tx.keys.freed = append(tx.keys.freed, freedPlace{key: key, all: true})
			}
			if old.queued() && (s == nil || !s.queued() && !s.engaged()) {
				tx.keys.freed = append(tx.keys.freed, freedPlace{key: key, agent: old.AgentID, provider: old.Provider})
			}
		}
	}
	if s == nil {
		return nil
	}
	for _, key := range s.ConcurrencyKeys {
		if s.engaged() && (old == nil || !old.engaged()) {
			if err := tx.countKey(key, 1, 0); err != nil {
				return err
			}
			tx.keys.full = append(tx.keys.full, key)
		}
	}
	if s.engaged() && (old == nil || !old.engaged()) {
		return tx.offerBeside(s)
	}
	return nil
}

// parkedKey returns the key that a session is parked under, or "".
func parkedKey(s *sessionRecord) string {
	if s == nil || s.Inner.Park == nil || s.Inner.Park.Reason != parkConcurrency {
		return ""
	}
	return s.Inner.Park.Subject
}

// settleKeys offers the places of concurrency keys that the command has made free, and
// parks the sessions of those that it has made full. It runs at the end of each command.
func (tx *Tx) settleKeys() error {
	for len(tx.keys.freed)+len(tx.keys.full) > 0 {
		work := tx.keys
		tx.keys = keyWork{}
		slices.Sort(work.full)
		for _, key := range slices.Compact(work.full) {
			if err := tx.parkFull(key); err != nil {
				return err
			}
		}
		for len(work.freed) > 0 {
			place, n := work.freed[0], 0
			work.freed = slices.DeleteFunc(work.freed, func(p freedPlace) bool {
				if p == place {
					n++
				}
				return p == place
			})
			if err := tx.offerPlaces(&place, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// timerConcurrency continues what a command has left to do about a concurrency key, its subject.
const timerConcurrency = "session.key"

// parkFull parks the sessions in the claim queue that have a key, if it is full.
func (tx *Tx) parkFull(key string) error {
	if free, err := tx.freePlaces(key); err != nil || free > 0 {
		return err
	}
	prefix := storage.Key(nil).Str(key).Byte(keyQueued)
	var keys [][]byte
	more := false
	if err := tx.Rows(sessionByKey, prefix, nil, func(fields, _ []byte) (bool, error) {
		if more = len(keys) == maxReleased; more {
			return false, nil
		}
		keys = append(keys, append([]byte(nil), fields[len(prefix):]...))
		return true, nil
	}); err != nil {
		return fmt.Errorf("list the sessions of a key: %w", err)
	}
	left, err := tx.reparkKeys(keys)
	if err != nil || !more && !left {
		return err
	}
	return tx.SetTimerAtOnce(timerConcurrency, key)
}

// settleKeyOp continues what a command has left to do about a concurrency key. Claims may have
// parked as many sessions of the key as they may, and have looked at no others. So claims are
// woken when nothing is left.
var settleKeyOp = NewCommand[TimerIn, None]("SettleKey", "Park or release the sessions of a concurrency key", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	if err := tx.ClearTimer(in.Kind, in.Subject); err != nil {
		return Reply{}, err
	}
	free, err := tx.freePlaces(in.Subject)
	if err != nil {
		return Reply{}, err
	}
	if free == 0 {
		err = tx.parkFull(in.Subject)
	} else {
		err = tx.offerPlaces(&freedPlace{key: in.Subject, all: true}, int(free))
	}
	if err != nil {
		return Reply{}, err
	}
	more, err := tx.hasTimer(in.Kind, in.Subject)
	if err == nil && !more {
		tx.wakeClaimers()
	}
	return Reply{Outcome: NoContent}, err
}, Prompt)
