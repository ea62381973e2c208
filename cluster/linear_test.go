package cluster

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/cluster/raftstore"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

// register is an operation of a client in the history.
type register struct {
	key   int
	write bool
	value uint64
}

var registerModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := map[int][]porcupine.Operation{}
		for _, op := range history {
			key := op.Input.(register).key
			parts[key] = append(parts[key], op)
		}
		var out [][]porcupine.Operation
		for _, part := range parts {
			out = append(out, part)
		}
		return out
	},
	Init: func() any { return uint64(0) },
	Step: func(state, input, output any) (bool, any) {
		in := input.(register)
		if in.write {
			return true, in.value
		}
		return output.(uint64) == state.(uint64), state
	},
	DescribeOperation: func(input, output any) string {
		if in := input.(register); in.write {
			return fmt.Sprintf("write %d", in.value)
		}
		return fmt.Sprintf("read %v", output)
	},
}

// clients write and read registerModel on whichever node says it owns the shard, and
// record the answers in a history.
type clients struct {
	w     *network
	names []string
	// alive is held for reading while a node is used, and for writing while it is
	// restarted.
	alive map[string]*sync.RWMutex
	began time.Time
	quit  chan struct{}
	all   sync.WaitGroup
	next  atomic.Uint64 // values, and the numbers of clients without an answer

	mu      sync.Mutex
	history []porcupine.Operation
	unknown int
}

const registerShard storage.Shard = 1

func (c *clients) run(t *testing.T, client int, random *rand.Rand) {
	for {
		select {
		case <-c.quit:
			return
		default:
		}
		// A deposed owner is asked as well as any.
		name := c.names[random.IntN(len(c.names))]
		c.alive[name].RLock()
		r := c.w.node(name)
		epoch, owns := r.Owner(registerShard)
		if !owns {
			c.alive[name].RUnlock()
			select { // another node, but not at full speed
			case <-time.After(time.Millisecond):
			case <-c.quit:
			}
			continue
		}
		op := register{key: random.IntN(3), write: random.IntN(2) == 0, value: c.next.Add(1)}
		if op.write {
			c.write(t, client, r, epoch, op)
		} else {
			c.read(t, client, r, op)
		}
		c.alive[name].RUnlock()
	}
}

func (c *clients) write(t *testing.T, client int, r *running, epoch uint64, op register) {
	b := r.store.State().NewBatch()
	defer func() { _ = b.Close() }()
	if err := b.Set(testKey(registerShard, fmt.Sprint(op.key)), binary.BigEndian.AppendUint64(nil, op.value), nil); err != nil {
		t.Error(err)
		return
	}
	began := time.Since(c.began)
	err := r.propose(registerShard, epoch, append([]byte(nil), b.Repr()...))
	var refused interface{ NotApplied() bool }
	switch refused, _ = err.(interface{ NotApplied() bool }); {
	case err == nil:
		c.note(porcupine.Operation{ClientId: client, Input: op, Call: int64(began), Return: int64(time.Since(c.began))}, false)
	case refused == nil:
		t.Errorf("an outcome of no known kind: %v", err)
	case !refused.NotApplied(): // it may land at any time from now on
		c.note(porcupine.Operation{ClientId: 1000 + int(op.value), Input: op, Call: int64(began), Return: math.MaxInt64}, true)
	}
}

func (c *clients) read(t *testing.T, client int, r *running, op register) {
	began := time.Since(c.began)
	if r.ReadBarrier(registerShard, time.Now().Add(time.Second)) != nil {
		return
	}
	row, err := raftstore.ReadRow(r.store.State(), testKey(registerShard, fmt.Sprint(op.key)))
	if err != nil {
		t.Error(err)
		return
	}
	var value uint64
	if row != nil {
		value = binary.BigEndian.Uint64(row)
	}
	c.note(porcupine.Operation{ClientId: client, Input: op, Output: value, Call: int64(began), Return: int64(time.Since(c.began))}, false)
}

func (c *clients) note(op porcupine.Operation, unknown bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = append(c.history, op)
	if unknown {
		c.unknown++
	}
}

