package httpapi

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Requests of all sizes come from several callers. They wait for their bytes, are cut off for others, need more for what they
// decode and answer, and leave at any moment. In the end no bytes are charged, and nobody waits.
func TestBudget_IsGivenBackWhateverHappens(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			limits := Limits{Bytes: 4 * peerRoom, WorkspaceBytes: 2 * peerRoom, AnonymousBytes: peerRoom, AddressBytes: peerRoom / 2}
			b := newBudget(&limits, func(string) {})
			var all sync.WaitGroup
			for n := range uint64(30) {
				all.Go(func() { budgetUser(b, rand.New(rand.NewPCG(seed, n))) })
			}
			all.Wait()
			b.mu.Lock()
			defer b.mu.Unlock()
			if used, anonymous := b.all.Load(), b.anonymous.Load(); used != 0 || anonymous != 0 || len(b.by) != 0 || len(b.waiting) != 0 {
				t.Errorf("seed %d: %d bytes are charged, %d of them to callers without a credential, to %d accounts, and %d lines wait", seed, used, anonymous, len(b.by), len(b.waiting))
			}
		})
	}
}

// budgetUser is a connection with some requests.
func budgetUser(b *budget, random *rand.Rand) {
	c := &conn{}
	for range 20 {
		pause := func() { time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond) }
		to, from := account{kind: workspaceAccount, workspace: [16]byte{byte(random.IntN(4))}}, account{}
		switch random.IntN(8) {
		case 0:
			to = account{kind: operatorAccount}
		case 1:
			to = account{kind: anonymousAccount}
		}
		size := 1 + random.IntN(peerRoom/(1+random.IntN(20)))
		var held *heldBody
		if random.IntN(2) == 0 && to.kind != anonymousAccount {
			var err error
			held, err = b.await(to, from, size, random.IntN(4) == 0, time.Now().Add(time.Duration(random.IntN(3000))*time.Millisecond))
			if err != nil {
				continue
			}
			if random.IntN(2) == 0 { // a command that outlives its caller
				held.Hold()
				wait := time.Duration(random.IntN(4000)) * time.Millisecond
				time.AfterFunc(wait, held.GiveUp)
			}
		} else if b.raise(c, to, from, bodyPart, size, false) != nil {
			b.releaseAll(c)
			continue
		}
		pause()
		if random.IntN(3) > 0 || !b.spare(c, held) {
			_ = b.raise(c, to, from, bodyPart, size+random.IntN(1<<20), false) // names
			pause()
			b.lower(c, bodyPart, size)
			_ = b.raise(c, to, from, answerPart, random.IntN(1<<20), random.IntN(2) == 0)
			pause()
		}
		if held != nil {
			held.GiveUp()
		}
		b.releaseAll(c)
	}
	time.Sleep(time.Minute) // until the commands have ended
}
