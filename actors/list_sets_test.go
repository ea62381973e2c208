package actors

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
	"switchyard/storage"
)

// listed is a workspace with issues whose lists waste work: todo issues are ann's and
// others gus's.
type listed struct {
	*testEngine
	home onboarded
	ids  []string
}

const listedIssues = 300

func newListed(t testing.TB, adjust ...func(*Config)) *listed {
	t.Helper()
	l := &listed{testEngine: setup(t, append(adjust, func(c *Config) { c.OpenOnboarding = true })...)}
	l.home = l.onboard("mine")
	for i := range listedIssues {
		l.ids = append(l.ids, l.create(fmt.Sprint(i), i%2 == 0))
	}
	return l
}

func (l *listed) fields(todo bool) tracker.IssueFields {
	if todo {
		return tracker.IssueFields{Status: tracker.Some(tracker.StatusTodo), AssigneeID: tracker.Some("ann")}
	}
	return tracker.IssueFields{Status: tracker.Some(tracker.StatusBacklog), AssigneeID: tracker.Some("gus")}
}

func (l *listed) create(title string, todo bool) string {
	l.t.Helper()
	reply, err := l.engine.Do(l.admitted(l.home.id, l.home.credential, tracker.CreateIssue), tracker.CreateIssue, &tracker.CreateIssueIn{Title: title, IssueFields: l.fields(todo)})
	if err != nil {
		l.t.Fatal(err)
	}
	var made struct{ ID string }
	if err := json.Unmarshal(reply.Body, &made); err != nil {
		l.t.Fatal(err)
	}
	return made.ID
}

func (l *listed) patch(id string, todo bool) error {
	in := &tracker.PatchIssueIn{ID: id, IssuePatch: tracker.IssuePatch{IssueFields: l.fields(todo)}}
	_, err := l.engine.Do(l.admitted(l.home.id, l.home.credential, tracker.PatchIssue), tracker.PatchIssue, in)
	return err
}

// list gives the number of issues with a status and an assignee, in pages of 100.
func (l *listed) list(status tracker.IssueStatus, assignee string) (n int, body string) {
	l.t.Helper()
	in := tracker.ListIssuesIn{Limit: 100, IssueFilter: tracker.IssueFilter{Status: tracker.Some(status), AssigneeID: tracker.Some(assignee)}}
	for {
		reply, err := l.engine.Do(l.admitted(l.home.id, l.home.credential, tracker.ListIssues), tracker.ListIssues, &in)
		if err != nil {
			l.t.Error(err)
			return 0, ""
		}
		var page struct {
			Issues     []struct{ ID string }
			NextCursor string
		}
		if err := json.Unmarshal(reply.Body, &page); err != nil {
			l.t.Fatal(err)
		}
		n += len(page.Issues)
		body += string(reply.Body)
		if page.NextCursor == "" {
			return n, body
		}
		in.Cursor = tracker.Some(page.NextCursor)
	}
}

// untilSets lists what is in vain until the workspace has sets.
func (l *listed) untilSets() {
	l.t.Helper()
	before := l.engine.Stats().Filtered
	filtered := func() bool {
		if n, _ := l.list(tracker.StatusTodo, "gus"); n != 0 {
			l.t.Fatalf("%d issues of nobody", n)
		}
		return l.engine.Stats().Filtered > before
	}
	for range wasteWorth/listedIssues + 1 { // each looks at all issues; sets are built after so many
		filtered()
	}
	testkit.Eventually(l.t, "the sets are there", filtered)
}

func TestListSets_AnswerLikeIndexes(t *testing.T) {
	t.Parallel()
	l := newListed(t)
	n, before := l.list(tracker.StatusTodo, "ann")
	if n != listedIssues/2 {
		t.Fatalf("%d issues by indexes", n)
	}
	l.untilSets()
	if _, after := l.list(tracker.StatusTodo, "ann"); after != before {
		t.Error("sets answer otherwise than indexes")
	}
	if s := l.engine.Stats(); s.ListSets != 1 || s.ListSetsMem <= 0 || s.SetsBuilds["built"] != 1 {
		t.Errorf("stats %+v", s)
	}
}

// A change is in every list that begins after its answer, and no list sees half of it.
func TestListSets_AreExactBesideChanges(t *testing.T) {
	t.Parallel()
	l := newListed(t)
	l.untilSets()
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for w := range 3 {
		writers.Go(func() {
			for i := range 60 {
				id := l.ids[3*i%listedIssues/3*3+w]
				if err := l.patch(id, i%2 == 0); err != nil {
					t.Error(err)
					return
				}
				status, who := tracker.StatusBacklog, "gus"
				if i%2 == 0 {
					status, who = tracker.StatusTodo, "ann"
				}
				if _, body := l.list(status, who); !strings.Contains(body, id) {
					t.Error("a list lacks a change that was answered")
					return
				}
			}
		})
	}
	readers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if n, _ := l.list(tracker.StatusTodo, "gus"); n != 0 {
				t.Errorf("%d issues are seen half changed", n)
				return
			}
		}
	})
	writers.Wait()
	close(done)
	readers.Wait()
	if s := l.engine.Stats(); s.SetsBuilds["built"] != 1 {
		t.Errorf("the sets were built %d times", s.SetsBuilds["built"])
	}
}

