package tracker

import (
	"switchyard/storage"
)

// checkParking checks that the reason why a session can't be claimed fits its status, and
// that something will end it.
func checkParking(v *storage.View, pk []byte, s *sessionRecord, report reporter) error {
	if p := s.Inner.Park; p != nil {
		want := SessionCreated
		if p.Reason <= parkBlocked {
			want = SessionWaiting
		}
		if s.Status != want || s.Inner.External {
			report(sessions.Name, pk, "is %s, and parked for reason %d", s.Status, p.Reason)
		}
		if p.Reason == parkNotBefore {
			if err := checkNotBefore(v, pk, s, report); err != nil {
				return err
			}
		}
	}
	for _, id := range s.pending() {
		if err := checkPredecessor(v, pk, s, id, report); err != nil {
			return err
		}
	}
	return nil
}

// checkNotBefore checks that a timer will release a session that is put off.
func checkNotBefore(v *storage.View, pk []byte, s *sessionRecord, report reporter) error {
	timer, err := timers.Get(v, timerKey(nil, timerNotBefore, ""))
	if err != nil {
		return nil // the table's own check reports it
	}
	if s.NotBefore == nil || timer == nil {
		report(sessions.Name, pk, "is put off, and no timer will release it")
	}
	return nil
}

// checkPredecessor checks that a session waits for an older one that has not ended, or
// whose timer is set.
func checkPredecessor(v *storage.View, pk []byte, s *sessionRecord, predecessor SessionID, report reporter) error {
	id, _ := storage.ParseID(predecessor)
	before, err := sessions.Get(v, sessionKey(id))
	if err != nil {
		return nil // the table's own check reports it
	}
	switch {
	case s.Status != SessionWaiting:
		report(sessions.Name, pk, "is %s, and waits for session %s", s.Status, predecessor)
	case before == nil || string(s.ID) <= string(predecessor):
		report(sessions.Name, pk, "waits for session %s, which is not there or came later", predecessor)
	case before.Value.Status.Ended():
		told, err := v.Has(timerTable, timerKey(nil, timerSessionFollowers, string(predecessor)))
		if err == nil && !told {
			told, err = v.Has(timerTable, storage.Key(nil).Str(timerImportedWaits))
		}
		if err != nil {
			return err
		}
		if !told {
			report(sessions.Name, pk, "waits for session %s, which has ended", predecessor)
		}
	}
	return nil
}
