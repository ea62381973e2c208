package cluster

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
)

// heldApplier keeps entries until a test answers them.
type heldApplier struct {
	mu      sync.Mutex
	entries [][]byte
	futures []*heldFuture
}

type heldFuture struct {
	raft.ApplyFuture
	answer   chan error
	response any
}

func (f *heldFuture) Error() error  { return <-f.answer }
func (f *heldFuture) Response() any { return f.response }

func (a *heldApplier) Apply(data []byte) raft.ApplyFuture {
	a.mu.Lock()
	defer a.mu.Unlock()
	f := &heldFuture{answer: make(chan error, 1)}
	a.entries = append(a.entries, append([]byte(nil), data...))
	a.futures = append(a.futures, f)
	return f
}

// committerTest proposes named rows and collects the answers.
type committerTest struct {
	t       *testing.T
	c       *committer
	held    *heldApplier
	mu      sync.Mutex
	answers map[string]error
	order   []string

	answered int // entries, by answerNext
}

func newCommitterTest(t *testing.T, tune func(*tuning)) *committerTest {
	return newPacedCommitterTest(t, tune, nil)
}

func newPacedCommitterTest(t *testing.T, tune func(*tuning), pace func(bytes int) time.Duration) *committerTest {
	tu := defaultTuning()
	tune(&tu)
	ct := &committerTest{t: t, held: &heldApplier{}, answers: map[string]error{}}
	ct.c = newCommitter(ct.held, &tu, &queueBudget{most: tu.nodeQueueBytes}, pace)
	ct.c.run()
	return ct
}

func (ct *committerTest) propose(epoch uint64, row string) {
	b := &pebble.Batch{}
	if err := b.Set([]byte(row), []byte("value"), nil); err != nil {
		ct.t.Error(err)
	}
	if err := b.Delete([]byte(row+" gone"), nil); err != nil {
		ct.t.Error(err)
	}
	ct.c.propose(epoch, b.Repr(), func(err error) {
		ct.mu.Lock()
		defer ct.mu.Unlock()
		if _, twice := ct.answers[row]; twice {
			ct.t.Errorf("%s was answered twice", row)
		}
		ct.answers[row] = err
		ct.order = append(ct.order, row)
	})
}

// proposeSized proposes a row with a value of a size.
func (ct *committerTest) proposeSized(epoch uint64, row string, size int) {
	b := &pebble.Batch{}
	if err := b.Set([]byte(row), make([]byte, size), nil); err != nil {
		ct.t.Error(err)
	}
	ct.c.propose(epoch, b.Repr(), func(err error) {
		ct.mu.Lock()
		defer ct.mu.Unlock()
		ct.answers[row] = err
	})
}

// answerNext answers the oldest entry that has no answer yet.
func (ct *committerTest) answerNext(err error) {
	ct.held.mu.Lock()
	f := ct.held.futures[ct.answered]
	ct.held.mu.Unlock()
	ct.answered++
	f.answer <- err
}

// rowsOf returns the keys set by an entry, in order.
func rowsOf(t *testing.T, data []byte) (out []string) {
	t.Helper()
	kind, _, body, err := splitEntry(data)
	if err == nil && kind == entryPacked {
		kind = entryBatch
		body, err = unpack(nil, body)
	}
	if err != nil || kind != entryBatch {
		t.Fatalf("kind %d, %v", kind, err)
	}
	b := &pebble.Batch{}
	if err := b.SetRepr(body); err != nil {
		t.Fatal(err)
	}
	var ops uint32
	for r := b.Reader(); ; ops++ {
		kind, key, _, ok, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if kind == pebble.InternalKeyKindSet {
			out = append(out, string(key))
		}
	}
	if ops != b.Count() {
		t.Fatalf("the header counts %d operations of %d", b.Count(), ops)
	}
	return out
}

func TestCommitter_MergesInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ct := newCommitterTest(t, func(tu *tuning) { tu.inFlight, tu.entryBatches = 2, 5 })
		defer ct.c.stop()
		ct.c.beginEpoch(3)
		ct.propose(3, "a0")
		synctest.Wait()
		ct.propose(3, "a1")
		synctest.Wait()
		for i := range 7 { // both slots are taken: these wait
			ct.propose(3, fmt.Sprintf("b%d", i))
		}
		synctest.Wait()
		if len(ct.held.entries) != 2 {
			t.Fatalf("%d entries in flight", len(ct.held.entries))
		}
		if batches, bytes := ct.c.queued(); batches != 7 || bytes == 0 {
			t.Fatalf("%d wait, %d bytes", batches, bytes)
		}
		for i := range 4 {
			synctest.Wait()
			ct.held.futures[i].answer <- nil
		}
		synctest.Wait()
		want := "[[a0] [a1] [b0 b1 b2 b3 b4] [b5 b6]]"
		var got [][]string
		for _, data := range ct.held.entries {
			got = append(got, rowsOf(t, data))
		}
		if fmt.Sprint(got) != want {
			t.Fatalf("entries %v, want %s", got, want)
		}
		if fmt.Sprint(ct.order) != "[a0 a1 b0 b1 b2 b3 b4 b5 b6]" {
			t.Fatalf("answered in the order %v", ct.order)
		}
		for row, err := range ct.answers {
			if err != nil {
				t.Errorf("%s: %v", row, err)
			}
		}
		if batches, bytes := ct.c.queued(); batches != 0 || bytes != 0 {
			t.Fatalf("%d wait, %d bytes", batches, bytes)
		}
	})
}

