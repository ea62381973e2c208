package placement

import (
	"fmt"
	"testing"
)

func TestPlan_SmallShards(t *testing.T) {
	t.Parallel()
	checkPlans(t, []planCase{
		{"small shards don't wait for large ones", `
			three
			node a
			node b
			node c
			shard 0 a*
			shard 1 a*
			shard 2 a*
			shard 3 a* small
			shard 4 a* small
			shard 5 a* small`, `
			0: add b: the shard has too few replicas
			1: add b: the shard has too few replicas
			3: add b: the shard has too few replicas
			4: add b: the shard has too few replicas
			5: add b: the shard has too few replicas`},
	})
}

func TestPlan_BoundsSmallShardsThatGrow(t *testing.T) {
	t.Parallel()
	text := "three\nnode a\nnode b\nnode c\n"
	for shard := range 3 * maxSmallMoves {
		text += fmt.Sprintf("shard %d a* small\n", shard)
	}
	if steps := Plan(parseCluster(t, text), testNow); len(steps) != maxSmallMoves {
		t.Errorf("%d steps, not %d", len(steps), maxSmallMoves)
	}
}
