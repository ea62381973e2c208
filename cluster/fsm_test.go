package cluster

import (
	"bytes"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"switchyard/cluster/raftstore"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

const shard1 = storage.Shard(1)

// machineTest feeds a state machine by hand.
type machineTest struct {
	t     testing.TB
	store *storage.Store
	m     *stateMachine
	index uint64
}

func newMachine(t *testing.T) *machineTest {
	store := openStore(t, vfs.NewMem(), "node")
	t.Cleanup(func() { _ = store.Close() })
	mt := &machineTest{t: t, store: store}
	mt.reopen()
	return mt
}

func (mt *machineTest) reopen() {
	var err error
	if mt.m, err = newStateMachine(mt.store, shard1, &flusher{do: mt.store.FlushState}); err != nil {
		mt.t.Fatal(err)
	}
}

func (mt *machineTest) log(term uint64, data []byte) *raft.Log {
	mt.index++
	return &raft.Log{Index: mt.index, Term: term, Data: data}
}

func (mt *machineTest) claim(epoch uint64, node string) any {
	return mt.m.Apply(mt.log(epoch, appendEntry(nil, entryClaim, epoch, node)))
}

func (mt *machineTest) release(epoch uint64) any {
	return mt.m.Apply(mt.log(epoch, appendEntry(nil, entryRelease, epoch, "")))
}

func (mt *machineTest) batch(epoch uint64, rows ...string) *raft.Log {
	return mt.log(epoch, mergeBatches(nil, epoch, []proposal{{batch: write(mt.t, mt.store, shard1, rows...)}}))
}

func (mt *machineTest) has(row string) bool {
	value, err := raftstore.ReadRow(mt.store.State(), testKey(shard1, row))
	if err != nil {
		mt.t.Fatal(err)
	}
	return value != nil
}

func (mt *machineTest) want(result any, err error) {
	mt.t.Helper()
	got, _ := result.(error)
	if !errors.Is(got, err) {
		mt.t.Fatalf("the result is %v, want %v", result, err)
	}
}

func TestApply_FenceRefusesOtherEpochs(t *testing.T) {
	t.Parallel()
	mt := newMachine(t)
	mt.want(mt.m.Apply(mt.batch(1, "unclaimed")), errFenced)
	mt.want(mt.claim(2, "a"), nil)
	mt.want(mt.m.Apply(mt.batch(2, "first")), nil)
	mt.want(mt.claim(4, "b"), nil)
	mt.want(mt.m.Apply(mt.batch(2, "late")), errFenced)
	mt.want(mt.m.Apply(mt.batch(5, "early")), errFenced)
	mt.want(mt.m.Apply(mt.batch(4, "second")), nil)
	mt.want(mt.release(2), errFenced)
	mt.want(mt.release(4), nil)
	mt.want(mt.m.Apply(mt.batch(4, "released")), errFenced)
	mt.want(mt.claim(3, "c"), errFenced)
	mt.want(mt.claim(4, "c"), errFenced)
	for row, want := range map[string]bool{"unclaimed": false, "first": true, "late": false, "early": false, "second": true, "released": false} {
		if mt.has(row) != want {
			t.Errorf("row %s: %v", row, !want)
		}
	}
	if !errFenced.NotApplied() {
		t.Error("a fenced batch was certainly not applied")
	}
	// The fence outlives the process.
	mt.reopen()
	if mt.m.at.epoch != 4 || !mt.m.at.released || mt.m.at.applied != mt.index {
		t.Fatalf("the position is %+v", mt.m.at)
	}
}

func TestApply_ClaimOfAnotherTermIsRefused(t *testing.T) {
	t.Parallel()
	mt := newMachine(t)
	mt.want(mt.m.Apply(mt.log(5, appendEntry(nil, entryClaim, 4, "a"))), errFenced)
	mt.want(mt.claim(6, "a"), nil)
	mt.want(mt.claim(6, "a"), nil) // repeated
	mt.want(mt.claim(6, "b"), errFenced)
}

func TestClaim_TellsWhetherALeaseMayStand(t *testing.T) {
	t.Parallel()
	type step struct {
		what    string // claim, batch, release
		epoch   uint64
		node    string
		settled bool
	}
	for name, steps := range map[string][]step{
		"first of all":            {{"claim", 2, "a", true}},
		"same node again":         {{"claim", 2, "a", true}, {"claim", 3, "a", true}},
		"another node":            {{"claim", 2, "a", true}, {"claim", 3, "b", false}},
		"after a release":         {{"claim", 2, "a", true}, {"release", 2, "", false}, {"claim", 3, "b", true}},
		"of an older epoch":       {{"claim", 2, "a", true}, {"claim", 3, "b", false}, {"release", 2, "", false}, {"claim", 4, "c", false}},
		"again before it waited":  {{"claim", 2, "a", true}, {"claim", 3, "b", false}, {"claim", 4, "b", false}},
		"again after it wrote":    {{"claim", 2, "a", true}, {"claim", 3, "b", false}, {"batch", 3, "", false}, {"claim", 4, "b", true}},
		"back to the first owner": {{"claim", 2, "a", true}, {"claim", 3, "b", false}, {"claim", 4, "a", false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mt := newMachine(t)
			for _, s := range steps {
				mt.reopen() // the state that it depends on is on disk
				switch s.what {
				case "claim":
					answer, ok := mt.claim(s.epoch, s.node).(*claimed)
					if !ok || answer.settled != s.settled {
						t.Fatalf("claim %d by %s: %+v", s.epoch, s.node, answer)
					}
				case "batch":
					mt.want(mt.m.Apply(mt.batch(s.epoch, "row")), nil)
				case "release":
					mt.release(s.epoch)
				}
			}
		})
	}
}

func TestApply_SkipsWhatIsAppliedAndKeepsRaftsBytes(t *testing.T) {
	t.Parallel()
	mt := newMachine(t)
	mt.claim(2, "a")
	logs := []*raft.Log{mt.batch(2, "x"), mt.batch(2, "y"), {Index: mt.index + 1, Type: raft.LogConfiguration, Data: []byte("voters")}}
	before := [][]byte{bytes.Clone(logs[0].Data), bytes.Clone(logs[1].Data)}
	for i, result := range mt.m.ApplyBatch(logs) {
		if result != nil {
			t.Fatalf("entry %d: %v", i, result)
		}
	}
	for i := range before {
		if !bytes.Equal(before[i], logs[i].Data) {
			t.Fatal("the log's bytes were changed")
		}
	}
	mt.reopen()
	if mt.m.at.applied != mt.index+1 {
		t.Fatalf("applied %d, want %d", mt.m.at.applied, mt.index+1)
	}
	for _, result := range mt.m.ApplyBatch(logs) {
		// Never success: a replayed entry must not look done to its caller.
		mt.want(result, errReplayed)
	}
}

func TestApply_BrokenEntryStopsTheShard(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"short":        {1},
		"unknown kind": appendEntry(nil, 99, 2, ""),
		"no batch":     appendEntry(nil, entryBatch, 2, "short"),
		"not packed":   appendEntry(nil, entryPacked, 2, "\x05abc"),
		"too large":    appendEntry(nil, entryPacked, 2, "\xff\xff\xff\xff\x0fabc"),
		"broken batch": appendEntry(nil, entryBatch, 2, "\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x77\x01a"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mt := newMachine(t)
			rpcErr := 0
			mt.m.fail = func(error) { rpcErr++ }
			mt.claim(2, "a")
			results := mt.m.ApplyBatch([]*raft.Log{mt.batch(2, "with it"), mt.log(2, data), mt.batch(2, "after it")})
			for i, result := range results {
				err, _ := result.(error)
				var unknown interface{ NotApplied() bool }
				if err == nil || !errors.As(err, &unknown) || unknown.NotApplied() {
					t.Errorf("result %d is %v", i, result)
				}
			}
			if rpcErr != 1 || mt.has("after it") {
				t.Errorf("told %d times; went on: %v", rpcErr, mt.has("after it"))
			}
			if _, err := mt.m.Snapshot(); err == nil {
				t.Error("its log would be truncated")
			}
			if mt.m.at.applied != 1 {
				t.Errorf("the position moved to %d", mt.m.at.applied)
			}
		})
	}
}