func TestCommitter_BoundsEntryBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ct := newCommitterTest(t, func(tu *tuning) { tu.inFlight, tu.entryBytes = 1, 64 })
		defer ct.c.stop()
		ct.c.beginEpoch(1)
		for i := range 5 {
			ct.propose(1, fmt.Sprintf("row%d", i))
		}
		for i := range 5 {
			synctest.Wait()
			if len(ct.held.futures) == i {
				break
			}
			ct.held.futures[i].answer <- nil
		}
		synctest.Wait()
		for _, data := range ct.held.entries {
			if len(rowsOf(t, data)) > 2 {
				t.Fatalf("an entry of %d bytes", len(data))
			}
		}
		if len(ct.answers) != 5 {
			t.Fatalf("%d answers", len(ct.answers))
		}
	})
}

func TestCommitter_FullQueueRefusesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ct := newCommitterTest(t, func(tu *tuning) { tu.inFlight, tu.queueBatches = 1, 2 })
		defer ct.c.stop()
		ct.c.beginEpoch(1)
		for _, row := range []string{"flies", "waits", "waits too", "full", "full too"} {
			ct.propose(1, row)
			synctest.Wait()
		}
		if len(ct.answers) != 2 || !errors.Is(ct.answers["full"], errQueueFull) || !errors.Is(ct.answers["full too"], errQueueFull) {
			t.Fatalf("answers %v", ct.answers)
		}
		ct.held.futures[0].answer <- nil
		synctest.Wait()
		ct.propose(1, "fits again")
		synctest.Wait()
		if _, answered := ct.answers["fits again"]; answered {
			t.Fatal("refused although there is room")
		}
		ct.held.futures[1].answer <- nil
		synctest.Wait()
		ct.held.futures[2].answer <- nil
	})
}

func TestCommitter_LossOfLeadership(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ct := newCommitterTest(t, func(tu *tuning) { tu.inFlight = 2 })
		ct.c.beginEpoch(1)
		for _, row := range []string{"lost", "never started", "waits"} {
			ct.propose(1, row)
			synctest.Wait()
		}
		ct.c.endEpoch()
		ct.propose(1, "too late")
		synctest.Wait()
		ct.c.beginEpoch(4)
		ct.propose(1, "of the old epoch")
		synctest.Wait()
		ct.held.futures[0].answer <- raft.ErrLeadershipLost
		ct.held.futures[1].answer <- raft.ErrNotLeader
		ct.c.stop()
		ct.propose(4, "after the end")
		for row, notApplied := range map[string]bool{"lost": false, "never started": true, "waits": true, "too late": true,
			"of the old epoch": true, "after the end": true} {
			var err interface{ NotApplied() bool }
			if !errors.As(ct.answers[row], &err) || err.NotApplied() != notApplied {
				t.Errorf("%s: %v", row, ct.answers[row])
			}
		}
	})
}

func TestCommitter_RefusesWhatIsNoBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ct := newCommitterTest(t, func(*tuning) {})
		defer ct.c.stop()
		ct.c.beginEpoch(1)
		got := make(chan error, 2)
		ct.c.propose(1, make([]byte, batchHeader-1), func(err error) { got <- err })
		ct.c.propose(1, make([]byte, maxBatch+1), func(err error) { got <- err })
		if err := <-got; !errors.Is(err, errMalformed) {
			t.Errorf("too short: %v", err)
		}
		if err := <-got; !errors.Is(err, errTooLarge) {
			t.Errorf("too long: %v", err)
		}
	})
}

// The state machine's refusal reaches the proposer; so does an entry's success.
func TestCommitter_PassesTheResultOn(t *testing.T) {
	t.Parallel()
	r := start(t, settings{fs: vfs.NewMem(), dir: "node", shards: 1})
	epoch, _ := r.Owner(1)
	r.mustPropose(t, 1, "row")
	if !r.has(t, 1, "row") {
		t.Fatal("acknowledged before it was applied")
	}
	done := make(chan error, 1)
	r.group(1).commit.beginEpoch(epoch + 1) // the state machine refuses it like an epoch of a deposed owner
	r.Propose(1, epoch+1, write(t, r.store, 1, "fenced"), func(err error) { done <- err })
	if err := <-done; !errors.Is(err, errFenced) || r.has(t, 1, "fenced") {
		t.Fatalf("the fence let it pass: %v", err)
	}
}

