package actors

import (
	"testing"
	"testing/synctest"
	"time"

	"switchyard/storage"
)

// A command that waited because far too much was in use goes on when that is no longer so, as those do that come then.
func TestCommand_SmallOnesWaitNoLongerThanOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, fewChanges)
		defer b.engine.changes.small(2 * b.engine.changes.most)()
		more := b.engine.changes.small(2*b.engine.changes.most + 1)
		errs := make(chan error, 2)
		for n := range 2 {
			go func() {
				_, err := b.count(workspaceNumber(n + 1))
				errs <- err
			}()
		}
		synctest.Wait()
		if n := b.engine.changes.waits(); n != 2 {
			t.Fatalf("%d workspaces wait, want 2", n)
		}
		more()
		for range 2 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// The memory of small commands keeps no large one waiting, unless far too much is in use.
func TestCommand_LargeOnesDoNotWaitForSmallOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, fewChanges)
		defer b.engine.changes.small(3 * b.engine.changes.most)()
		if err := b.bigCommand(workspaceNumber(1), time.Second); err != nil {
			t.Error(err)
		}
		more := b.engine.changes.small(2 * b.engine.changes.most)
		errs := make(chan error, 1)
		go func() { errs <- b.bigCommand(workspaceNumber(1), time.Second) }()
		synctest.Wait()
		if n := b.engine.changes.waits(); n != 1 {
			t.Errorf("%d workspaces wait, want 1", n)
		}
		more()
		if err := <-errs; err != nil {
			t.Error(err)
		}
	})
}

// Commands run a few at a time only where more memory is in use than there should be. One that was withdrawn while it waited
// for others to run has changed nothing.
func TestCommand_RunsBesideOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, fewChanges)
		for range cap(b.engine.running) {
			b.engine.running <- struct{}{}
		}
		if _, err := b.count(workspaceNumber(1)); err != nil {
			t.Error(err)
		}
		defer b.engine.changes.small(b.engine.changes.most + 1)()
		req := request(workspaceNumber(1))
		req.Deadline = time.Now().Add(time.Second)
		_, err := b.engine.Do(req, countUp, &countIn{})
		wantOutcome(t, err, "not_applied")
		for range cap(b.engine.running) {
			<-b.engine.running
		}
		synctest.Wait()
		if got := b.stored(workspaceNumber(1)); got != "1" {
			t.Errorf("counted to %s, want 1", got)
		}
	})
}

// A command that was withdrawn while it waited for memory has changed nothing, and the next of its workspace does not
// wait for what it needed.
func TestCommand_WithdrawnWhileItWaitsForMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, fewChanges)
		more := b.engine.changes.small(5 * b.engine.changes.most)
		small := func() error {
			req := request(workspaceNumber(1))
			req.Deadline = time.Now().Add(time.Second)
			_, err := b.engine.Do(req, countUp, &countIn{})
			return err
		}
		wantOutcome(t, small(), "not_applied")
		more()
		synctest.Wait()
		if got := b.stored(workspaceNumber(1)); got != "0" {
			t.Errorf("counted to %s", got)
		}
		b.local.setFate(func(int, storage.Shard) fate { return waits })
		errs := make(chan error, 4)
		for n := range 3 {
			go func() { errs <- b.bigCommand(workspaceNumber(n+2), time.Minute) }()
		}
		synctest.Wait()
		wantOutcome(t, b.bigCommand(workspaceNumber(1), time.Second), "not_applied")
		go func() { errs <- small() }()
		synctest.Wait()
		if n := b.local.proposed.Load(); n != 4 {
			t.Errorf("%d changes are on their way, want the three large ones and the small one", n)
		}
		b.local.release()
		for range 4 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// A command that waits behind one that waits for memory goes on when the caller of that has left.
func TestCommand_WaitsNoLongerThanTheCallerOfTheOneBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, fewChanges)
		b.local.setFate(func(int, storage.Shard) fate { return waits })
		errs := make(chan error, 4)
		for n := range 3 {
			go func() { errs <- b.bigCommand(workspaceNumber(n+2), time.Minute) }()
		}
		synctest.Wait()
		left := make(chan error, 1)
		go func() { left <- b.bigCommand(workspaceNumber(1), time.Second) }()
		synctest.Wait()
		go func() {
			_, err := b.count(workspaceNumber(1))
			errs <- err
		}()
		synctest.Wait()
		if n := b.local.proposed.Load(); n != 3 {
			t.Errorf("%d changes are on their way, want the three large ones", n)
		}
		wantOutcome(t, <-left, "not_applied")
		synctest.Wait()
		if n := b.local.proposed.Load(); n != 4 {
			t.Errorf("%d changes are on their way, want the three large ones and the small one", n)
		}
		b.local.release()
		for range 4 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}
