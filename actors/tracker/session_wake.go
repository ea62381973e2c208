package tracker

import (
	"fmt"
	"slices"
	"strings"

	"switchyard/storage"
)

// A write that meets conditions of waiting sessions notes what has happened. At the end
// of its command, when the rules of closing have run, the sessions that wait for it are
// found by an index and woken in the same batch, each once with all that the command has
// met. Timers, one for each thing, wake those beyond a batch in the same way.

// timerSessionWake wakes further sessions. Its subject is a happening.
const timerSessionWake = "session.wake"

// happening is something that sessions can wait for.
type happening struct {
	kind  waitKind
	id    storage.ID
	state string // of a pull request or its checks
	at    Timestamp
}

func (h *happening) subject() string {
	return strings.Join([]string{string(h.kind), h.id.String(), h.state, string(h.at)}, " ")
}

func parseHappening(subject string) (h happening, err error) {
	parts := strings.Split(subject, " ")
	if len(parts) == 4 && len(parts[0]) == 1 {
		if id, ok := storage.ParseID(parts[1]); ok {
			return happening{waitKind(parts[0][0]), id, parts[2], Timestamp(parts[3])}, nil
		}
	}
	return h, fmt.Errorf("the subject of a timer that wakes sessions is %q", subject)
}

// happen notes something that sessions may wait for. It costs nothing where none waits.
func (tx *Tx) happen(kind waitKind, id storage.ID, state string) error {
	if n, err := tx.Counter(waitCountTable, storage.ID{}); err != nil || n == 0 {
		return err
	}
	tx.happened = append(tx.happened, happening{kind, id, state, At(tx.order)})
	return nil
}

// countWaits keeps the number of sessions that wait for conditions.
func (tx *Tx) countWaits(old, s *sessionRecord) error {
	was, is := old != nil && old.Inner.Wait != nil, s.Inner.Wait != nil
	if was == is {
		return nil
	}
	n, err := tx.Counter(waitCountTable, storage.ID{})
	if err != nil {
		return err
	}
	if is {
		n++
	} else {
		n--
	}
	return tx.SetCounter(waitCountTable, storage.ID{}, n)
}

// waitEffect notes what a write of an issue means for waiting sessions.
func (tx *Tx) waitEffect(w *issueWrite) error {
	if w.old == nil {
		return nil
	}
	old, id := &w.old.Value, w.old.Value.id()
	if w.new == nil {
		if old.Status.Closed() {
			return nil
		}
		return tx.happen(waitIssue, id, "")
	}
	t := &w.new.Value
	if t.Status.Closed() && !old.Status.Closed() {
		if err := tx.happen(waitIssue, id, ""); err != nil {
			return err
		}
	}
	if state := fromPtr(t.PRState); state != fromPtr(old.PRState) {
		if err := tx.happen(waitPR, id, state); err != nil {
			return err
		}
	}
	if state := fromPtr(t.PRCheckState); state != fromPtr(old.PRCheckState) {
		return tx.happen(waitChecks, id, state)
	}
	return nil
}

// sessionEndsWaits notes what the end of a session means for waiting sessions.
func (tx *Tx) sessionEndsWaits(s *sessionRecord) error {
	if err := tx.happen(waitSession, s.id(), ""); err != nil || s.Inner.Parent == "" || len(tx.happened) == 0 {
		return err
	}
	parent, _ := storage.ParseID(s.Inner.Parent)
	ended, err := tx.childrenEnded(parent)
	if err != nil || !ended {
		return err
	}
	return tx.happen(waitChildren, parent, "")
}

// wakeSessions wakes the sessions that wait for what the command has met.
func (tx *Tx) wakeSessions() error {
	woken := 0
	for len(tx.happened) > 0 {
		all := tx.happened
		tx.happened = nil
		for i := range all {
			if err := tx.wakeFor(all, i, &woken); err != nil {
				return fmt.Errorf("wake sessions: %w", err)
			}
		}
	}
	return nil
}

