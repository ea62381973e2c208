package actors

import (
	"testing"
	"testing/synctest"
	"time"

	"switchyard/actors/tracker"
)

// A claim whose time is up has its answer ready, which is not for a caller that has lost its rights.
func TestLongPoll_AClaimEndsWithoutItsRights(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, func(c *Config) { c.OpenOnboarding = true })
		mine, gone := b.onboard("mine"), b.onboard("gone")
		revoked, kept := b.token(mine, "write"), b.token(mine, "write")
		claim := func(o onboarded, credential string, parked bool) <-chan answer {
			req := b.admitted(o.id, credential, tracker.ClaimSessions)
			req.Deadline = time.Now().Add(40 * time.Second)
			done := make(chan answer, 1)
			in := &tracker.ClaimSessionsIn{Wait: 10, LeaseSeconds: 60}
			go func() {
				if !parked {
					reply, err := b.engine.Do(req, tracker.ClaimSessions, in)
					done <- answer{reply: reply, err: err}
					return
				}
				reply, p, err := b.engine.Begin(req, tracker.ClaimSessions, in)
				for waits := p != nil; waits; {
					woken := make(chan struct{})
					p.Arm(func() { close(woken) })
					<-woken
					reply, waits, err = p.Resume()
				}
				done <- answer{reply: reply, err: err}
			}()
			synctest.Wait()
			return done
		}
		type row struct {
			answer <-chan answer
			want   tracker.Code
		}
		var rows []row
		for _, parked := range []bool{false, true} {
			rows = append(rows,
				row{claim(mine, revoked.Secret, parked), tracker.CodeUnauthorized},
				row{claim(mine, kept.Secret, parked), ""},
				row{claim(gone, gone.credential, parked), tracker.CodeUnauthorized}) // whose token was in it
		}
		b.deleteToken(mine, revoked.ID)
		b.run(gone, gone.credential, tracker.DeleteWorkspace, &tracker.None{}, nil)
		for i, r := range rows {
			a := <-r.answer
			if r.want != "" {
				wantCode(t, a.err, r.want)
			} else if len(a.sessions(t)) != 0 || string(a.reply.Body) != `{"sessions":[]}` {
				t.Errorf("claim %d: %s, %v", i, a.reply.Body, a.err)
			}
		}
	})
}
