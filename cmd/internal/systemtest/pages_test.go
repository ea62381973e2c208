package systemtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"switchyard/internal/testkit"
)

// pagedIssue is an issue that may be walked over, and from when to when it was as
// it was made, on the clock of the test.
type pagedIssue struct {
	id, status, label, word string
	made, touched           int64 // answered; about to be changed or deleted, 0: never
}

// changingWorkspace is a workspace whose issues are created and deleted all the time.
type changingWorkspace struct {
	c         *Client
	member    *Client // who does not see every issue
	workspace string
	clock     atomic.Int64

	mu  sync.Mutex
	all []*pagedIssue
}

func (y *changingWorkspace) create(ctx context.Context, r *rand.Rand) (*pagedIssue, error) {
	one := &pagedIssue{
		status: []string{"todo", "triage", "done"}[r.IntN(3)], label: []string{"red", "green"}[r.IntN(2)], word: []string{"steam", "diesel"}[r.IntN(2)],
	}
	body := object{"title": fmt.Sprintf("A %s engine %d", one.word, r.IntN(1000)), "status": one.status, "labelIds": []string{one.label}}
	var made Issue
	if err := y.c.Decode(ctx, "POST", "/workspaces/"+y.workspace+"/issues", body, http.StatusCreated, &made); err != nil {
		return nil, err
	}
	one.id, one.made = made.ID, y.clock.Add(1)
	y.mu.Lock()
	y.all = append(y.all, one)
	y.mu.Unlock()
	return one, nil
}

// touch takes note that an issue is about to be changed.
func (y *changingWorkspace) touch(one *pagedIssue) {
	y.mu.Lock()
	if one.touched == 0 {
		one.touched = y.clock.Add(1)
	}
	y.mu.Unlock()
}

// write makes, changes and deletes issues until done is closed. Those that it made
// some time ago go, so that there are about as many all the time.
func (y *changingWorkspace) write(ctx context.Context, r *rand.Rand, done <-chan struct{}) error {
	var own []*pagedIssue
	for {
		select {
		case <-done:
			return nil
		default:
		}
		one, err := y.create(ctx, r)
		if err != nil {
			return err
		}
		own = append(own, one)
		one = own[r.IntN(len(own))]
		patch := object{"estimate": r.IntN(100), "priority": "high"} // nothing that a walk looks at
		if r.IntN(2) == 0 {
			y.touch(one)
			patch = object{"status": []string{"todo", "triage", "done"}[r.IntN(3)], "labelIds": []string{[]string{"red", "green"}[r.IntN(2)]}, "title": "Electric"}
		}
		if err := y.c.Decode(ctx, "PATCH", "/workspaces/"+y.workspace+"/issues/"+one.id, patch, http.StatusOK, nil); err != nil {
			return err
		}
		if one = own[r.IntN(len(own))]; r.IntN(3) == 0 { // from now on the member does not see it
			y.touch(one)
			if err := y.c.Decode(ctx, "PUT", "/workspaces/"+y.workspace+"/issues/"+one.id+"/permissions", object{"actorId": "nobody"}, http.StatusOK, nil); err != nil {
				return err
			}
		}
		if len(own) > 40 {
			i := r.IntN(len(own))
			y.touch(own[i])
			if err := y.c.Decode(ctx, "DELETE", "/workspaces/"+y.workspace+"/issues/"+own[i].id, nil, http.StatusNoContent, nil); err != nil {
				return err
			}
			own = append(own[:i], own[i+1:]...)
		}
	}
}

// A walk is a list and which issues are in it.
type walk struct {
	path string
	has  func(*pagedIssue) bool
}

var walks = []walk{
	{"/issues?", func(*pagedIssue) bool { return true }},
	{"/issues?status=todo&", func(p *pagedIssue) bool { return p.status == "todo" }},
	{"/issues?labelId=red&", func(p *pagedIssue) bool { return p.label == "red" }},
	{"/issues?search=stea+eng&", func(p *pagedIssue) bool { return p.word == "steam" }},
	{"/issues?labelId=green&view=completed&isParent=false&", func(p *pagedIssue) bool { return p.label == "green" && p.status == "done" }},
	{"/triage?", func(p *pagedIssue) bool { return p.status == "triage" }},
}