// Notes of a batch that is not applied, or may not be, must never count.
func TestListSets_AreDroppedWithABatch(t *testing.T) {
	t.Parallel()
	for name, meets := range map[string]fate{"failed": fails, "lost": failsLost, "failed but applied": failsApplied, "late": failsLate} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newListed(t)
			l.untilSets()
			var troubled atomic.Bool
			troubled.Store(true)
			l.local.setFate(func(int, storage.Shard) fate {
				if troubled.Load() {
					return meets
				}
				return applies
			})
			if err := l.patch(l.ids[1], true); err == nil {
				t.Fatal("the change went well")
			}
			if n := l.engine.Stats().ListSets; n != 0 {
				t.Errorf("%d workspaces have sets", n)
			}
			troubled.Store(false)
			if err := l.patch(l.ids[3], true); err != nil {
				t.Fatal(err)
			}
			n, byIndexes := l.list(tracker.StatusTodo, "ann")
			if n <= listedIssues/2 {
				t.Errorf("%d issues", n)
			}
			l.untilSets()
			if _, bySets := l.list(tracker.StatusTodo, "ann"); bySets != byIndexes {
				t.Error("sets answer otherwise than indexes")
			}
		})
	}
}

// A change that is refused since the shard's voters have no room is no reason to build the sets anew.
func TestListSets_StayWhileTheVotersHaveNoRoom(t *testing.T) {
	t.Parallel()
	l := newListed(t)
	_, before := l.list(tracker.StatusTodo, "ann")
	l.untilSets()
	l.local.full.Store(true)
	if err := l.patch(l.ids[1], true); outcome(err) != "not_applied" {
		t.Errorf("the change ended with %v", err)
	}
	l.local.full.Store(false)
	if _, after := l.list(tracker.StatusTodo, "ann"); after != before {
		t.Error("the list has changed")
	}
	if err := l.patch(l.ids[3], true); err != nil {
		t.Fatal(err)
	}
	if n, _ := l.list(tracker.StatusTodo, "ann"); n != listedIssues/2+1 {
		t.Errorf("%d issues after a change", n)
	}
	if s := l.engine.Stats(); s.ListSets != 1 || s.SetsBuilds["built"] != 1 || s.Refused["not_replicated"] != 1 {
		t.Errorf("stats %+v", s)
	}
}

func TestListSets_EndWithTheirShard(t *testing.T) {
	t.Parallel()
	l := newListed(t)
	l.untilSets()
	l.local.lose(l.engine, storage.ShardOf(l.home.id, testShards))
	if s := l.engine.Stats(); s.ListSets != 0 || s.ListSetsMem != 0 {
		t.Errorf("%d sets of %d bytes are left", s.ListSets, s.ListSetsMem)
	}
	l.local.gain(t, l.engine)
	l.untilSets()
}

func TestListSets_AreForgottenWithoutLists(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newListed(t)
		for l.engine.Stats().Filtered == 0 {
			l.list(tracker.StatusTodo, "gus")
			synctest.Wait()
		}
		pass(3 * l.engine.cfg.Limits.Idle)
		synctest.Wait()
		if s := l.engine.Stats(); s.ListSets != 0 || s.ListSetsMem != 0 || len(l.engine.lists.of) != 0 {
			t.Errorf("%d sets of %d bytes are left", s.ListSets, s.ListSetsMem)
		}
	})
}

// Lists are right, and sets not tried again and again, where there is no memory for them.
func TestListSets_KeepToTheirBudget(t *testing.T) {
	t.Parallel()
	l := newListed(t, func(c *Config) { c.ListBytes = 1000 })
	testkit.Eventually(t, "the sets outgrow their budget", func() bool {
		if n, _ := l.list(tracker.StatusTodo, "gus"); n != 0 {
			t.Fatalf("%d issues of nobody", n)
		}
		return l.engine.Stats().SetsBuilds["no_room"] > 0
	})
	for range 200 {
		if n, _ := l.list(tracker.StatusTodo, "ann"); n != listedIssues/2 {
			t.Fatalf("%d issues", n)
		}
	}
	if s := l.engine.Stats(); s.SetsBuilds["no_room"] != 1 || s.ListSets != 0 || s.ListSetsMem != 0 || s.Filtered != 0 {
		t.Errorf("stats %+v", s)
	}
}
