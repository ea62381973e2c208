package actors

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
)

// Workspaces run commands of all sizes, leave while they wait or when they have just been granted memory, and end at any
// moment. All that wait get their memory, or a bubble would be stuck, and in the end none is taken.
func TestChangeMemory_IsGivenBackWhateverHappens(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			m := &changeMemory{most: 4 << 20}
			var all sync.WaitGroup
			for n := range uint64(12) {
				all.Go(func() { memoryUser(m, rand.New(rand.NewPCG(seed, n))) })
			}
			all.Wait()
			if used, large, waits := m.used.Load(), m.large, m.waits(); used != 0 || large != 0 || waits != 0 {
				t.Errorf("seed %d: %d bytes are taken, %d of them by large commands, and %d workspaces wait", seed, used, large, waits)
			}
		})
	}
}

// memoryUser does what the actor of a workspace does.
func memoryUser(m *changeMemory, random *rand.Rand) {
	pause := func() { <-time.After(time.Duration(random.IntN(1000)) * time.Microsecond) }
	s := changeShare{memory: m}
	defer s.close()
	told := make(chan *changeTurn, 1)
	granted := func(turn *changeTurn) { told <- turn }
	wait := func() (left bool) {
		if left = random.IntN(4) == 0; left {
			pause()
			s.giveUp()
			select {
			case <-told: // of the turn that was ended
			default:
			}
			return left
		}
		if <-told == s.turn {
			s.granted()
		}
		return left
	}
	for range 40 {
		c := &call{op: &tracker.Op{}}
		wrote := 0
		switch random.IntN(4) {
		case 0:
			c.req.BodySize, wrote = 100<<10, 300<<10
		case 1:
			wrote = random.IntN(6 << 20) // which the size of the body does not tell
		case 2:
			c.req.BodySize, wrote = 2<<20, 1<<20 // it may take more than there is
		}
		runs := func() bool {
			for !s.admits(c, granted) || c.req.BodySize < largeBody && !s.admitsSmall(granted) {
				if wait() {
					return false
				}
			}
			return true
		}
		if !runs() {
			continue
		}
		pause()
		if random.IntN(5) == 0 { // the command did not run
			s.giveNext()
			continue
		}
		s.ran(c, wrote, wrote)
		pause()
		s.count(0)
		if random.IntN(40) == 0 {
			return
		}
	}
}
