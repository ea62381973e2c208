package actors

import (
	"bytes"
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

// These are the conclusions that a client may draw when the replicator fails, and the
// stored state.
func TestCommit_Faults(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		meets   fate
		outcome string
		next    int // the count of the next command
	}{
		{"failed", fails, "not_applied", 2},
		{"failed but applied", failsApplied, "unknown", 3},
		{"applied late", failsLate, "unknown", 3},
		{"lost", failsLost, "unknown", 2},
		{"panicked", panics, "unknown", 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			ws := workspaceNumber(1)
			b.mustCount(ws, 1)
			b.local.setFate(func(n int, _ storage.Shard) fate {
				if n == 2 {
					return row.meets
				}
				return applies
			})
			_, err := b.count(ws)
			wantOutcome(t, err, row.outcome)
			// The next command builds on the stored state.
			b.mustCount(ws, row.next)
			b.mustCount(ws, row.next+1)
			testkit.Eventually(t, "no actor is active", func() bool {
				b.engine.sweepOnce(func(*handle) bool { return true }) // in vain while the actor holds its latch after the answer
				return b.engine.Stats().ActiveActors == 0
			})
		})
	}
}

// While the outcome of a batch is unknown, no command builds on what was read.
func TestCommit_StaysInDoubtUntilSettled(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ws := workspaceNumber(1)
	b.mustCount(ws, 1)
	b.local.setFate(func(n int, _ storage.Shard) fate {
		switch {
		case n == 2:
			return failsLate
		case n < 5:
			return fails
		}
		return applies
	})
	_, err := b.count(ws)
	wantOutcome(t, err, "unknown")
	refused := 0
	for {
		n, err := b.count(ws)
		if err == nil {
			if n != 3 {
				t.Errorf("counted to %d, want 3: the late batch was not seen", n)
			}
			break
		}
		wantOutcome(t, err, "not_applied")
		if refused++; refused > 10 {
			t.Fatal("never settled")
		}
		b.engine.sweepOnce(func(*handle) bool { return true }) // passivation must not forget the doubt
	}
}

func TestCommit_ManyCommandsWithRandomFaults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ws := workspaceNumber(1)
	b.local.setFate(func(n int, _ storage.Shard) fate {
		switch n % 7 {
		case 2:
			return fails
		case 4:
			return failsApplied
		case 5:
			return failsLate
		case 6:
			return failsLost
		}
		return applies
	})
	var mu sync.Mutex
	done, unknown := map[int]bool{}, 0
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				n, err := b.count(ws)
				mu.Lock()
				switch {
				case err == nil && done[n]:
					t.Errorf("counted to %d twice", n)
				case err == nil:
					done[n] = true
				case outcome(err) == "unknown":
					unknown++
				case outcome(err) != "not_applied":
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	b.local.setFate(nil)
	for {
		n, err := b.count(ws)
		if err != nil {
			continue // still in doubt
		}
		if n <= len(done) || n > len(done)+unknown+1 {
			t.Errorf("counted to %d with %d done and %d unknown", n, len(done), unknown)
		}
		break
	}
	if len(done) == 0 || unknown == 0 {
		t.Errorf("%d done, %d unknown: nothing was tried", len(done), unknown)
	}
}

func TestLost_AnswersEveryone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		ws := workspaceNumber(1)
		s := storage.ShardOf(ws, testShards)
		b.local.setFate(func(int, storage.Shard) fate { return waits })
		const callers = 40
		outcomes := make(chan string, callers)
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				_, err := b.count(ws)
				outcomes <- outcome(err)
			})
		}
		b.local.waitHeld(1)
		synctest.Wait()
		b.local.lose(b.engine, s)
		all.Wait()
		close(outcomes)
		count := map[string]int{}
		for o := range outcomes {
			count[o]++
		}
		if count["unknown"] == 0 || count["unknown"]+count["not_applied"] != callers {
			t.Errorf("outcomes %v", count)
		}
		_, err := b.count(ws)
		wantOutcome(t, err, "not_applied")
		_, err = b.do(ws, readCount, &tracker.None{})
		wantOutcome(t, err, "not_applied")
		b.mustNotServe(s)

		// The next epoch starts from the stored state; the old batch comes too late.
		b.local.setFate(nil)
		b.local.gain(t, b.engine)
		b.local.release()
		b.mustCount(ws, 1)
	})
}

// A change that was being replicated when the shard was lost is answered with its outcome, if that
// comes soon: a node that hands a shard over finishes what it has begun.
func TestLost_AnswersWithTheOutcome(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		fenced  bool // the next epoch begins before the batch is applied
		late    bool // the outcome comes later than lostWait
		outcome string
		stored  int
	}{
		{"applied", false, false, "", 1},
		{"refused", true, false, "not_applied", 0},
		{"late", false, true, "unknown", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				ws := workspaceNumber(1)
				s := storage.ShardOf(ws, testShards)
				b.local.setFate(func(int, storage.Shard) fate { return waits })
				first, second := make(chan error, 1), make(chan error, 1)
				go func() { _, err := b.count(ws); first <- err }()
				b.local.waitHeld(1)
				go func() { _, err := b.count(ws); second <- err }()
				synctest.Wait()
				epoch, _ := b.local.Owner(s)
				if row.fenced {
					b.local.lose(b.engine, s)
				} else {
					b.engine.Lost(s, epoch)
				}
				wantOutcome(t, <-second, "not_applied")
				if row.late {
					pass(lostWait)
					wantOutcome(t, <-first, row.outcome)
				}
				b.local.release()
				if !row.late {
					wantOutcome(t, <-first, row.outcome)
				}
				synctest.Wait()
				b.mustNotServe(s)
				b.local.setFate(nil)
				b.local.gain(t, b.engine)
				b.mustCount(ws, row.stored+1)
			})
		})
	}
}

