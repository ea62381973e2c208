package actors

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

func TestDo_CommandsOfOneWorkspaceShareBatches(t *testing.T) {
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
		const callers = 200
		seen := make([]bool, callers+1)
		var mu sync.Mutex
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				n, err := b.count(ws)
				mu.Lock()
				defer mu.Unlock()
				if err != nil || seen[n] {
					t.Errorf("counted to %d, %v, twice or not at all", n, err)
					return
				}
				seen[n] = true
			})
		}
		b.local.waitHeld(1)
		// Other commands wait, and go into the next batches.
		synctest.Wait()
		b.local.release()
		all.Wait()
		if n := b.local.proposed.Load(); n > 5 {
			t.Errorf("%d proposals for %d commands", n, callers)
		}
		if got := b.stored(ws); got != "200" {
			t.Errorf("stored %s", got)
		}
		s := b.engine.Stats()
		if s.Batches != uint64(b.local.proposed.Load()) || s.BatchCommands != callers || s.BatchOps != callers || s.BatchBytes == 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

func TestDo_CommandsRunInTheOrderTheyWereSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for want := range 50 {
		b.mustCount(workspaceNumber(1), want+1)
	}
}

func TestDo_BatchIsBoundedInCommandsAndBytes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		limits Limits
		in     countIn
	}{
		{"commands", Limits{BatchCommands: 10}, countIn{}},
		{"bytes", Limits{BatchBytes: 100_000}, countIn{Large: 10_000}},
		{"answers", Limits{}, countIn{Answer: maxBatchAnswers / 10}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, func(c *Config) { c.Limits = row.limits })
				ws := workspaceNumber(1)
				var largest atomic.Int64
				b.local.setFate(func(n int, _ storage.Shard) fate {
					if n == 1 {
						return waits
					}
					return applies
				})
				var all sync.WaitGroup
				for range 60 {
					all.Go(func() {
						in := row.in
						if _, err := b.do(ws, countUp, &in); err != nil {
							t.Error(err)
						}
					})
				}
				b.local.waitHeld(1)
				synctest.Wait()
				b.local.release()
				all.Wait()
				if n := b.local.proposed.Load(); n < 6 {
					t.Errorf("%d proposals for 60 commands, largest %d", n, largest.Load())
				}
			})
		})
	}
}

func TestDo_FailedCommandLeavesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		ws := workspaceNumber(1)
		b.mustCount(ws, 1)
		if _, err := b.do(ws, countUp, &countIn{Fail: true}); !errors.Is(err, errRefused) {
			t.Fatalf("error %v", err)
		}
		if n := b.local.proposed.Load(); n != 1 {
			t.Errorf("the failed command was proposed (%d)", n)
		}
		b.mustCount(ws, 2)

		// The shard is lost in the middle of a batch.
		b.local.setFate(func(n int, _ storage.Shard) fate {
			if n == 3 {
				return waits
			}
			return applies
		})
		var all sync.WaitGroup
		for i := range 31 {
			all.Go(func() {
				_, err := b.do(ws, countUp, &countIn{Fail: i%3 == 1})
				if (i%3 == 1) != errors.Is(err, errRefused) {
					t.Errorf("command %d: %v", i, err)
				}
			})
		}
		b.local.waitHeld(1)
		synctest.Wait()
		b.local.release()
		all.Wait()
		if got := b.stored(ws); got != "23" {
			t.Errorf("stored %s, want 23", got)
		}
	})
}

func TestDo_FailureWaitsForTheBatchItSaw(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		ws := workspaceNumber(1)
		b.local.setFate(func(int, storage.Shard) fate { return fails })
		entered, leave := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			_, err := b.do(ws, countUp, &countIn{Entered: entered, Leave: leave})
			wantOutcome(t, err, "not_applied")
		})
		<-entered
		all.Go(func() { // behind the first in the mailbox, so in its batch
			_, err := b.do(ws, refuse, &tracker.None{})
			wantOutcome(t, err, "not_applied")
		})
		synctest.Wait()
		close(leave)
		all.Wait()
	})
}

func TestDo_PanicFailsThatCommandOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ws := workspaceNumber(1)
	b.mustCount(ws, 1)
	_, err := b.do(ws, countUp, &countIn{Panic: true})
	wantCode(t, err, tracker.CodeInternal)
	b.mustCount(ws, 2)
	_, err = b.do(ws, brokenQuery, &tracker.None{})
	wantCode(t, err, tracker.CodeInternal)
	if got := b.stored(ws); got != "2" {
		t.Errorf("stored %s", got)
	}
	text := b.log.String()
	for _, want := range []string{"the command broke", "the query broke", "request=test", "ops_test.go"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %q:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "the command broke"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	if n := b.engine.Stats().Panics; n != 2 {
		t.Errorf("%d panics counted", n)
	}
}

func TestDo_MoreCommitsEachRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ws := workspaceNumber(1)
	body, err := b.do(ws, inSteps, &stepsIn{Steps: 5})
	if err != nil || body != "5" {
		t.Fatalf("%s, %v", body, err)
	}
	if n := b.local.proposed.Load(); n != 5 {
		t.Errorf("%d proposals, want 5", n)
	}
	b.mustCount(ws, 6)
	if _, err := b.do(ws, stuck, &tracker.None{}); err == nil || outcome(err) != "" {
		t.Errorf("a command that gets nowhere: %v", err)
	}
}

