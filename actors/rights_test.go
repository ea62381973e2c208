package actors

import (
	"sync"
	"testing"
	"testing/synctest"

	"switchyard/actors/tracker"
	"switchyard/storage"
)

// A command that waits for its turn behind a change of its caller's rights does not act by
// the rights from before.
func TestCommand_RightsEndWhileItWaits(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		// sameBatch: the command reaches the actor while the change is in the open batch, not
		// while that is being replicated.
		sameBatch bool
	}{{"for the commit of the change", false}, {"in the batch of the change", true}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := setup(t, func(c *Config) { c.OpenOnboarding = true })
				mine := b.onboard("mine")
				made, kept := b.token(mine, "write"), b.token(mine, "write")
				begun := b.local.proposed.Load()
				var all sync.WaitGroup
				var leave func()
				if row.sameBatch {
					entered, left := make(chan struct{}), make(chan struct{})
					all.Go(func() {
						if _, err := b.do(mine.id, countUp, &countIn{Entered: entered, Leave: left}); err != nil {
							t.Error(err)
						}
					})
					<-entered
					leave = func() { close(left) }
				} else {
					b.local.setFate(func(n int, _ storage.Shard) fate {
						if n == int(begun)+1 {
							return waits
						}
						return applies
					})
					leave = b.local.release
				}
				deletion := b.admitted(mine.id, mine.credential, tracker.DeleteToken)
				revoked, unchanged := b.admitted(mine.id, made.Secret, tracker.CreateIssue), b.admitted(mine.id, kept.Secret, tracker.CreateIssue)
				all.Go(func() {
					if _, err := b.engine.Do(deletion, tracker.DeleteToken, &tracker.DeleteTokenIn{ID: made.ID}); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
				all.Go(func() {
					_, err := b.engine.Do(revoked, tracker.CreateIssue, &tracker.CreateIssueIn{Title: "By whom?"})
					wantCode(t, err, tracker.CodeUnauthorized)
				})
				all.Go(func() {
					if _, err := b.engine.Do(unchanged, tracker.CreateIssue, &tracker.CreateIssueIn{Title: "Still allowed"}); err != nil {
						t.Errorf("with rights that did not change: %v", err)
					}
				})
				synctest.Wait()
				leave()
				all.Wait()
			})
		})
	}
}
