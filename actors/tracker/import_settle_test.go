package tracker

import (
	"testing"
	"time"
)

// The wait of a session may be over before its line comes: an admin has ended the other session, or closed
// the issue. The session does not wait on, and a file of many such sessions is gone through in steps.
func TestImport_EndsWaitsForWhatIsOverMeanwhile(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		wait func(f *agentFixture, id SessionID, other Issue, before SessionID)
		end  func(to *agentFixture, other Issue, before SessionID) error
		want SessionStatus
	}{
		"queued after a session": {
			end:  cancelBefore,
			want: SessionCanceled,
		},
		"waitFor a session": {
			wait: func(f *agentFixture, id SessionID, _ Issue, before SessionID) {
				f.waitFor(id, WaitCondition{Session: string(before)})
			},
			end:  cancelBefore,
			want: SessionCreated,
		},
		"waitFor an issue": {
			wait: func(f *agentFixture, id SessionID, other Issue, _ SessionID) {
				f.waitFor(id, WaitCondition{Issue: string(other.ID)})
			},
			end: func(to *agentFixture, other Issue, _ SessionID) error {
				_, err := to.try(to.admin, PatchIssue, patchIn(other.ID, "", IssuePatch{IssueFields: IssueFields{Status: Some(StatusDone)}}))
				return err
			},
			want: SessionCreated,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const many = maxUnblockedSessions + 2
			f := newAgentFixture(t)
			other := f.work(PriorityLow)
			before := f.dispatch(other.ID, DispatchIssueIn{AgentID: Some("before")}).ID
			var waiting []SessionID
			for range many {
				var options SessionOptions
				if row.wait == nil {
					options.QueuedAfter = queuedBehind(string(before))
				}
				id := f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{AgentID: Some("a"), SessionOptions: options}).ID
				if row.wait != nil {
					row.wait(f, id, other, before)
				}
				waiting = append(waiting, id)
			}
			over := false
			to := f.copiedIn(f.exportedLines(), 1, 0, func(to *agentFixture) {
				if !over {
					over = row.end(to, other, before) == nil
				}
			})
			if !over {
				t.Fatal("the import has ended before")
			}
			to.pass(time.Minute)
			to.verify()
			for _, id := range waiting {
				if got := to.session(id).Status; got != row.want {
					t.Errorf("session %s is %s, want %s", id, got, row.want)
				}
			}
		})
	}
}

func cancelBefore(to *agentFixture, _ Issue, before SessionID) error {
	_, err := to.try(to.admin, CancelSession, &CancelSessionIn{ID: before})
	return err
}

// waitFor claims the session of agent a that comes next, and has it wait.
func (f *agentFixture) waitFor(id SessionID, c WaitCondition) {
	f.Helper()
	claimed := f.claim(ClaimSessionsIn{AgentID: Some("a"), LeaseSeconds: 600, Limit: 1})
	if len(claimed) != 1 || claimed[0].Session.ID != id {
		f.Fatalf("claimed %d sessions instead of %s", len(claimed), id)
	}
	f.run(claimed[0].LaneToken, ReportSession, &ReportSessionIn{ID: id, Status: Some(SessionWaiting), WaitFor: Some(anyOf(c))})
}
