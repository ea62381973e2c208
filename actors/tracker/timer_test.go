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

// Timers of different commands that are due at once have different times, in the order of the commands, also
// while the time stands still. All are past, whatever the clock says.
func TestSetTimerAtOnce(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	id := w.onboard("home").Workspace.ID
	set := NewCommand[TimerIn, None]("set", "", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
		for _, subject := range []string{in.Subject, in.Subject + " again"} {
			if err := tx.SetTimerAtOnce(in.Kind, subject); err != nil {
				return Reply{}, err
			}
		}
		return Reply{Outcome: NoContent}, nil
	})
	due := func(subject string) time.Time {
		own := w.view(id.raw())
		at, set, err := (&DueTimer{Kind: timerHold, Subject: subject}).SetTo(&own)
		if err != nil || !set {
			t.Fatalf("%q is set: %t, %v", subject, set, err)
		}
		return at
	}
	right := w.now
	var last time.Time
	for _, ahead := range []time.Duration{time.Hour, 8 * time.Second, 8 * time.Second, 0, 0, 100 * 365 * 24 * time.Hour, 0} {
		w.now = right.Add(ahead - time.Millisecond) // each command takes a millisecond
		w.must("root", id, set, &TimerIn{Kind: timerHold, Subject: "a"})
		at := due("a")
		if again := due("a again"); !again.Equal(at) {
			t.Errorf("timers of a command are due at %s and %s", at, again)
		}
		if at.Year() > 2004 || at.Before(time.UnixMilli(0)) {
			t.Errorf("due at %s", at)
		}
		if ahead < 24*time.Hour && !at.After(last) {
			t.Errorf("%s ahead: due at %s, the command before set %s", ahead, at, last)
		}
		last = at
	}
}
