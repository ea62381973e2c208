package cluster

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/cluster/membership"
	"switchyard/cluster/placement"
	"switchyard/storage"
)

func TestRebalancer_SpreadsAndRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSimCluster(5, "a", "b", "c")
		var out bytes.Buffer
		m := w.rebalancer(&out)
		m.gained()
		time.Sleep(time.Minute)
		if counts, learning := w.holders(); learning || slices.Min(counts) != 3 || slices.Max(counts) != 3 {
			t.Errorf("voters per shard %v", counts)
		}
		leads := map[string]int{}
		for _, g := range w.groups {
			leads[g.leader]++
		}
		if leads["a"] != 2 || leads["b"] != 2 || leads["c"] != 2 {
			t.Errorf("leaderships %v", leads)
		}
		m.close()
		said := out.String()
		if w.learnt["b"] == 0 || !strings.Contains(said, "outcome=done") || strings.Contains(said, "failed") {
			t.Errorf("registry learnt %v; log:\n%s", w.learnt, said)
		}
		if got := strings.Count(said, "placement step"); got != 12*2+4 { // adds and promotions, transfers
			t.Errorf("%d steps were logged:\n%s", got, said)
		}
	})
}

func TestRebalancer_ErrorsAreTriedAgainAndLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSimCluster(0, "a", "b", "c")
		refuse := true
		var out bytes.Buffer
		m := w.rebalancer(&out)
		own := &refusing{simNode: w.nodes["a"], refuse: func() bool { w.mu.Lock(); defer w.mu.Unlock(); return refuse }}
		m.Own, m.collector.own = own, own
		m.gained()
		time.Sleep(20 * time.Second)
		w.mu.Lock()
		refuse = false
		w.mu.Unlock()
		time.Sleep(20 * time.Second)
		m.close()
		if counts, _ := w.holders(); counts[0] != 3 {
			t.Errorf("voters %v", counts)
		}
		if got := strings.Count(out.String(), "disk is full"); got != 1 {
			t.Errorf("a failure was logged %d times:\n%s", got, out.String())
		}
	})
}

// refusing fails to change replicas for a while.
type refusing struct {
	*simNode
	refuse func() bool
}

func (r *refusing) changeReplica(ctx context.Context, shard storage.Shard, c replicaChange) error {
	if r.refuse() {
		return errors.New("disk is full")
	}
	return r.simNode.changeReplica(ctx, shard, c)
}

func TestRebalancer_SlowNodeDelaysButDoesNotStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSimCluster(3, "a", "b", "c", "d")
		w.hang["b"] = true
		m := w.rebalancer(&bytes.Buffer{})
		m.gained()
		time.Sleep(2 * time.Minute)
		m.close()
		for id, g := range w.groups {
			if len(g.voters) != 3 || slices.Contains(g.voters, "b") {
				t.Errorf("shard %d is on %v", id, g.voters)
			}
		}
	})
}

// A node whose disk is full gets no replica either while it has none.
func TestRebalancer_AFullNodeWithoutReplicas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSimCluster(3, "a", "b", "c", "d")
		w.nodes["b"].noRoom.Store(true)
		var out bytes.Buffer
		m := w.rebalancer(&out)
		m.gained()
		time.Sleep(time.Minute)
		m.close()
		for id, g := range w.groups {
			if len(g.voters) != 3 || slices.Contains(g.voters, "b") {
				t.Errorf("shard %d is on %v", id, g.voters)
			}
		}
		if said := out.String(); strings.Contains(said, "step.node=b") || !strings.Contains(said, "step.node=c") {
			t.Errorf("log:\n%s", said)
		}
	})
}

// The replicas of a node whose disk hangs wait for it, as those of a dead node do: most disks work again soon,
// and the copies would be made for nothing.
func TestRebalancer_ADiskThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSimCluster(3, "a", "b", "c", "d")
		var out bytes.Buffer
		m := w.rebalancer(&out)
		m.gained()
		time.Sleep(time.Minute)
		before := w.held("b")
		for range 2 {
			w.nodes["b"].stuck.Store(true)
			time.Sleep(4 * time.Minute)
			if now := w.held("b"); now != before || before == 0 {
				t.Errorf("it holds %d shards, and %d before its disk hung", now, before)
			}
			w.nodes["b"].stuck.Store(false)
			time.Sleep(time.Minute)
		}
		w.nodes["b"].stuck.Store(true)
		time.Sleep(10 * time.Minute)
		m.close()
		if now := w.held("b"); now != 0 {
			t.Errorf("it holds %d shards although its disk has hung for long", now)
		}
	})
}

