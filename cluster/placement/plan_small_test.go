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
	for shard := range 2 * MostSmallMoves {
		text += fmt.Sprintf("shard %d a* small\n", shard)
	}
	for allowed, want := range map[int]int{0: MinSmallMoves, 1: MinSmallMoves, 100: 100, 10 * MostSmallMoves: MostSmallMoves} {
		state := parseCluster(t, text)
		state.SmallMoves = allowed
		if steps := Plan(state, testNow); len(steps) != want {
			t.Errorf("%d steps, not %d, where %d are allowed", len(steps), want, allowed)
		}
		// More than the least number only as far as their bytes allow.
		for i := range state.Reports["a"] {
			state.Reports["a"][i].Bytes = maxSmallBytes / 40
		}
		if steps := Plan(state, testNow); len(steps) != min(want, 40) {
			t.Errorf("%d steps for shards with a 40th of the bytes each, not %d", len(steps), min(want, 40))
		}
	}
}

// A node that joins gets many small shards at once, and large ones a few at a time.
func TestPlan_BoundsMovesToANewNode(t *testing.T) {
	t.Parallel()
	for kind, most := range map[string]int{"small": maxBalanceMoves, "": maxMoves} {
		text := "three\nnode a\nnode b\nnode c\nnode d\n"
		for range 4 * maxBalanceMoves {
			text += "shard 0 a* b c " + kind + "\n"
		}
		steps := Plan(parseCluster(t, text), testNow)
		if len(steps) != most {
			t.Errorf("%d steps for shards of kind %q, not %d", len(steps), kind, most)
		}
		for _, s := range steps {
			if s.Kind != StepAdd || s.Node != "d" {
				t.Errorf("step %v", s)
			}
		}
	}
}

// A shard counts as small by its size where its leader reports it, however many entries it has had.
func TestPlan_SmallBySize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		last, bytes uint64
		small       bool
	}{
		{smallLast, 0, true}, {smallLast + 1, 0, false},
		{100_000, smallBytes, true}, {100_000, smallBytes + 1, false}, {1, smallBytes + 1, false},
	} {
		if s := (placedShard{GroupReport: GroupReport{Last: c.last, Bytes: c.bytes}}); s.small() != c.small {
			t.Errorf("a shard of %d entries and %d bytes is small: %t", c.last, c.bytes, !c.small)
		}
	}
}

// A drain takes about as many rounds with many shards as with few.
func TestPlan_TransfersInARound(t *testing.T) {
	t.Parallel()
	for shards, most := range map[int]int{13: minTransfers, 97: 12, 1025: mostTransfers} {
		text := "three\nnode a draining\nnode b\nnode c\n"
		for range shards { // the directory is one of them
			text += "shard 0 a* b c\n"
		}
		transfers := 0
		for _, s := range Plan(parseCluster(t, text), testNow) {
			transfers += boolInt(s.Kind == StepTransfer)
		}
		if transfers != most {
			t.Errorf("%d transfers of %d shards, not %d", transfers, shards, most)
		}
	}
}
