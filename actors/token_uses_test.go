package actors

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

// lastUsed returns the recorded last uses of a workspace's tokens.
func (b *testEngine) lastUsed(o onboarded) map[tracker.TokenID]tracker.Timestamp {
	b.t.Helper()
	reply, err := b.engine.Do(request(o.id), tracker.ListTokens, &tracker.PageIn{})
	if err != nil {
		b.t.Fatal(err)
	}
	var list tracker.TokenList
	if err := json.Unmarshal(reply.Body, &list); err != nil {
		b.t.Fatal(err)
	}
	used := map[tracker.TokenID]tracker.Timestamp{}
	for _, t := range list.Tokens {
		if t.LastUsedAt != nil {
			used[t.ID] = *t.LastUsedAt
		}
	}
	return used
}

// The use of a token is recorded once an hour, after the request, in the token's home
// workspace.
func TestTokenUses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ahead atomic.Int64
		start := time.Date(2026, 11, 20, 21, 30, 0, 0, time.UTC)
		b := setup(t, func(c *Config) {
			c.OpenOnboarding = true
			c.Clock = func() time.Time { return start.Add(time.Duration(ahead.Load())) }
		})
		mine, other := b.onboard("mine"), b.onboard("other")
		token, unused := b.token(mine, "read"), b.token(mine, "read")
		op := needing(tracker.Identified, "")
		use := func() { b.admitted(storage.ID{}, token.Secret, op) }
		noted := func(want time.Duration) {
			t.Helper()
			testkit.Eventually(t, "the token's use is recorded", func() bool { return b.lastUsed(mine)[token.ID] == tracker.At(start.Add(want)) })
		}
		use()
		noted(0)
		// Within the hour nothing is written, whether the caller is cached or not.
		before := b.engine.Stats().Commands
		ahead.Store(int64(time.Hour - time.Millisecond))
		use()
		b.engine.generations.bump(mine.id)
		use()
		b.engine.tokenUses.mu.Lock()
		if n := len(b.engine.tokenUses.waiting); n != 0 {
			t.Errorf("%d uses wait to be noted within the hour", n)
		}
		b.engine.tokenUses.mu.Unlock()
		if now := b.engine.Stats().Commands; now != before {
			t.Errorf("%d commands within the hour", now-before)
		}
		ahead.Store(int64(time.Hour))
		use()
		noted(time.Hour)
		if _, is := b.lastUsed(mine)[unused.ID]; is {
			t.Error("a token that nobody used shows a use")
		}
		// A use in another workspace is recorded at home.
		ahead.Store(int64(2 * time.Hour))
		_, err := b.admit(other.id, token.Secret, needing(tracker.Read, ""))
		wantCode(t, err, tracker.CodeNotFound)
		use()
		noted(2 * time.Hour)
	})
}

// The number of waiting uses is limited; a use beyond it is dropped.
func TestTokenUses_AreBounded(t *testing.T) {
	t.Parallel()
	e := &Engine{}
	e.tokenUses.writing = true // no writer takes them
	for i := range tokenUsesMost {
		if !e.addUse(tokenName{id: workspaceNumber(i)}, time.Time{}) {
			t.Fatalf("use %d is refused", i)
		}
	}
	if e.addUse(tokenName{id: workspaceNumber(tokenUsesMost)}, time.Time{}) {
		t.Error("one too many waits")
	}
	if !e.addUse(tokenName{id: workspaceNumber(1)}, time.Time{}) {
		t.Error("a token that waits anyway is refused")
	}
}
