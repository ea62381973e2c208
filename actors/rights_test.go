package actors

import (
	"fmt"
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

// Commands that change rights do not make each other, nor commands among them, fail, however
// many wait: none is sent anew for each change before it.
func TestCommand_ManyChangeRights(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, func(c *Config) { c.OpenOnboarding = true })
		mine := b.onboard("mine")
		writer := b.token(mine, "write")
		lane := b.lane(mine, mine.credential)
		session, err := tracker.ParseCredential(lane)
		if err != nil {
			t.Fatal(err)
		}
		b.local.setFate(func(int, storage.Shard) fate { return waits })
		const changes = 5 * maxAdmissions
		var all sync.WaitGroup
		send := func(credential string, op *tracker.Op, in any) {
			req := b.admitted(mine.id, credential, op)
			all.Go(func() {
				if _, err := b.engine.Do(req, op, in); err != nil {
					t.Errorf("%s: %v", op.Name, err)
				}
			})
		}
		for i := range changes {
			send(mine.credential, tracker.CreateTeam, &tracker.CreateTeamIn{Name: "Team", Key: fmt.Sprint("T", i)})
		}
		send(writer.Secret, tracker.CreateIssue, &tracker.CreateIssueIn{Title: "Among them"})
		send(lane, tracker.Heartbeat, &tracker.HeartbeatIn{ID: tracker.SessionID(session.ID.String())})
		for range changes + 2 { // a change of rights has a batch of its own
			synctest.Wait()
			b.local.release()
		}
		synctest.Wait()
		b.local.setFate(nil)
		b.local.release()
		all.Wait()
	})
}