func TestDo_MoreThatFailsLaterIsNotCalledUnapplied(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.local.setFate(func(n int, _ storage.Shard) fate {
		if n == 3 {
			return fails
		}
		return applies
	})
	_, err := b.do(workspaceNumber(1), inSteps, &stepsIn{Steps: 5})
	wantOutcome(t, err, "unknown")
	if got := b.stored(workspaceNumber(1)); got != "2" {
		t.Errorf("stored %s", got)
	}
}

// A command that has committed a part when read-only mode begins was not refused as a whole.
func TestDo_MoreThatMeetsReadOnlyIsNotCalledUnapplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, func(c *Config) { c.RootToken, c.OpenOnboarding = testRoot, true })
		mine := b.onboard("mine")
		req := b.admitted(mine.id, mine.credential, inSteps)
		b.local.setFate(func(int, storage.Shard) fate { return waits })
		ended := make(chan error, 1)
		go func() {
			_, err := b.engine.Do(req, inSteps, &stepsIn{Steps: 5})
			ended <- err
		}()
		synctest.Wait() // the first part is proposed
		b.local.setFate(nil)
		if _, err := b.engine.Do(b.admitted(storage.ID{}, testRoot, tracker.PutReadOnly), tracker.PutReadOnly, &tracker.ReadOnlyIn{Reason: "Maintenance"}); err != nil {
			t.Fatal(err)
		}
		b.local.release()
		wantOutcome(t, <-ended, "unknown")
		if got := b.stored(mine.id); got != "1" {
			t.Errorf("stored %s", got)
		}
	})
}

func TestDo_Queries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ws := workspaceNumber(1)
	b.mustCount(ws, 1)
	for _, op := range []*tracker.Op{readCount, readMoment} {
		if body, err := b.do(ws, op, &tracker.None{}); err != nil || body != "1" {
			t.Errorf("%s: %s, %v", op.Name, body, err)
		}
	}
	var late error = notApplied{errors.New("no quorum")}
	b.local.barrier.Store(&late)
	_, err := b.do(ws, readCount, &tracker.None{})
	wantOutcome(t, err, "not_applied")
	// The answer of a command that wrote nothing needs the same proof.
	_, err = b.do(ws, refuse, &tracker.None{})
	wantOutcome(t, err, "not_applied")
	b.mustCount(ws, 2) // the commit is the proof
	b.local.barrier.Store(nil)
	_, err = b.do(ws, refuse, &tracker.None{})
	wantCode(t, err, tracker.CodeConflict)
}

func TestDo_Workflow(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one, two := workspaceNumber(1), workspaceNumber(2)
	if body, err := b.do(storage.ID{}, countBoth, &pairIn{First: one, Second: two}); err != nil || body != "1" {
		t.Fatalf("%s, %v", body, err)
	}
	if _, err := b.do(storage.ID{}, countBoth, &pairIn{First: one, Second: two, FailSecond: true}); !errors.Is(err, errRefused) {
		t.Fatal(err)
	}
	if b.stored(one) != "2" || b.stored(two) != "1" {
		t.Errorf("stored %s and %s", b.stored(one), b.stored(two))
	}
	// A step was not applied after one that was.
	b.local.setFate(func(n int, _ storage.Shard) fate {
		if n == 5 {
			return fails
		}
		return applies
	})
	_, err := b.do(storage.ID{}, countBoth, &pairIn{First: one, Second: two})
	wantOutcome(t, err, "unknown")
	// The first step was not applied.
	b.local.setFate(func(int, storage.Shard) fate { return fails })
	_, err = b.do(storage.ID{}, countBoth, &pairIn{First: one, Second: two})
	wantOutcome(t, err, "not_applied")
}

// heldMemory counts the holders of a request's content.
type heldMemory struct{ holders atomic.Int32 }

func (m *heldMemory) Hold()   { m.holders.Add(1) }
func (m *heldMemory) GiveUp() { m.holders.Add(-1) }

// The content of a command is held until its batch is decided, and that of one behind it until
// the actor finds that it was withdrawn, however long ago their callers have left.
func TestDo_HoldsTheContentUntilTheActorIsDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		ws := workspaceNumber(1)
		b.local.setFate(func(int, storage.Shard) fate { return waits })
		var first, second heldMemory
		var all sync.WaitGroup
		send := func(m *heldMemory, outcome string) {
			req := request(ws)
			req.Memory = m
			all.Go(func() {
				_, err := b.engine.Do(req, countUp, &countIn{})
				wantOutcome(t, err, outcome)
			})
		}
		send(&first, "unknown")
		b.local.waitHeld(1)
		send(&second, "not_applied")
		all.Wait() // both have left
		if f, s := first.holders.Load(), second.holders.Load(); f != 1 || s != 1 {
			t.Errorf("%d and %d holders while the batch is on its way", f, s)
		}
		b.local.release()
		synctest.Wait()
		if f, s := first.holders.Load(), second.holders.Load(); f != 0 || s != 0 {
			t.Errorf("%d and %d holders afterwards", f, s)
		}
		var done heldMemory
		b.local.setFate(func(int, storage.Shard) fate { return applies })
		send(&done, "")
		all.Wait()
		if n := done.holders.Load(); n != 0 {
			t.Errorf("%d holders after an answer", n)
		}
	})
}
