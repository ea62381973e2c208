package cluster

import (
	"fmt"
	"testing"
	"time"
)

// jumpingClock is a machine whose time of day jumps, and its node's serving clock.
type jumpingClock struct {
	*servingClock
	base      time.Time
	monotonic time.Duration
	jumped    time.Duration
}

func newJumpingClock(others int) *jumpingClock {
	j := &jumpingClock{base: time.Unix(1_800_000_000, 0)}
	peers := newPeerClocks(j.day, quiet())
	j.servingClock = newServingClockOf(func() (t time.Time, monotonic, day int64) {
		return j.day(), int64(j.monotonic), j.day().UnixNano()
	}, peers, quiet())
	for i := range others {
		j.hear(fmt.Sprint(i), 0)
	}
	j.monotonic += 48 * time.Hour // these times have no monotonic clock reading: they are to be earlier than a time that was set back
	return j
}

// day is the time of day of the machine.
func (j *jumpingClock) day() time.Time { return j.base.Add(j.monotonic + j.jumped) }

// hear is an exchange with another node whose clock has an error.
func (j *jumpingClock) hear(node string, off time.Duration) {
	j.monotonic += time.Millisecond
	began := j.day()
	j.peers.note(node, j.base.Add(j.monotonic+off), began, j.day())
}

// want checks by how much the time that the node serves by is ahead.
func (j *jumpingClock) want(t *testing.T, what string, ahead time.Duration) {
	t.Helper()
	if got := j.now().Sub(j.base.Add(j.monotonic)); got != ahead {
		t.Errorf("%s: the time is ahead by %v, want %v", what, got, ahead)
	}
}

// A jump is followed once most other nodes confirm it, and never while they say that it is wrong.
func TestServingClock_AsksTheOthers(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 26 * time.Hour, -11 * time.Second} {
		t.Run(jump.String(), func(t *testing.T) {
			t.Parallel()
			j := newJumpingClock(2)
			j.jumped = jump
			j.want(t, "at once", 0)
			j.hear("0", 0)
			j.want(t, "one of them differs", 0)
			j.hear("1", 0)
			j.want(t, "both differ", 0)
			j.monotonic += time.Hour
			j.want(t, "an hour later", 0)
			j.jumped = 0
			j.want(t, "set right", 0)
			j.monotonic += 48 * time.Hour

			j.jumped = jump
			j.want(t, "again", 0)
			j.hear("0", jump)
			j.want(t, "one of them agrees", 0)
			j.hear("1", jump)
			j.want(t, "both agree", jump)
		})
	}
}

// Answers that were on their way when the time of day jumped prove nothing.
func TestServingClock_ExchangesAcrossTheJump(t *testing.T) {
	t.Parallel()
	j := newJumpingClock(2)
	began := j.day()
	j.monotonic += time.Millisecond
	j.jumped = time.Hour
	j.want(t, "at once", 0)
	for _, node := range []string{"0", "1"} {
		j.peers.note(node, j.base.Add(j.monotonic), began, j.day())
	}
	j.want(t, "after the answers", 0)
}

// Nodes that do not answer hold the time up for a moment alone.
func TestServingClock_NobodyAnswers(t *testing.T) {
	t.Parallel()
	j := newJumpingClock(4)
	j.jumped = time.Hour
	j.want(t, "at once", 0)
	j.monotonic += clockMemory
	j.want(t, "a moment later", 0)
	j.monotonic += time.Millisecond
	j.want(t, "after it", time.Hour)
}

// Of two nodes nobody can say which one is right, and small changes need no confirmation.
func TestServingClock_FollowsAtOnce(t *testing.T) {
	t.Parallel()
	for name, others := range map[string]int{"alone": 0, "of two": 1} {
		j := newJumpingClock(others)
		j.jumped = 26 * time.Hour
		j.want(t, name, j.jumped)
	}
	j := newJumpingClock(2)
	for range 10 {
		j.jumped += clockTolerance
		j.want(t, "a small change", j.jumped)
	}
	for range 20 {
		j.jumped -= clockTolerance
		j.want(t, "back", j.jumped)
	}
}

// A second jump needs a confirmation of its own.
func TestServingClock_JumpsTwice(t *testing.T) {
	t.Parallel()
	j := newJumpingClock(2)
	j.jumped = time.Hour
	j.want(t, "at once", 0)
	j.hear("0", time.Hour)
	j.jumped = 2 * time.Hour
	j.want(t, "the second", 0)
	j.hear("1", 2*time.Hour)
	j.want(t, "one of them agrees", 0)
	j.hear("0", 2*time.Hour)
	j.want(t, "both agree", 2*time.Hour)
}