// trouble is one fault and its end.
func (c *clients) trouble(t *testing.T, random *rand.Rand, disks map[string]*vfs.MemFS) string {
	t.Helper()
	victim := c.names[random.IntN(len(c.names))]
	for _, name := range c.names { // owners more often
		if _, owns := c.w.nodes[name].Owner(registerShard); owns && random.IntN(2) == 0 {
			victim = name
		}
	}
	others := namesBut(c.names, victim)
	forUpTo := func(most time.Duration) { // faults last for a while, whatever happens meanwhile
		select {
		case <-time.After(rand.N(most)):
		case <-t.Context().Done():
		}
	}
	switch random.IntN(6) {
	case 0:
		c.w.isolate(true, victim, others...)
		forUpTo(3 * time.Second)
		c.w.isolate(false, victim, others...)
		return "cut off " + victim
	case 1:
		for _, other := range others {
			c.w.set(true, victim, other)
		}
		forUpTo(2 * time.Second)
		c.w.isolate(false, victim, others...)
		return "silenced " + victim
	case 2:
		for _, other := range others {
			c.w.set(true, other, victim)
		}
		forUpTo(2 * time.Second)
		c.w.isolate(false, victim, others...)
		return "deafened " + victim
	case 3:
		c.w.isolate(true, victim, others...)
		left := disks[victim].CrashClone(vfs.CrashCloneCfg{})
		c.alive[victim].Lock()
		c.w.nodes[victim].stop()
		c.w.isolate(false, victim, others...)
		disks[victim] = left
		c.w.boot(t, victim, left, victim == c.names[0], 1)
		c.alive[victim].Unlock()
		return "crashed " + victim
	case 4:
		c.w.slow(rand.N(30 * time.Millisecond))
		forUpTo(time.Second)
		c.w.slow(0)
		return "slow links"
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	err := c.w.nodes[victim].changeReplica(ctx, registerShard, replicaChange{replicaTransfer, others[random.IntN(len(others))]})
	return fmt.Sprintf("transfer by %s: %v", victim, err)
}

// TestLinear_UnderFaults runs for CLUSTER_LINEAR (a duration, 6s when it is not
// given) and repeats its faults, though not their timing, with SWITCHYARD_TEST_SEED.
func TestLinear_UnderFaults(t *testing.T) {
	t.Parallel()
	length := 6 * time.Second
	if text := os.Getenv("CLUSTER_LINEAR"); text != "" {
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	number := testkit.Seed(t)
	random := rand.New(rand.NewPCG(number, 3))
	for over := time.Now().Add(length); time.Now().Before(over); {
		linear(t, random, min(10*time.Second, length))
	}
}

// linear runs one cluster with its clients and faults, and checks the history.
func linear(t *testing.T, random *rand.Rand, length time.Duration) {
	t.Helper()
	c := &clients{names: []string{"a", "b", "c"}, alive: map[string]*sync.RWMutex{}, began: time.Now(), quit: make(chan struct{})}
	var disks map[string]*vfs.MemFS
	c.w, disks = crashable(t, c.names...)
	for _, name := range c.names {
		c.alive[name] = &sync.RWMutex{}
	}
	for client := range 6 {
		own := rand.New(rand.NewPCG(random.Uint64(), uint64(client)))
		c.all.Go(func() { c.run(t, client, own) })
	}
	for time.Since(c.began) < length {
		t.Log(time.Since(c.began).Round(time.Millisecond), c.trouble(t, random, disks))
	}
	c.w.owner(t, registerShard, c.names...)
	close(c.quit)
	c.all.Wait()
	c.w.keep(t, registerShard, "last", c.names...)
	c.w.same(t, registerShard, c.names...)
	t.Logf("%d operations, %d of unknown outcome", len(c.history), c.unknown)
	switch result := porcupine.CheckOperationsTimeout(registerModel, c.history, time.Minute); result {
	case porcupine.Illegal:
		t.Fatal("the history is not linearizable")
	case porcupine.Unknown:
		t.Log("the history is too long to be checked")
	}
	for _, name := range c.names {
		c.w.nodes[name].stop()
	}
}
