package tracker

import (
	"slices"
	"strings"
	"testing"
)

// The memory of a poll's answer is counted while the log is read. A poll for which there is none reads no more of it.
func TestPollSession_IsChargedWhileItReads(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{})
	s := f.claimOne()
	message := strings.Repeat("x", 32_000)
	for range 100 {
		f.run(s.LaneToken, LogActivities, &LogActivitiesIn{ID: s.Session.ID, ActivityFields: ActivityFields{Message: Some(message)}})
	}
	poll := func(most int) (body, charged int, err error) {
		v := NewView(f.view(f.home.Workspace.ID.raw()), &System, f.now, nil)
		v.ChargeWith(func(body []byte) error {
			charged = max(charged, cap(body))
			if cap(body) > most {
				return NotApplied("full")
			}
			return nil
		})
		reply, err := PollSession.RunQuery(v, &PollSessionIn{ID: s.Session.ID})
		return len(reply.Body), charged, err
	}
	body, charged, err := poll(100 * len(message) * 2)
	if err != nil || body < 100*len(message) || charged < body {
		t.Errorf("%d bytes are charged for an answer of %d: %v", charged, body, err)
	}
	const most = 300 << 10
	if _, charged, err = poll(most); charged > 2*most {
		t.Errorf("%d bytes were read although %d are free", charged, most)
	}
	wantCode(t, err, CodeUnavailable)
}

// The answer to a poll of a session that is as it was takes memory once, of the size that it needs.
func TestPollSession_TakesMemoryOnce(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	for size := range 42 { // an answer may just fit into the memory that Go gives for its size
		f.dispatch(f.work(PriorityLow).ID, DispatchIssueIn{Branch: Some(strings.Repeat("x", 6*size+1))})
		s := f.claimOne()
		v := NewView(f.view(f.home.Workspace.ID.raw()), &System, f.now, nil)
		reply, err := PollSession.RunQuery(v, &PollSessionIn{ID: s.Session.ID})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := cap(reply.Body), cap(slices.Grow([]byte(nil), len(reply.Body))); got != want {
			t.Errorf("a branch of %d bytes: memory of %d bytes for an answer of %d, want %d", 6*size+1, got, len(reply.Body), want)
		}
	}
}
