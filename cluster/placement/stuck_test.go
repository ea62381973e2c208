package placement

import "testing"

// TestPlan_Stuck plans for nodes whose disks hang, and have not done so for long.
func TestPlan_Stuck(t *testing.T) {
	t.Parallel()
	checkPlans(t, []planCase{
		{"a node whose disk hangs keeps its replicas and is given no others", `
			three
			node a
			node b
			node c stuck
			node d
			shard 0 a* b >c
			shard 1 a* b`, `
			1: add d: the shard has too few replicas`},
		{"of four replicas that on a disk that hangs goes", `
			three
			node a
			node b
			node c
			node d stuck
			shard 0 a* b c >d
			shard 1 a b* c`, `
			0: remove d: the shard does not need d, whose disk hangs`},
		{"an orphan on a disk that hangs is left alone", `
			three
			node a
			node b
			node c
			node d stuck
			shard 0 a* b c >@d
			lingering`, ``},
		{"a copy for a node whose disk hangs is given up", `
			three
			node a
			node b
			node c
			node d stuck
			shard 0 a* b c >~d`, `
			0: remove d: a non-voter that is on a disk that hangs`},
		{"a voter whose disk hangs acknowledges nothing", `
			three
			node a
			node b
			node c draining
			node d stuck
			shard 0 a* b! c >d`, ``},
		{"a failed replica stays while the disk of another one hangs", `
			three
			node a
			node b
			node c stuck
			shard 0 a* #b >c
			lingering`, ``},
		{"or has no room", `
			three
			node a
			node b
			node c draining
			shard 0 a* #b -c
			lingering`, ``},
		{"it is removed when the others can commit", `
			three
			node a
			node b
			node c stuck
			node d
			shard 0 a* #b >c d
			lingering`, `
			0: remove b: its replica failed: bad`},
		{"a node whose disk hangs gets no leadership, and its leaderships are left to elections", `
			three
			node a
			node b
			node c stuck
			shard 0 a* b >c
			shard 1 a* b >c
			shard 2 a b* >c
			shard 3 a b* >c
			shard 4 a b >c*`, ``},
		{"nor that of a node which was removed", `
			three
			node a removed
			node b draining
			node c stuck
			shard 0 a* b >c
			shard 1 a* b! >c`, `
			0: transfer b: a, which was removed`},
		{"a node that drains is a better leader than one whose disk has hung a moment ago, or that stops", `
			three
			node a removed
			node b draining
			node c stuck
			node d leaving
			shard 0 a* b c
			shard 1 a* b d
			shard 2 a* b! c`, `
			0: transfer b: a, which was removed
			1: transfer b: a, which was removed
			2: transfer c: a, which was removed`},
		{"others replace it when it has hung for long", `
			three
			node a
			node b
			node c stuck full
			node d
			shard 0 a* b >c
			shard 1 a b* ~c d`, `
			1: remove c: a non-voter that is on a disk that hangs
			0: add d: it replaces c, whose disk hangs`},
		{"of two nodes that should go that one goes whose disk hangs", `
			three
			node a
			node b stuck full
			node c draining
			node d
			shard 0 a* >b c d`, `
			0: remove b: the shard does not need b, whose disk hangs`},
		{"also if others take over from both", `
			three
			node a
			node b draining
			node c stuck full
			node d
			node e
			shard 0 a* b >c d`, `
			0: remove c: the shard does not need c, whose disk hangs`},
	})
}

// TestPlan_Full plans for nodes that should lead nothing and take no replicas.
func TestPlan_Full(t *testing.T) {
	t.Parallel()
	checkPlans(t, []planCase{
		{"others take over what it has", `
			three
			node a
			node b
			node c full
			node d
			shard 0 c* a b
			shard 1 a* b c`, `
			0: transfer b: c, which should lead nothing
			1: add d: it replaces c, which should lead nothing`},
		{"a copy for it is given up", `
			three
			node a
			node b
			node c
			node d full
			shard 0 a* b c ~d`, `
			0: remove d: a non-voter that is on a node that should take none`},
	})
}