func TestApply_LargeAndManyEntries(t *testing.T) {
	t.Parallel()
	mt := newMachine(t)
	mt.claim(2, "a")
	var (
		logs []*raft.Log
		want []byte
	)
	for i := range 6 { // one Pebble batch would be larger than the machine makes them
		b := mt.store.State().NewBatch()
		value := bytes.Repeat([]byte{byte('a' + i)}, 3<<20)
		if err := b.Merge(testKey(shard1, "row"), value, nil); err != nil {
			t.Fatal(err)
		}
		want = append(want, value...)
		logs = append(logs, mt.log(2, mergeBatches(nil, 2, []proposal{{batch: b.Repr()}})))
	}
	for _, result := range mt.m.ApplyBatch(logs) {
		mt.want(result, nil)
	}
	row, err := raftstore.ReadRow(mt.store.State(), testKey(shard1, "row"))
	if err != nil || !bytes.Equal(row, want) {
		t.Fatalf("%d bytes of %d came through, %v", len(row), len(want), err)
	}
}

// A node has a state machine for each shard, so none keeps the bytes of a large entry.
func TestApply_LetsGoOfEntries(t *testing.T) {
	t.Parallel()
	mt := newMachine(t)
	mt.claim(2, "a")
	b := mt.store.State().NewBatch()
	if err := b.Set(testKey(shard1, "row"), bytes.Repeat([]byte("text "), maxPooledBuffer), nil); err != nil {
		t.Fatal(err)
	}
	plain := mergeBatches(nil, 2, []proposal{{batch: b.Repr()}})
	packed, ok := pack(nil, plain)
	if !ok {
		t.Fatal("the entry was not packed")
	}
	for _, entry := range [][]byte{plain, packed} {
		mt.want(mt.m.Apply(mt.log(2, entry)), nil)
		// Repr would write into noBatch, which the state machines of other tests read.
		if kept := mt.m.entry.Len() + cap(mt.m.batch); kept > maxPooledBuffer {
			t.Errorf("%d bytes of an entry of %d are kept", kept, len(entry))
		}
	}
}

func FuzzParsePosition(f *testing.F) {
	testkit.Corpus(f)
	f.Add(position{applied: 7, epoch: 3, owner: "node", settled: true}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := parsePosition(b)
		if err != nil {
			return
		}
		if again, err := parsePosition(p.append(nil)); err != nil || again != p {
			t.Fatalf("%+v came back as %+v, %v", p, again, err)
		}
	})
}
