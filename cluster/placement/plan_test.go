package placement

import "testing"

func TestPlan(t *testing.T) {
	t.Parallel()
	checkPlans(t, []planCase{
		{"a node alone wants nothing", `
			node a
			shard 0 a*
			shard 1 a*`, ``},
		{"a second node gets nothing while the cluster has not had three", `
			node a
			node b
			shard 0 a*
			shard 1 a*`, ``},
		{"with three, each shard grows, two at a time, the directory first", `
			three
			node a
			node b
			node c
			shard 0 a*
			shard 1 a*
			shard 2 a*`, `
			0: add b: the shard has too few replicas
			1: add b: the shard has too few replicas`},
		{"a copy under way is waited for", `
			three
			node a
			node b
			node c
			shard 0 a* ~b
			shard 1 a* ~c
			shard 2 a*`, ``},
		{"the second replica waits for the third before it votes", `
			three
			node a
			node b
			node c
			shard 0 a* ^b`, `
			0: add c: the shard has too few replicas`},
		{"both have caught up: one is promoted, then the other", `
			three
			node a
			node b
			node c
			shard 0 a* ^b ^c
			shard 1 a* b ^c`, `
			0: promote b: it has caught up
			1: promote c: it has caught up`},
		{"with two of three left, two replicas must do", `
			three
			node a
			node b
			node c removed dead=1h
			shard 0 a* ^b`, `
			0: promote b: it has caught up`},
		{"a dead node counts until its time is up", `
			three
			node a
			node b
			node c dead=4m59s
			node d
			shard 0 a* b c`, ``},
		{"then its replicas are replaced", `
			three
			node a
			node b
			node c dead=5m
			node d
			shard 0 a* b c`, `
			0: add d: it replaces c, which has been dead for too long`},
		{"the dead voter goes last", `
			three
			node a
			node b
			node c dead=6m
			node d
			shard 0 a* b c ~d
			shard 1 a* b c ^d
			shard 2 a* b c d`, `
			1: promote d: it has caught up
			2: remove c: the shard does not need c, which has been dead for too long`},
		{"a dead voter stays when there is no other node", `
			three
			node a
			node b
			node c dead=99h
			shard 0 a* b c`, ``},
		{"a node that gossip misses and that does not answer is not dead yet", `
			three
			node a
			node b
			node c suspect
			node d
			shard 0 a* b c`, ``},
		{"a removed member is replaced at once", `
			three
			node a
			node b
			node c removed
			node d
			shard 0 a* b c`, `
			0: add d: it replaces c, which was removed`},
		{"a removed member goes without replacement when a majority lives", `
			three
			node a
			node b
			node c removed dead=1s
			shard 0 a* b c`, `
			0: remove c: the shard does not need c, which was removed`},
		{"and stays when the others would be no majority", `
			three
			node a
			node b silent
			node c removed
			shard 0 a* b c`, ``},
		{"a removed node that is the last one keeps the shard", `
			node a removed
			shard 0 a*`, ``},
		{"a removed member stays while another voter has no room", `
			three
			node a
			node b draining
			node c removed
			shard 0 a* -b c`, ``},
		{"a removed member goes when the voters with room are a majority", `
			three
			node a
			node b draining
			node c removed
			node d
			shard 0 a* -b c d`, `
			0: remove c: the shard does not need c, which was removed`},
		{"a non-voter without room is not promoted", `
			three
			node a
			node b
			node c
			shard 0 a* b -^c`, ``},
		{"two removed members leave one after the other", `
			three
			node a
			node b removed
			node c removed
			shard 0 a* b c`, `
			0: remove b: the shard does not need b, which was removed`},
		{"a draining node is emptied onto a spare one", `
			three
			node a
			node b
			node c draining
			node d
			shard 0 a* b c
			shard 1 a* b c d`, `
			1: remove c: the shard does not need c, which drains
			0: add d: it replaces c, which drains`},
		{"the only replica leaves a draining node: copied", `
			node a draining
			node b
			shard 0 a*`, `
			0: add b: it replaces a, which drains`},
		{"promoted", `
			node a draining
			node b
			shard 0 a* ^b`, `
			0: promote b: it has caught up`},
		{"handed over", `
			node a draining
			node b
			shard 0 a* b`, `
			0: transfer b: a, which drains`},
		{"removed", `
			node a draining
			node b
			shard 0 a b*`, `
			0: remove a: the shard does not need a, which drains`},
		{"a draining node is not given replicas, nor is one that does not answer", `
			three
			node a
			node b draining
			node c silent
			node d
			shard 0 a*`, `
			0: add d: the shard has too few replicas`},
		{"a voter is kept while the others that follow are no majority", `
			three
			node a
			node b
			node c dead=6m
			node d
			shard 0 a* b! c d!`, ``},
		{"a non-voter whose node died is given up", `
			three
			node a
			node b
			node c
			node d dead=1s
			shard 0 a* b c ~d`, `
			0: remove d: a non-voter that died before it had caught up`},
		{"one that misses a report is not", `
			three
			node a
			node b
			node c dead=6m
			node d silent
			shard 0 a* b c ~d`, ``},
		{"a non-voter left over is removed", `
			three
			node a
			node b
			node c
			node d draining
			shard 0 a* b c ^d`, `
			0: remove d: a non-voter that drains`},
		{"a non-voter that is not hosted is hosted again", `
			three
			node a
			node b
			node c
			shard 0 a* b ?c`, `
			0: host c: its leader counts a replica that does not exist`},
		{"replicas spread over an added node", `
			three
			node a
			node b
			node c
			node d
			shard 0 a* b c
			shard 1 a b* c
			shard 2 a b c*
			shard 3 a* b c`, `
			0: add d: b holds more shards
			1: add d: a holds more shards`},
		{"the fullest gives the replica up", `
			three
			node a
			node b
			node c
			node d
			shard 0 a* b c
			shard 1 a b* c
			shard 2 a b c*
			shard 3 a* b c d`, `
			3: remove c: the shard does not need c, which holds more than others
			0: add d: b holds more shards`},
		{"nothing is spread while a shard lacks a replica", `
			three
			node a
			node b
			node c
			node d
			shard 0 a* b ~c
			shard 1 a b* c
			shard 2 a b c*
			shard 3 a* b c`, ``},
		{"nothing is spread while a voter does not answer", `
			three
			node a
			node b
			node c suspect
			node d
			node e
			shard 0 a* b c
			shard 1 a* b c`, `
			1: transfer b: a leads more shards`},
		{"replicas go to different zones", `
			three
			node a zone=1
			node b zone=1
			node c zone=2
			node d zone=3
			shard 0 a*`, `
			0: add c: the shard has too few replicas`},
		{"a shared zone is left although the counts get uneven", `
			three
			node a zone=1
			node b zone=1
			node c zone=2
			node d zone=3
			shard 0 a* b c
			shard 1 a c d*`, `
			0: add d: a is in a zone with another replica`},
		{"a node that is about to stop gets no replica", `
			three
			node a
			node b
			node c leaving
			shard 0 a* b`, ``},
		{"an orphan is dropped once it has been one for long", `
			three
			node a
			node b
			node c
			node d
			shard 0 a* b c @d
			lingering`, `
			0: drop d: its group does not count it`},
		{"and not before", `
			three
			node a
			node b
			node c
			node d
			shard 0 a* b c @d`, ``},
		{"nor when it is about to be a member", `
			three
			node a
			node b
			node c removed
			node d
			shard 0 a* b c @d
			lingering`, `
			0: add d: it replaces c, which was removed`},
		{"nor while its removal is not committed", `
			three
			node a
			node b
			node c
			node d
			shard 0 changing a* b c @d
			lingering`, ``},
		{"a removed voter is not added again before its removal is committed", `
			three
			node a
			node b
			node c
			shard 0 changing a* b`, ``},
		{"replicas are not spread while members change", `
			three
			node a
			node b
			node c
			node d
			shard 0 changing a* b c
			shard 1 a b* c
			shard 2 a b c*
			shard 3 a* b c`, `
			1: add d: a holds more shards
			2: add d: b holds more shards`},
		{"a voter that its node does not hold is removed", `
			three
			node a
			node b
			node c
			shard 0 a* b %c
			lingering`, `
			0: remove c: its node answers and holds no replica`},
		{"and not at once", `
			three
			node a
			node b
			node c
			shard 0 a* b %c`, ``},
		{"nor when its vote is needed", `
			three
			node a
			node b dead=1s
			node c
			shard 0 a* b %c
			lingering`, ``},
		{"a failed replica is removed", `
			three
			node a
			node b
			node c
			shard 0 a* b #c
			lingering`, `
			0: remove c: its replica failed: bad`},
		{"of two failed replicas that follow one is removed first", `
			three
			node a
			node b
			node c
			shard 0 a* #b #c
			lingering`, `
			0: remove b: its replica failed: bad`},
		{"of two failed replicas the one that does not follow goes first", `
			three
			node a
			node b
			node c
			shard 0 a* #b !#c
			lingering`, `
			0: remove c: its replica failed: bad`},
		{"two replicas that could not be opened stay: no change could be committed", `
			three
			node a
			node b
			node c
			shard 0 a* !#b !#c
			lingering`, ``},
		{"a failed replica is dropped before another one is added", `
			three
			node a
			node b
			node c
			shard 0 a* b #@c
			lingering`, `
			0: drop c: its group does not count it`},
		{"a shard without a leader is left alone", `
			three
			node a
			node b
			node c draining
			node d
			shard 0 a b c`, ``},
		{"a voter that nobody registered stays", `
			three
			node a
			node b
			node d
			shard 0 a* b stranger`, ``},
	})
}

// planCase is a cluster, as parseCluster reads it, and the steps of its plan, one a line.
type planCase struct{ name, cluster, want string }

func TestPlan_LatestLeaderCounts(t *testing.T) {
	t.Parallel()
	state := parseCluster(t, `
		three
		node a
		node b
		node c
		node d
		shard 0 a* b c`)
	// b was elected since, and removed c.
	state.Reports["b"] = []GroupReport{{
		Leads: true, Term: 6, Epoch: 6, Leader: "b", Voters: []string{"a", "b", "d"},
		Peers: []PeerReport{{Node: "a", CaughtUp: true}, {Node: "d", CaughtUp: true}},
	}}
	state.Reports["d"] = []GroupReport{{Term: 6}}
	if steps := Plan(state, testNow); len(steps) != 0 {
		t.Errorf("steps %v from a deposed leader's report", steps)
	}
	if found := Orphans(state); !found[Replica{0, "c"}] || len(found) != 1 {
		t.Errorf("orphans %v", found)
	}
	state.Reports["c"][0].Term = 7 // it may know a later leader
	if found := Orphans(state); len(found) != 0 {
		t.Errorf("orphans %v", found)
	}
}
