package actors

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/processors"
	"switchyard/storage"
)

// Memory is given out in the order in which it was asked for, and at any time less than the bound, but for a
// change that is larger by itself.
func TestChangeMemory_IsGivenOutInOrder(t *testing.T) {
	t.Parallel()
	m := &changeMemory{most: 100}
	var got string
	take := func(name string, bytes int64) *changeTurn {
		turn, ok := m.take(changeUse{bytes, bytes}, false, func(*changeTurn) { got += name })
		if ok != (turn == nil) {
			t.Errorf("%s: taken: %v, turn %v", name, ok, turn)
		}
		if ok {
			got += name
		}
		return turn
	}
	give := func(bytes int64) { m.change(changeUse{bytes, bytes}, changeUse{}) }
	want := func(names string, used int64) {
		t.Helper()
		if got != names || m.used.Load() != used {
			t.Errorf("%q have memory, and %d bytes are taken, want %q and %d", got, m.used.Load(), names, used)
		}
	}
	take("a", 60)
	b, c := take("b", 50), take("c", 10)
	want("a", 60)
	give(20)
	want("abc", 100)
	d, e := take("d", 300), take("e", 1)
	give(40)
	want("abc", 60)
	m.end(b)
	m.end(c)
	want("abcd", 300) // alone
	m.end(d)
	want("abcde", 1)
	f, g := take("f", 100), take("g", 99)
	m.end(f) // still waits, and keeps the next one waiting no longer
	want("abcdeg", 100)
	m.end(g)
	m.end(e)
	want("abcdeg", 0)
}

// waits returns how many workspaces wait for memory.
func (m *changeMemory) waits() int { return m.largeTurns.Len() + m.smallTurns.Len() }

// small takes memory as the batches of small commands do, until the returned function gives it back.
func (m *changeMemory) small(bytes int64) (giveBack func()) {
	use := changeUse{all: bytes}
	m.change(changeUse{}, use)
	return func() { m.change(use, changeUse{}) }
}

// bigCommand runs a command with a body of 100 KiB that writes 300 KiB.
func (b *testEngine) bigCommand(workspace storage.ID, until time.Duration) error {
	req := request(workspace)
	req.BodySize, req.Deadline = 100<<10, time.Now().Add(until)
	_, err := b.engine.Do(req, countUp, &countIn{Large: 300 << 10})
	return err
}

// fewChanges bounds the memory for changes so that three of bigCommand fit.
func fewChanges(c *Config) { c.ChangeBytes = 4 << 20 }

// others returns n workspaces of other shards than a workspace's.
func (b *testEngine) others(than storage.ID, n int) (all []storage.ID) {
	for i := 1; len(all) < n; i++ {
		if ws := workspaceNumber(i); b.engine.shardOf(ws) != b.engine.shardOf(than) {
			all = append(all, ws)
		}
	}
	return all
}

// As many large changes are on their way as there is memory for. Small ones pass those that wait.
func TestCommand_LargeOnesWaitForMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, fewChanges)
		b.local.setFate(func(int, storage.Shard) fate { return waits })
		const large = 6
		errs := make(chan error, large+1)
		for n := range large {
			go func() { errs <- b.bigCommand(workspaceNumber(n+1), time.Minute) }()
			synctest.Wait() // what it has written is counted
		}
		if n := b.local.proposed.Load(); n != 3 {
			t.Errorf("%d large changes are on their way, want 3", n)
		}
		go func() {
			_, err := b.count(workspaceNumber(large + 1))
			errs <- err
		}()
		synctest.Wait()
		if n := b.local.proposed.Load(); n != 4 {
			t.Errorf("a small change waits behind large ones: %d changes are on their way", n)
		}
		for range 3 {
			b.local.release()
			synctest.Wait()
		}
		for range large + 1 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if n := b.engine.changes.used.Load(); n != 0 {
			t.Errorf("%d bytes are taken when all are answered", n)
		}
	})
}

// The large changes of one workspace don't wait for the memory of its own open batch.
func TestCommand_LargeOnesOfOneWorkspaceGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, func(c *Config) { c.ChangeBytes = 1 << 20 })
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if err := b.bigCommand(workspaceNumber(1), time.Minute); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := b.stored(workspaceNumber(1)); got != "20" {
			t.Errorf("counted to %s", got)
		}
	})
}

