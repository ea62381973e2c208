package tracker

import (
	"slices"
	"testing"
	"time"

	"switchyard/storage"
)

// A due timer has the subject that it was set for, whatever characters that has, and its
// position is that of its entry.
func TestReadDue_AnySubject(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	id := w.onboard("home").Workspace.ID
	want := []string{"", "a", "a b", "a\x01", "a\x01\x02", "\x01\x01b", "é"}
	at := w.now.Add(time.Minute)
	w.must("root", id, NewCommand[None, None]("set", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		for _, subject := range want {
			if err := tx.SetTimer(timerHold, subject, at); err != nil {
				return Reply{}, err
			}
		}
		return Reply{Outcome: NoContent}, nil
	}), &None{})
	shard, own := storage.NewView(w.db, storage.ShardOf(id.raw(), testShards), storage.SystemID), w.view(id.raw())
	var got []string
	_, err := ReadDue(&shard, nil, at, func(due DueTimer) bool {
		if due.Kind != timerHold {
			return true
		}
		got = append(got, due.Subject)
		if set, err := due.IsSet(&shard); err != nil || !set {
			t.Errorf("%q: the timer is set: %t, %v", due.Subject, set, err)
		}
		if moment, set, err := due.SetTo(&own); err != nil || !set || !moment.Equal(due.Due) {
			t.Errorf("%q: the timer is set to %s: %t, %v", due.Subject, moment, set, err)
		}
		return true
	})
	slices.Sort(want)
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("read the subjects %q, want %q, %v", got, want, err)
	}
}