// A disk that hangs again and again is like one that hangs: its node is given no leadership in between, and in the
// end no replica stays there.
func TestRebalancer_ADiskThatHangsAgainAndAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSimCluster(3, "a", "b", "c", "d")
		m := w.rebalancer(&bytes.Buffer{})
		m.gained()
		time.Sleep(time.Minute)
		leads := func() (shards int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, g := range w.groups {
				if g.leader == "b" { // the others elect one of them
					g.leader, g.term = g.voters[(slices.Index(g.voters, "b")+1)%len(g.voters)], g.term+1
					shards++
				}
			}
			return shards
		}
		before, given, hangs := w.held("b"), 0, 0
		for ; w.held("b") > 0 && hangs < 20; hangs++ {
			w.nodes["b"].stuck.Store(true)
			time.Sleep(10 * time.Second)
			if led := leads(); hangs > 0 {
				given += led
			}
			time.Sleep(10 * time.Second)
			w.nodes["b"].stuck.Store(false)
			time.Sleep(placement.HangRest - 10*time.Second)
		}
		m.close()
		// 40 seconds for each, and five minutes until the replicas are made anew.
		if given != 0 || before == 0 || hangs < 8 || hangs > 9 {
			t.Errorf("it was given %d leaderships, and held %d shards for %d hangs", given, before, hangs)
		}
	})
}

// A node is given no leadership soon after its disk has hung, also if nobody asked it for a report meanwhile, or
// if the process has ended since and begun anew.
func TestRebalancer_ADiskThatHasHung(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(w *simCluster){
		"nobody has seen it": func(w *simCluster) {
			w.nodes["b"].hung.Store(true)
			time.Sleep(time.Minute)
			w.nodes["b"].hung.Store(false)
		},
		"the process began anew": func(w *simCluster) {
			w.nodes["b"].stuck.Store(true)
			time.Sleep(10 * time.Second)
			w.change(func() { w.known.members[1].State = membership.NodeDead })
			w.nodes["b"].stuck.Store(false)
			time.Sleep(5 * time.Second)
			w.change(func() { w.known.members[1].State = membership.NodeAlive })
			time.Sleep(placement.HangRest - 10*time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newSimCluster(3, "a", "b", "c")
				w.spread("a", "b", "c")
				m := w.rebalancer(&bytes.Buffer{})
				leads := func() (shards int) {
					w.change(func() {
						for _, g := range w.groups {
							if g.leader == "b" {
								shards++
							}
						}
					})
					return shards
				}
				m.gained()
				after(w)
				if given := leads(); given > 0 {
					t.Errorf("it was given %d leaderships", given)
				}
				time.Sleep(time.Minute)
				m.close()
				if leads() == 0 {
					t.Error("it was never given a leadership")
				}
			})
		})
	}
}

// The replicas of a node whose disk is full don't wait because it has hung, too.
func TestRebalancer_AFullDiskThatHasHung(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, m := diskOfBHangs()
		time.Sleep(10 * time.Second)
		w.nodes["b"].noRoom.Store(true)
		time.Sleep(10 * time.Second)
		if w.held("b") == 0 {
			t.Error("its replicas are gone while its disk hangs")
		}
		w.nodes["b"].stuck.Store(false)
		time.Sleep(placement.HangRest / 2)
		m.close()
		if held := w.held("b"); held != 0 {
			t.Errorf("it holds %d shards although its disk is full", held)
		}
	})
}

// A node whose disk hangs may be late with a report. Its replicas are made anew all the same. When it dies, they
// wait for it as for any dead node.
func TestRebalancer_ADiskThatHangsAndLateReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, m := diskOfBHangs()
		for range 2 {
			time.Sleep(2*time.Minute - 3*time.Second)
			w.change(func() { w.fail["b"] = context.DeadlineExceeded })
			time.Sleep(3 * time.Second)
			w.change(func() { w.fail["b"] = nil })
		}
		w.change(func() {
			w.known.members[1].State, w.known.members[1].DeadSince = membership.NodeDead, time.Now()
		})
		time.Sleep(4 * time.Minute)
		if held := w.held("b"); held == 0 {
			t.Error("the replicas of a node that died are gone too soon")
		}
		w.change(func() { w.known.members[1].State, w.known.members[1].DeadSince = membership.NodeAlive, time.Time{} })
		for range 4 {
			time.Sleep(2 * time.Minute)
			w.change(func() { w.fail["b"] = context.DeadlineExceeded })
			time.Sleep(3 * time.Second)
			w.change(func() { w.fail["b"] = nil })
		}
		m.close()
		if held := w.held("b"); held != 0 {
			t.Errorf("it holds %d shards although its disk has hung for long", held)
		}
	})
}

