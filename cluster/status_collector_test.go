package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/cluster/membership"
	"switchyard/storage"
)

func (w *simCluster) statusCollector(self string) *statusCollector {
	return newStatusCollector(rebalancerConfig{Self: self, Own: w.nodes[self], Peers: w, Members: w, ReplaceAfter: 5 * time.Minute})
}

// spread puts every shard on all of the nodes.
func (w *simCluster) spread(names ...string) {
	for id, g := range w.groups {
		g.voters = names
		for _, name := range names {
			w.nodes[name].hosts[storage.Shard(id)] = true
		}
	}
}

func statusOf(t Topology, name string) NodeStatus {
	i := slices.IndexFunc(t.Nodes, func(n NodeStatus) bool { return n.Name == name })
	if i < 0 {
		return NodeStatus{}
	}
	return t.Nodes[i]
}

func TestStatus_OfAHealthyCluster(t *testing.T) {
	t.Parallel()
	w := newSimCluster(2, "a", "b", "c")
	w.spread("c", "b", "a")
	w.groups[1].leader = "b"
	w.groups[2].nonVoters = []string{"d"}
	w.nodes["d"] = &simNode{w: w, name: "d"}
	top := w.statusCollector("c").status(t.Context())
	if top.ClusterID != "c" || len(top.Nodes) != 3 || len(top.Shards) != 3 {
		t.Fatalf("topology %+v", top)
	}
	if n := statusOf(top, "b"); n.State != membership.NodeAlive || n.Leads != 1 || n.Replicas != 3 || n.HTTP != "b:8080" {
		t.Errorf("b is %+v", n)
	}
	s := top.Shards[2]
	if s.ID != 2 || s.Leader != "a" || s.Term != 3 || s.Applied != 9 || s.Lag != 2 ||
		!slices.Equal(s.Voters, []string{"a", "b", "c"}) || !slices.Equal(s.NonVoters, []string{"d"}) {
		t.Errorf("shard 2 is %+v", s)
	}
	body, err := json.Marshal(top)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(body), "null") {
		t.Errorf("lists are never null: %s", body)
	}
	if w.learnt["a"] != 0 {
		t.Error("a look at the status hands out a registry")
	}
}

// A node without replicas says of itself that it should take none.
func TestStatus_OfAFullNodeWithoutReplicas(t *testing.T) {
	t.Parallel()
	w := newSimCluster(1, "a", "b", "c", "d")
	w.spread("a", "b", "c")
	w.nodes["d"].noRoom.Store(true)
	w.known.members[2].Draining = true
	top := w.statusCollector("a").status(t.Context())
	if d := statusOf(top, "d"); d.State != membership.NodeAlive || !strings.Contains(d.Note, "should lead nothing") {
		t.Errorf("d is %+v", d)
	}
	if c := statusOf(top, "c"); c.State != membership.NodeDraining || !strings.Contains(c.Note, "leaderships only") {
		t.Errorf("c is %+v", c)
	}
}

func TestStatus_CutOffFromTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSimCluster(1, "a", "b", "c")
		w.spread("a", "b", "c")
		w.hang["a"], w.fail["b"] = true, errors.New("no route")
		began := time.Now()
		top := w.statusCollector("c").status(t.Context())
		if took := time.Since(began); took > reportTimeout {
			t.Errorf("it took %v", took)
		}
		if statusOf(top, "a").State != membership.NodeSuspect || statusOf(top, "b").State != membership.NodeSuspect || statusOf(top, "c").State != membership.NodeAlive {
			t.Errorf("nodes %+v", top.Nodes)
		}
		if s := top.Shards[1]; s.Leader != "" || s.Term != 3 || len(s.Voters) != 3 {
			t.Errorf("shard 1 is %+v", s)
		}
	})
}

func TestStatus_ManyAskersCostOneReport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newSimCluster(0, "a", "b", "c")
		v := w.statusCollector("b")
		var askers sync.WaitGroup
		for range 50 {
			askers.Go(func() { v.status(t.Context()) })
		}
		askers.Wait()
		if w.asked["a"] != 1 {
			t.Errorf("a was asked %d times", w.asked["a"])
		}
		time.Sleep(statusMaxAge)
		v.status(t.Context())
		if w.asked["a"] != 2 {
			t.Errorf("a was asked %d times", w.asked["a"])
		}
		time.Sleep(statusMaxAge)
		w.hang["a"] = true
		askers.Go(func() { v.status(t.Context()) })
		synctest.Wait()
		hurried, cancel := context.WithCancel(t.Context())
		cancel()
		if top := v.status(hurried); len(top.Nodes) != 3 {
			t.Errorf("without time to ask it tells %+v", top)
		}
		askers.Wait()
	})
}
