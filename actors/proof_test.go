package actors

import (
	"testing"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// A read of a caller who is remembered proves once that this node has the latest state: at
// its admission. Another look under the same admission proves it again.
func TestDo_ProvesAReadOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.OpenOnboarding = true })
	mine := b.onboard("mine")
	b.admitted(mine.id, mine.credential, readCount)
	barriers := 0
	count := func() { barriers++ }
	b.local.onBarrier.Store(&count)
	want := func(n int) {
		t.Helper()
		if barriers != n {
			t.Fatalf("%d barriers, want %d", barriers, n)
		}
	}
	req := b.admitted(mine.id, mine.credential, readCount)
	want(1)
	for _, n := range []int{1, 2, 3} {
		if _, err := b.engine.Do(req, readCount, &tracker.None{}); err != nil {
			t.Fatal(err)
		}
		want(n)
	}
}

// A proof ends with the ownership in which it was made, and so do the rights: another node may have
// changed them.
func TestDo_ProofOfAnEarlierOwnership(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.OpenOnboarding = true })
	mine := b.onboard("mine")
	read := func(req *tracker.Request) error {
		_, err := b.engine.Do(req, readCount, &tracker.None{})
		return err
	}
	first, second := b.admitted(mine.id, mine.credential, readCount), b.admitted(mine.id, mine.credential, readCount)
	b.local.lose(b.engine, storage.ShardOf(mine.id, testShards))
	wantOutcome(t, read(first), "not_applied")
	b.local.gain(t, b.engine)
	barriers := 0
	count := func() { barriers++ }
	b.local.onBarrier.Store(&count)
	resolved := b.engine.Stats().CallersResolved
	if err := read(second); err != nil || barriers == 0 {
		t.Errorf("%d barriers, %v", barriers, err)
	}
	if b.engine.Stats().CallersResolved == resolved {
		t.Error("the rights were not looked at again")
	}
}

// A shard that was lost and won again while a remembered caller's admission waited for its
// proof is seen as another: what changed meanwhile was counted by nobody here.
func TestAdmit_OwnershipChangesDuringTheProof(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.OpenOnboarding = true })
	mine := b.onboard("mine")
	b.admitted(mine.id, mine.credential, readCount)
	change := func() {
		b.local.onBarrier.Store(nil)
		b.local.lose(b.engine, storage.ShardOf(mine.id, testShards))
		b.local.gain(t, b.engine)
	}
	b.local.onBarrier.Store(&change)
	resolved := b.engine.Stats().CallersResolved
	b.admitted(mine.id, mine.credential, readCount)
	if b.engine.Stats().CallersResolved == resolved {
		t.Error("a caller of an earlier epoch was remembered")
	}
}
