package cluster

import (
	"fmt"
	"testing"
	"time"
)

// jumpingClock is a machine whose time of day jumps, and its node's serving clock. No time.Time can be made whose
// time of day has jumped and whose monotonic clock has not. So the times here are without the jumps, and what other
// nodes say is shifted instead.
type jumpingClock struct {
	*servingClock
	base      time.Time
	monotonic time.Duration
	jumped    time.Duration
}

func newJumpingClock(others int) *jumpingClock {
	j := &jumpingClock{base: time.Now()}
	peers := newPeerClocks(j.time, quiet())
	j.servingClock = newServingClockOf(func() (t time.Time, monotonic, day int64) {
		return j.time(), int64(j.monotonic), j.time().Add(j.jumped).UnixNano()
	}, peers, quiet())
	for i := range others {
		j.hear(fmt.Sprint(i), 0)
	}
	return j
}

func (j *jumpingClock) time() time.Time { return j.base.Add(j.monotonic) }

// hear is an exchange with another node whose clock has an error.
func (j *jumpingClock) hear(node string, off time.Duration) {
	j.monotonic += time.Millisecond
	j.answered(node, off, j.time())
}

// answered is the end of an exchange that began at a time.
func (j *jumpingClock) answered(node string, off time.Duration, began time.Time) {
	j.peers.note(node, j.time().Add(off-j.jumped), began, j.time())
}

// want checks by how much the time that the node serves by is ahead.
func (j *jumpingClock) want(t *testing.T, what string, ahead time.Duration) {
	t.Helper()
	got := j.now()
	if served := time.Duration(j.known.Load().ahead - j.base.UnixNano()); served != ahead {
		t.Errorf("%s: the time is ahead by %v, want %v", what, served, ahead)
	}
	if held := j.held.Load(); held != (j.jumped != ahead) || got.UnixNano() != j.time().UnixNano() {
		t.Errorf("%s: held is %t, and the time %v", what, held, got)
	}
	// Else a time until which something waits would come later by as much as the time of day is set back.
	if got == got.Round(0) {
		t.Errorf("%s: the time %v has no monotonic clock reading", what, got)
	}
}

// A jump is followed once other nodes confirm it, and never while they say that it is wrong. One other node can
// say that: its clock agrees with the time before the jump or with the time after it.
func TestServingClock_AsksTheOthers(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 26 * time.Hour, 11 * time.Second, -11 * time.Second} {
		for _, others := range []int{1, 2, 4} {
			t.Run(fmt.Sprint(jump, " with ", others), func(t *testing.T) {
				t.Parallel()
				j := newJumpingClock(others)
				j.jumped = jump
				j.want(t, "at once", 0)
				j.hear("0", 0)
				j.want(t, "one of them differs", 0)
				for range 100 {
					j.monotonic += time.Hour
					j.want(t, "hours later", 0)
				}
				j.jumped = 0
				j.want(t, "set right", 0)
				j.monotonic += time.Hour

				j.jumped = jump
				j.want(t, "again", 0)
				for i := range others/2 + 1 {
					j.want(t, "not enough of them agree", 0)
					j.hear(fmt.Sprint(i), jump)
				}
				j.want(t, "most of them agree", jump)
			})
		}
	}
}

// Where the others contradict each other the majority counts.
func TestServingClock_TheOthersDiffer(t *testing.T) {
	t.Parallel()
	j := newJumpingClock(4)
	j.jumped = time.Hour
	j.want(t, "at once", 0)
	j.hear("0", time.Hour+9*time.Second)
	j.hear("1", 9*time.Second)
	j.hear("2", -time.Hour) // agrees with neither
	j.want(t, "one each", 0)
	j.hear("3", time.Hour)
	j.want(t, "two of three agree", 0)
	j.monotonic += heartbeatInterval
	j.want(t, "a moment later", 0)
	j.monotonic += heartbeatInterval
	j.want(t, "all have had time to answer", time.Hour)
}