// take walks a list once. Every issue that was there and the same all the time must
// be met once, none may be twice, and the newest come first.
func (y *changingWorkspace) take(ctx context.Context, c *Client, w walk, limit int) error {
	began := y.clock.Add(1)
	met := map[string]bool{}
	last := "~"
	for cursor, more := "", true; more; {
		var page struct {
			Issues     []Issue
			NextCursor string
		}
		path := fmt.Sprintf("/workspaces/%s%slimit=%d%s", y.workspace, w.path, limit, cursor)
		if err := c.Decode(ctx, "GET", path, nil, http.StatusOK, &page); err != nil {
			return err
		}
		if len(page.Issues) > limit {
			return fmt.Errorf("%s: %d issues", path, len(page.Issues))
		}
		for _, one := range page.Issues {
			if met[one.ID] || one.ID >= last {
				return fmt.Errorf("%s: issue %s behind %s, met before: %t", path, one.ID, last, met[one.ID])
			}
			met[one.ID], last = true, one.ID
		}
		cursor, more = "&cursor="+url.QueryEscape(page.NextCursor), page.NextCursor != ""
	}
	ended := y.clock.Add(1)
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, one := range y.all {
		throughout := one.made < began && (one.touched == 0 || one.touched > ended)
		if throughout && w.has(one) != met[one.id] {
			return fmt.Errorf("%slimit=%d: issue %s, %+v, was met: %t", w.path, limit, one.id, *one, met[one.id])
		}
	}
	return nil
}

// TestPages_WalksUnderWrites walks lists by pages of several sizes while issues are
// made, changed and deleted (Decision 7).
func TestPages_WalksUnderWrites(t *testing.T) {
	t.Parallel()
	n := inProcess(t, nil)
	c := NewClient("http://"+n.HTTPAddr(), "", 16)
	home, err := c.Onboard(t.Context(), "Yard", "yard")
	if err != nil {
		t.Fatal(err)
	}
	c.Token = home.Token.Token
	y := &changingWorkspace{c: c, workspace: home.Workspace.ID, member: NewClient(c.URL, "", 16)}
	var member struct{ UserID, Token string }
	if err := c.Decode(t.Context(), "POST", "/workspaces/"+y.workspace+"/members", object{"name": "Member", "role": "member"}, http.StatusCreated, &member); err != nil {
		t.Fatal(err)
	}
	if err := c.Decode(t.Context(), "POST", "/workspaces/"+y.workspace+"/tokens", object{"name": "Member", "userId": member.UserID}, http.StatusCreated, &member); err != nil {
		t.Fatal(err)
	}
	y.member.Token = member.Token
	s := testkit.Seed(t)
	r := rand.New(rand.NewPCG(s, 0))
	for range 250 {
		if _, err := y.create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	var writers, walkers sync.WaitGroup
	for i := range 3 {
		writers.Go(func() {
			if err := y.write(t.Context(), rand.New(rand.NewPCG(s, uint64(i+1))), done); err != nil {
				t.Error(err)
			}
		})
	}
	for _, w := range walks {
		for limit, rounds := range map[int]int{1: 2, 7: 10, 100: 40} {
			walkers.Go(func() {
				for round := range rounds {
					c := []*Client{y.c, y.member}[round%2]
					if err := y.take(t.Context(), c, w, limit); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	walkers.Wait()
	close(done)
	writers.Wait()
	y.mu.Lock()
	t.Logf("%d issues were made", len(y.all))
	y.mu.Unlock()
	y.countsAgree(t)
}

// countsAgree compares the counts that are kept beside the issues with the issues.
func (y *changingWorkspace) countsAgree(t *testing.T) {
	t.Helper()
	all, err := y.c.Walk(t.Context(), y.workspace, "")
	if err != nil {
		t.Fatal(err)
	}
	counted, estimates := map[string]int{}, 0
	for _, one := range all {
		counted[one.Status]++
		if one.Estimate != nil {
			estimates += *one.Estimate
		}
	}
	var told struct {
		Groups []struct {
			Group                string
			Count, EstimateTotal int
		}
	}
	if err := y.c.Decode(t.Context(), "GET", "/workspaces/"+y.workspace+"/issue-analytics", nil, http.StatusOK, &told); err != nil {
		t.Fatal(err)
	}
	for _, g := range told.Groups {
		if counted[g.Group] != g.Count {
			t.Errorf("%d issues are %s, and %d are counted", counted[g.Group], g.Group, g.Count)
		}
		delete(counted, g.Group)
		estimates -= g.EstimateTotal
	}
	if len(counted) > 0 || estimates != 0 {
		t.Errorf("not counted: %v, estimates of %d", counted, estimates)
	}
}