// wakeFor wakes the sessions that wait for one of the things that have happened. A
// session is given all that it waits for among them. Sessions that wait for another state
// stay in the index, and the walk goes on behind them in the same command: a timer would
// find them again at the beginning. They are few. At most maxActiveSessions wait for the
// pull request or the checks of one issue, and of the sessions that wait for anything else
// only those stay that began to wait after it had happened.
func (tx *Tx) wakeFor(all []happening, i int, woken *int) error {
	h := &all[i]
	prefix, from := storage.Key(nil).Byte(byte(h.kind)).ID(h.id), []byte(nil)
	for {
		keys, err := tx.rowKeysFrom(sessionWaits, prefix, from, maxFollowers)
		if err != nil {
			return err
		}
		for _, pk := range keys {
			if *woken >= maxFollowers || tx.written() > maxFollowed {
				return tx.SetTimerAtOnce(timerSessionWake, h.subject())
			}
			met, err := tx.wake(pk, all)
			if err != nil {
				return err
			}
			if met {
				*woken++
			}
		}
		if len(keys) < maxFollowers {
			return nil
		}
		from = slices.Concat(keys[len(keys)-1], []byte{0})
	}
}

// wake notes what has happened for a waiting session. It reports whether that met any of
// the session's conditions.
func (tx *Tx) wake(pk []byte, all []happening) (bool, error) {
	row, err := sessions.Get(tx, pk)
	if err == nil && (row == nil || row.Value.Inner.Wait == nil) {
		err = fmt.Errorf("the index names a session that does not wait")
	}
	if err != nil {
		return false, err
	}
	met := row.Value.metBy(all)
	if len(met) == 0 {
		return false, nil
	}
	c, err := tx.changeSession(row)
	if err != nil {
		return false, err
	}
	if err := c.meet(met); err != nil {
		return false, err
	}
	_, err = c.save()
	return err == nil, err
}

// metBy returns the conditions of a waiting session that are met by what has happened
// since its wait began.
func (s *sessionRecord) metBy(all []happening) (met []int) {
	w := s.Inner.Wait
	for i := range w.Conditions {
		c := &w.Conditions[i]
		kind, id := c.indexed(s)
		for n := range all {
			if h := &all[n]; !w.Met[i] && h.kind == kind && h.id == id && h.at >= w.Since && c.metBy(h.state) {
				met = append(met, i)
				break
			}
		}
	}
	return met
}

// sessionWakeOp wakes further sessions that wait for something that has happened.
var sessionWakeOp = NewCommand[TimerIn, None]("WakeWaiting", "Wake further sessions that wait", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	if err := tx.ClearTimer(in.Kind, in.Subject); err != nil {
		return Reply{}, err
	}
	h, err := parseHappening(in.Subject)
	if err != nil {
		return Reply{}, err
	}
	tx.happened = append(tx.happened, h)
	return Reply{Outcome: NoContent}, tx.happenedWith(h.at)
}, Prompt)

// maxWakesTogether is the number of timers that one run looks at for what has happened at the same
// time. Sessions are told of the other things by their own timers.
const maxWakesTogether = 100

// happenedWith adds what else happened in the same write, for whose sessions a timer is set, so that a
// session is woken with all that the write has met. Where a session has still to be told of something,
// there is such a timer. The timers are cleared: wakeFor sets those that are still needed.
func (tx *Tx) happenedWith(at Timestamp) error {
	var with []happening
	left := maxWakesTogether
	err := timers.Scan(tx, storage.Key(nil).Str(timerSessionWake), nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := timers.Decode(rec)
		if err != nil {
			return false, err
		}
		h, err := parseHappening(row.Value.Subject)
		if err == nil && h.at == at {
			with = append(with, h)
		}
		left--
		return left > 0, err
	})
	if err != nil {
		return fmt.Errorf("read the timers that wake sessions: %w", err)
	}
	for i := range with {
		if err := tx.ClearTimer(timerSessionWake, with[i].subject()); err != nil {
			return err
		}
	}
	tx.happened = append(tx.happened, with...)
	return nil
}