// mustNotServe checks that no workspace of a shard is active.
func (b *testEngine) mustNotServe(n storage.Shard) {
	b.t.Helper()
	s := b.engine.shards[n]
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.owned || len(s.handles) > 0 || s.timers != nil {
		b.t.Errorf("shard %d is still served", n)
	}
}

func TestLost_OfAnEarlierEpochIsIgnored(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ws := workspaceNumber(1)
	b.mustCount(ws, 1)
	b.engine.Lost(storage.ShardOf(ws, testShards), 1<<40)
	b.mustCount(ws, 2)
}

func TestDo_OwnershipComesAndGoesUnderLoad(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var all sync.WaitGroup
	for c := range 6 {
		all.Go(func() {
			for range 150 {
				if _, err := b.count(workspaceNumber(c % 2)); err != nil && outcome(err) == "" {
					t.Error(err)
				}
			}
		})
	}
	for range 30 {
		for s := range storage.Shard(testShards + 1) {
			b.local.lose(b.engine, s)
		}
		b.local.gain(t, b.engine)
	}
	all.Wait()
	testkit.Eventually(t, "every command has its answer", func() bool { return b.engine.Stats().UnansweredCommands == 0 })
}

// An actor that panics outside of a command is replaced, and every caller gets an
// answer.
func TestActor_PanicOutsideACommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		b := setup(t, func(c *Config) {
			c.Clock = func() time.Time {
				// The scheduler also reads the clock, on a goroutine that no caller
				// waits for.
				if broken.Load() && bytes.Contains(debug.Stack(), []byte("workspaceActor")) {
					broken.Store(false)
					panic("the clock broke")
				}
				return time.Now()
			}
		})
		ws := workspaceNumber(1)
		b.mustCount(ws, 1)
		for range 15 { // more often than the library restarts an actor by default
			broken.Store(true)
			_, err := b.count(ws)
			wantCode(t, err, tracker.CodeInternal)
		}
		b.mustCount(ws, 2)

		// There are commands in the open batch and behind it.
		entered, leave := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			_, err := b.do(ws, countUp, &countIn{Entered: entered, Leave: leave})
			wantOutcome(t, err, "not_applied")
		})
		<-entered
		all.Go(func() {
			_, err := b.count(ws)
			wantCode(t, err, tracker.CodeInternal)
		})
		synctest.Wait() // the second is in the mailbox
		broken.Store(true)
		close(leave)
		all.Wait()
		b.mustCount(ws, 3)
		if !strings.Contains(b.log.String(), "the clock broke") {
			t.Error("the panic was not logged")
		}
	})
}

func TestDo_Deadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		ws := workspaceNumber(1)
		b.local.setFate(func(n int, _ storage.Shard) fate {
			if n == 1 {
				return waits
			}
			return applies
		})
		var all sync.WaitGroup
		all.Go(func() { // being replicated
			_, err := b.count(ws)
			wantOutcome(t, err, "unknown")
		})
		synctest.Wait()
		all.Go(func() { // waiting in the mailbox: withdrawn
			_, err := b.count(ws)
			wantOutcome(t, err, "not_applied")
		})
		start := time.Now()
		all.Wait()
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("answered after %v", took)
		}
		req := request(ws)
		req.Deadline = time.Now()
		_, err := b.engine.Do(req, countUp, &countIn{})
		wantOutcome(t, err, "not_applied")

		b.local.release()
		synctest.Wait()
		b.mustCount(ws, 2) // the first was applied after all, the second never ran
		if n := b.engine.Stats().UnansweredCommands; n != 0 {
			t.Errorf("%d commands unanswered", n)
		}
	})
}

func TestClose_FinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ws := workspaceNumber(1)
	b.local.setFate(func(int, storage.Shard) fate { return waits })
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := b.count(ws); err != nil {
			t.Error(err)
		}
	})
	b.local.waitHeld(1)
	closed := make(chan error)
	go func() { closed <- b.engine.Close(t.Context()) }()
	testkit.Eventually(t, "the engine closes", b.engine.closing.Load)
	testkit.Eventually(t, "requests are refused", func() bool {
		_, err := b.do(ws, readCount, &tracker.None{})
		return err != nil
	})
	_, err := b.count(ws)
	wantOutcome(t, err, "not_applied")
	b.local.release()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	all.Wait()
	b.engine.Gained(0, 99) // too late to start anything
	b.mustNotServe(0)
}

func TestClose_GivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.local.setFate(func(int, storage.Shard) fate { return waits })
	var all sync.WaitGroup
	all.Go(func() {
		_, err := b.count(workspaceNumber(1))
		wantOutcome(t, err, "unknown")
	})
	b.local.waitHeld(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.engine.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("closed with %v", err)
	}
	all.Wait() // with an unknown outcome
	b.local.release()
	<-b.engine.actors.ended
	<-b.engine.background.ended // the store is closed next
}