func TestRebalancer_LosesTheDirectoryMidStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSimCluster(1, "a", "b", "c")
		var m *rebalancer
		var lost sync.Once
		w.changed = func(string, replicaChange) {
			// The goroutine that executes a step also loses the directory, and must not wait
			// for itself.
			lost.Do(func() { m.lost() })
		}
		var out bytes.Buffer
		m = w.rebalancer(&out)
		m.gained()
		time.Sleep(time.Minute)
		counts, learning := w.holders()
		if learning || counts[0] != 1 || counts[1] != 1 {
			t.Errorf("steps were taken after the loss: %v", counts)
		}
		if steps := m.progress(); len(steps) != 0 {
			t.Errorf("steps under way: %v", steps)
		}
		m.gained() // and it comes back
		m.gained()
		time.Sleep(time.Minute)
		if counts, _ := w.holders(); counts[0] != 3 {
			t.Errorf("voters %v", counts)
		}
		m.close()
		m.gained() // too late
		m.close()
		if !strings.Contains(out.String(), "next owner") {
			t.Errorf("log:\n%s", out.String())
		}
	})
}

func TestRebalancer_DropsOrphans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSimCluster(0, "a", "b")
		w.nodes["b"].hosts[0] = true
		m := w.rebalancer(&bytes.Buffer{})
		m.gained()
		time.Sleep(placement.OrphanGrace - time.Millisecond)
		synctest.Wait()
		if !w.nodes["b"].has(0) {
			t.Error("dropped at first sight")
		}
		time.Sleep(5 * time.Second)
		m.close()
		if w.nodes["b"].has(0) {
			t.Error("the orphan is still there")
		}
	})
}

func TestPlacementHandlers_RefuseWhatIsOutOfDate(t *testing.T) {
	t.Parallel()
	w := newSimCluster(0, "a", "b")
	for _, test := range []struct {
		name, node string
		kind       rpcKind
		body       string
		want       error
	}{
		{"another term's change", "a", rpcReplicas, `{"shard":0,"term":2,"change":{"action":"add","node":"b"}}`, errOtherTerm},
		{"a change asked of a follower", "b", rpcReplicas, `{"shard":0,"term":3,"change":{"action":"add","node":"b"}}`, errOtherTerm},
		{"a drop asked of the leader", "a", rpcDrop, `{"shard":0,"term":3,"last":99}`, errCounted},
		{"a drop of what is not there", "b", rpcDrop, `{"shard":0,"term":3,"last":99}`, nil},
	} {
		_, err := w.call(t.Context(), test.node, test.kind, []byte(test.body))
		if !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	w.nodes["b"].hosts[0] = true
	if _, err := w.call(t.Context(), "b", rpcDrop, []byte(`{"shard":0,"term":2,"last":99}`)); !errors.Is(err, errCounted) {
		t.Errorf("a drop from an earlier term: %v", err)
	}
	for _, kind := range []rpcKind{rpcReport, rpcHost, rpcReplicas, rpcDrop} {
		if _, err := w.call(t.Context(), "b", kind, []byte(`{"shard":-1`)); err == nil {
			t.Errorf("kind %d took a broken request", kind)
		}
	}
}

// progress returns the steps under way, by shard.
func (m *rebalancer) progress() []placement.Step {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.running)
}

// Rounds come fast after a step, and more rarely when there has been none for a while.
func TestRebalancer_Pace(t *testing.T) {
	t.Parallel()
	known := roundState{fastRounds: 1}
	if got := known.pace(); got != rebalanceFastInterval {
		t.Errorf("after a step: %v", got)
	}
	for i := range slowAfter {
		if got := known.pace(); got != rebalanceInterval {
			t.Fatalf("after %d rounds without a step: %v", i+1, got)
		}
	}
	if got := known.pace(); got != rebalanceSlowInterval {
		t.Errorf("after %d rounds without a step: %v", slowAfter+1, got)
	}
	known.fastRounds = 1
	if known.pace(); known.pace() != rebalanceInterval {
		t.Error("a step does not end the rest")
	}
}

// More small shards move at a time as long as that goes quickly.
func TestRebalancer_Adapts(t *testing.T) {
	t.Parallel()
	const least, most = placement.MinSmallMoves, placement.MostSmallMoves
	known := roundState{smallMoves: least}
	for i, c := range []struct {
		steps  int
		took   time.Duration
		failed bool
		want   int
	}{
		{least - 1, 0, false, least}, // the bound was not met
		{least, quickSteps, false, 2 * least},
		{least, 0, false, 2 * least},
		{2 * least, quickSteps + 1, false, 2 * least},
		{2 * least, 0, false, 4 * least},
		{4 * least, 0, false, most},
		{most, 0, false, most},
		{most, slowSteps + 1, false, most / 2},
		{1, 0, true, least},
		{least, 0, false, 2 * least},
		{0, 0, false, least},
		{least, slowSteps + 1, false, least},
	} {
		known.adapt(c.steps, c.took, c.failed)
		if known.smallMoves != c.want {
			t.Errorf("%d. after %d steps in %s: %d at a time, not %d", i, c.steps, c.took, known.smallMoves, c.want)
		}
	}
}
