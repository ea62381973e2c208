package placement

import "testing"

func TestPlan_Leaders(t *testing.T) {
	t.Parallel()
	checkPlans(t, []planCase{
		{"a removed leader hands over first", `
			three
			node a removed
			node b
			node c
			shard 0 a* b c`, `
			0: transfer b: a, which was removed`},
		{"one of three that drains hands leaderships over and keeps the replicas", `
			three
			node a
			node b
			node c draining
			shard 0 a b c*
			shard 1 a b c*`, `
			0: transfer a: c, which drains
			1: transfer b: c, which drains`},
		{"a leadership goes to a voter that has caught up", `
			three
			node a
			node b
			node c draining
			shard 0 a! b c*
			shard 1 a! b! c*`, `
			0: transfer b: c, which drains`},
		{"a node that is about to stop gets no leadership", `
			three
			node a
			node b
			node c leaving
			shard 0 a* b c
			shard 1 a* b c
			shard 2 b* a c`, ``},
		{"a node that is about to stop leads nothing and keeps its replicas", `
			three
			node a
			node b
			node c leaving
			node d
			shard 0 c* a b
			shard 1 a* b c`, `
			0: transfer b: c, which is about to stop`},
		{"leaderships spread, at most four a round", `
			three
			node a
			node b
			node c
			shard 0 a* b c
			shard 1 a* b c
			shard 2 a* b c
			shard 3 a* b c
			shard 4 a* b c
			shard 5 a* b c
			shard 6 a* b c
			shard 7 a* b c
			shard 8 a* b c`, `
			1: transfer b: a leads more shards
			2: transfer c: a leads more shards
			3: transfer b: a leads more shards
			4: transfer c: a leads more shards`},
		{"leaderships spread through a node that leads as many as it should", `
			three
			node a
			node b
			node c
			node e dead=1m
			shard 0 a* b e
			shard 1 a* b e
			shard 2 b* c e`, `
			1: transfer b: a leads more shards
			2: transfer c: b leads more shards`},
		{"a failed leader hands over to a voter whose disk has room, although this one leads more", `
			three
			node a
			node b
			node c
			shard 0 a#* b- c
			shard 1 c* a b`, `
			0: transfer c: its replica failed: bad
			1: transfer a: c leads more shards`},
		{"a failed leader hands over", `
			three
			node a
			node b
			node c
			shard 0 #a* b c`, `
			0: transfer b: its replica failed: bad`},
	})
}