// Answers that were on their way when the time of day jumped prove nothing.
func TestServingClock_ExchangesAcrossTheJump(t *testing.T) {
	t.Parallel()
	j := newJumpingClock(2)
	began := j.time()
	j.monotonic += time.Millisecond
	j.jumped = time.Hour
	j.want(t, "at once", 0)
	for _, node := range []string{"0", "1"} {
		j.answered(node, 0, began)
	}
	j.want(t, "after the answers", 0)
}

// Nodes that do not answer hold the time up for a moment alone. The time in which the process is paused does
// not count.
func TestServingClock_NobodyAnswers(t *testing.T) {
	t.Parallel()
	j := newJumpingClock(2)
	j.jumped = time.Hour
	j.want(t, "at once", 0)
	j.monotonic += time.Hour
	j.want(t, "after a pause", 0)
	for range judgeTime/heartbeatInterval - 1 {
		j.monotonic += heartbeatInterval
		j.want(t, "a moment later", 0)
	}
	j.monotonic += time.Millisecond
	j.want(t, "after it", time.Hour)
}

// A node alone has nobody to ask, and small changes need no confirmation.
func TestServingClock_FollowsAtOnce(t *testing.T) {
	t.Parallel()
	alone := newJumpingClock(0)
	alone.jumped = 26 * time.Hour
	alone.want(t, "alone", alone.jumped)

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

// A clock that the others have found wrong is followed at once when it is set right.
func TestServingClock_SetRight(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{time.Hour, -time.Hour} {
		j := newJumpingClock(2)
		j.hear("0", jump)
		j.hear("1", jump)
		j.jumped = jump
		j.want(t, jump.String(), jump)

		// Answers of a while ago are no proof.
		j = newJumpingClock(2)
		j.hear("0", jump)
		j.hear("1", jump)
		j.monotonic += 2 * clockMemory
		j.jumped = jump
		j.want(t, jump.String()+" later", 0)
	}
}

// A second jump needs a confirmation of its own.
func TestServingClock_JumpsTwice(t *testing.T) {
	t.Parallel()
	j := newJumpingClock(2)
	j.jumped = time.Hour
	j.want(t, "at once", 0)
	j.hear("0", 0)
	j.want(t, "one of them differs", 0)
	j.jumped = 2 * time.Hour
	j.want(t, "the second", 0)
	j.hear("1", 2*time.Hour)
	j.want(t, "one of them agrees", 0)
	j.hear("0", 2*time.Hour)
	j.want(t, "both agree", 2*time.Hour)
}

// A node that has said that a jump is wrong, and answers no more, does not outweigh one that answers.
func TestServingClock_TheOneThatContradictedIsGone(t *testing.T) {
	t.Parallel()
	j := newJumpingClock(2)
	j.jumped = time.Hour
	j.want(t, "at once", 0)
	j.hear("0", 0)
	j.hear("1", 0)
	j.want(t, "both differ", 0)
	j.monotonic += 2 * clockMemory // node 1 is down
	j.hear("0", time.Hour)
	j.want(t, "one was set right", 0)
	for range 10 * judgeTime / heartbeatInterval {
		j.monotonic += heartbeatInterval
		j.hear("0", time.Hour)
		j.now()
	}
	j.want(t, "later", time.Hour)
}

// Where as many nodes agree with the time before the jump as with that after it, this node's own clock decides, also
// if all of them have contradicted it at first.
func TestServingClock_OneOfTwoIsSetRight(t *testing.T) {
	t.Parallel()
	j := newJumpingClock(2)
	j.jumped = time.Hour
	j.want(t, "at once", 0)
	j.hear("0", 0)
	j.hear("1", 0)
	j.want(t, "both differ", 0)
	for range 2 * judgeTime / heartbeatInterval {
		j.monotonic += heartbeatInterval
		j.hear("0", time.Hour)
		j.hear("1", 0)
		j.now()
	}
	j.want(t, "later", time.Hour)
}