// A command with a small body may change a large record. The next of its workspace is likely to do so again.
func TestCommand_SmallBodiesThatWriteMuch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, fewChanges)
		change := func(n, large int) error {
			_, err := b.engine.Do(request(workspaceNumber(n)), countUp, &countIn{Large: large})
			return err
		}
		const many = 6
		for n := range many {
			if err := change(n+1, 300<<10); err != nil {
				t.Fatal(err)
			}
		}
		b.local.setFate(func(int, storage.Shard) fate { return waits })
		before := b.local.proposed.Load()
		errs := make(chan error, many)
		for n := range many {
			go func() { errs <- change(n+1, 300<<10) }()
		}
		synctest.Wait()
		if n := b.local.proposed.Load() - before; n != 3 {
			t.Errorf("%d are on their way, want 3", n)
		}
		b.local.release()
		synctest.Wait()
		b.local.release()
		for range many {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		b.local.setFate(nil)
		for range 3 { // then it is known to write little
			if err := change(1, 0); err != nil {
				t.Fatal(err)
			}
		}
		b.local.setFate(func(int, storage.Shard) fate { return waits })
		for n := range 3 {
			go func() { errs <- b.bigCommand(workspaceNumber(many+n+1), 5*time.Second) }()
		}
		synctest.Wait()
		before = b.local.proposed.Load()
		go func() { errs <- change(1, 0) }()
		synctest.Wait()
		if n := b.local.proposed.Load() - before; n != 1 {
			t.Errorf("%d small changes are on their way, want 1", n)
		}
		b.local.release()
		for range 4 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// Where far more memory is in use than there should be, all commands wait, so many workspaces that change a large
// record by a small body for the first time take turns, too.
func TestCommand_SmallOnesWaitIfThereIsFarTooLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, func(c *Config) { c.ChangeBytes = 1 << 20 })
		b.local.setFate(func(int, storage.Shard) fate { return waits })
		const many = 100
		errs := make(chan error, many)
		for n := range many {
			go func() {
				_, err := b.engine.Do(request(workspaceNumber(n+1)), countUp, &countIn{Large: 300 << 10})
				errs <- err
			}()
		}
		synctest.Wait()
		most := int64(farOver + runningAtOnce*processors.Count())
		for range many {
			if n := b.engine.changes.used.Load() / (changeCopies * 300 << 10); n > most {
				t.Errorf("%d changes are on their way, want %d at most", n, most)
			}
			b.local.release()
			synctest.Wait()
		}
		for range many {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// A command that waits for memory is refused at its deadline, and where its shard is lost. It leaves no memory
// taken.
func TestCommand_WaitsForMemoryInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, fewChanges)
		last := workspaceNumber(1)
		ws := b.others(last, 4)
		b.local.setFate(func(int, storage.Shard) fate { return waits })
		first, late, lost := make(chan error, 3), make(chan error, 1), make(chan error, 1)
		for _, w := range ws[:3] {
			go func() { first <- b.bigCommand(w, time.Minute) }()
		}
		synctest.Wait()
		go func() { late <- b.bigCommand(ws[3], time.Second) }()
		go func() { lost <- b.bigCommand(last, time.Minute) }()
		synctest.Wait()
		b.local.lose(b.engine, b.engine.shardOf(last).number)
		synctest.Wait()
		wantOutcome(t, <-lost, "not_applied")
		wantOutcome(t, <-late, "not_applied")
		if n := b.local.proposed.Load(); n != 3 {
			t.Errorf("%d changes were begun", n)
		}
		b.local.release()
		for range 3 {
			if err := <-first; err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if n := b.engine.changes.used.Load(); n != 0 || b.engine.changes.waits() != 0 {
			t.Errorf("%d bytes are taken, and %d wait", n, b.engine.changes.waits())
		}
	})
}

// A workspace whose shard is lost waits for no memory, also while a batch of it is being replicated.
func TestCommand_LostWhileItWaitsForMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, fewChanges)
		last := workspaceNumber(1)
		b.local.setFate(func(int, storage.Shard) fate { return waits })
		errs, small, lost := make(chan error, 3), make(chan error, 1), make(chan error, 1)
		for _, w := range b.others(last, 3) {
			go func() { errs <- b.bigCommand(w, time.Minute) }()
		}
		in := &countIn{Entered: make(chan struct{}), Leave: make(chan struct{})}
		go func() {
			_, err := b.engine.Do(request(last), countUp, in)
			small <- err
		}()
		<-in.Entered
		go func() { lost <- b.bigCommand(last, time.Minute) }()
		synctest.Wait()
		close(in.Leave)
		synctest.Wait()
		if n := b.local.proposed.Load(); n != 4 || b.engine.changes.waits() != 1 {
			t.Fatalf("%d changes are on their way, and %d wait", n, b.engine.changes.waits())
		}
		b.local.lose(b.engine, b.engine.shardOf(last).number)
		synctest.Wait()
		wantOutcome(t, <-lost, "not_applied")
		if n := b.engine.changes.waits(); n != 0 {
			t.Errorf("%d wait", n)
		}
		b.local.release()
		for range 3 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if err := <-small; err == nil {
			t.Error("the change of a lost shard succeeded")
		}
	})
}

// Whatever becomes of large changes, all memory is given back, and no command waits for ever.
func TestCommand_MemoryIsGivenBack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, fewChanges)
				random := rand.New(rand.NewPCG(seed, 1))
				b.local.setFate(func(n int, _ storage.Shard) fate {
					fates := [...]fate{applies, applies, applies, fails, failsApplied, failsLost, panics}
					return fates[rand.New(rand.NewPCG(seed, uint64(n))).IntN(len(fates))]
				})
				var all sync.WaitGroup
				for range 200 {
					in := &countIn{Large: random.IntN(3) * 300 << 10, Fail: random.IntN(5) == 0, Panic: random.IntN(10) == 0}
					req := request(workspaceNumber(1 + random.IntN(8)))
					req.BodySize, req.Deadline = random.IntN(300<<10), time.Now().Add(time.Duration(random.IntN(10_000))*time.Millisecond)
					all.Go(func() { _, _ = b.engine.Do(req, countUp, in) })
					if random.IntN(20) == 0 {
						synctest.Wait()
						b.local.lose(b.engine, storage.Shard(random.IntN(testShards)))
						b.local.gain(t, b.engine)
					}
				}
				all.Wait()
				synctest.Wait()
				b.local.setFate(nil)
				if err := b.bigCommand(workspaceNumber(20), time.Second); err != nil {
					t.Errorf("another change: %v", err)
				}
				if n := b.engine.changes.used.Load(); n != 0 || b.engine.changes.waits() != 0 {
					t.Errorf("%d bytes are taken, and %d wait", n, b.engine.changes.waits())
				}
			})
		})
	}
}