// Small batches overtake large ones, which are taken in turns with them by bytes.
func TestCommitter_LargeBatchesTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ct := newCommitterTest(t, func(tu *tuning) { tu.inFlight, tu.entryBatches = 1, 2 })
		defer ct.c.stop()
		ct.c.beginEpoch(3)
		ct.propose(3, "first")
		synctest.Wait()
		// While an entry is in flight three large batches come, then small ones without end.
		for _, row := range []string{"large 1", "large 2", "large 3"} {
			ct.proposeSized(3, row, 2*laneQuantum)
		}
		small := 0
		more := func() {
			for range 2 {
				ct.propose(3, fmt.Sprintf("small %d", small))
				small++
			}
		}
		var taken []string
		for range 14 {
			more()
			synctest.Wait()
			rows := rowsOf(t, ct.held.entries[len(ct.held.entries)-1])
			taken = append(taken, rows[0])
			ct.answerNext(nil)
			synctest.Wait()
		}
		var order []int
		for i, row := range taken {
			if strings.HasPrefix(row, "large") {
				order = append(order, i)
			}
		}
		// Each has to wait for two or three entries of small ones.
		if len(order) != 3 || order[0] < 2 || order[1]-order[0] < 3 || order[2]-order[1] < 3 || order[2] > 12 {
			t.Errorf("taken in the order %q", taken)
		}
		for len(ct.held.futures) > ct.answered {
			ct.answerNext(nil)
			synctest.Wait()
		}
		if batches, bytes := ct.c.queued(); batches != 0 || bytes != 0 || ct.c.budget.used.Load() != 0 {
			t.Errorf("%d batches of %d bytes are left, %d reserved", batches, bytes, ct.c.budget.used.Load())
		}
	})
}

// Only one bulky entry is in flight. Small batches don't wait for it.
func TestCommitter_OneBulkyEntryInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ct := newCommitterTest(t, func(tu *tuning) { tu.inFlight = 4 })
		defer ct.c.stop()
		ct.c.beginEpoch(3)
		for _, row := range []string{"bulky 1", "bulky 2"} {
			ct.proposeSized(3, row, 3<<20)
			synctest.Wait()
		}
		ct.propose(3, "small")
		synctest.Wait()
		if n := len(ct.held.entries); n != 2 || rowsOf(t, ct.held.entries[1])[0] != "small" {
			t.Fatalf("%d entries are in flight", n)
		}
		ct.answerNext(nil) // the bulky one
		synctest.Wait()
		if n := len(ct.held.entries); n != 3 || rowsOf(t, ct.held.entries[2])[0] != "bulky 2" {
			t.Errorf("%d entries were in flight", n)
		}
		ct.answerNext(nil)
		ct.answerNext(nil)
		synctest.Wait()
		if len(ct.answers) != 3 {
			t.Errorf("%d were answered", len(ct.answers))
		}
	})
}

// An empty batch says that all batches before it are decided, so it overtakes none, large or small.
func TestCommitter_EmptyBatchesOvertakeNothing(t *testing.T) {
	t.Parallel()
	for _, before := range [][]int{{1}, {1 << 20}, {1 << 20, 1}, {1, 1 << 20}, {1, 1, 1, 1 << 20, 1, 1 << 20, 1}, {1 << 20, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}} {
		synctest.Test(t, func(t *testing.T) {
			ct := newCommitterTest(t, func(tu *tuning) { tu.inFlight, tu.entryBatches = 1, 2 })
			defer ct.c.stop()
			ct.c.beginEpoch(3)
			ct.propose(3, "first")
			synctest.Wait()
			for i, size := range before {
				ct.proposeSized(3, strconv.Itoa(i), size)
			}
			var all map[string]error
			ct.c.propose(3, (&pebble.Batch{}).Repr(), func(err error) {
				ct.mu.Lock()
				defer ct.mu.Unlock()
				all = maps.Clone(ct.answers)
			})
			for i := range 6 { // later ones
				ct.proposeSized(3, "later "+strconv.Itoa(i), []int{1, 1 << 17}[i%2])
			}
			for ct.answered < len(ct.held.futures) {
				ct.answerNext(nil)
				synctest.Wait()
			}
			for i := range before {
				if _, ok := all[strconv.Itoa(i)]; !ok {
					t.Errorf("%v: the empty batch overtook batch %d", before, i)
				}
			}
			if len(ct.answers) != 1+len(before)+6 {
				t.Errorf("%v: %d batches were answered", before, len(ct.answers))
			}
		})
	}
}

// A shard that queues large batches leaves room for other shards, and never keeps one from its first.
func TestQueueBudget(t *testing.T) {
	t.Parallel()
	b := &queueBudget{most: 100}
	for i, step := range []struct {
		bytes, has int
		ok         bool
	}{
		{40, 0, true}, {30, 40, false}, {20, 40, true}, {40, 0, true}, {1, 0, false}, {1, 40, false},
	} {
		if ok := b.take(step.bytes, step.has); ok != step.ok {
			t.Errorf("step %d: %v", i, ok)
		}
	}
	b.give(100)
	if used := b.used.Load(); used != 0 {
		t.Errorf("%d bytes are reserved", used)
	}
}
