package httpapi

import (
	"strings"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/internal/testkit"
)

func TestSlow_SaysWhereTheTimeWent(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	log := func(c *Config) { c.Slow = time.Nanosecond }
	entry, owner := a.join(t, "a", log), a.join(t, "b", log)
	owner.engine.set(func(req *tracker.Request, _ *tracker.Op, _ any) (tracker.Reply, error) {
		if !req.Spent.On {
			t.Error("the time is not measured")
		}
		req.Spent.Add(tracker.Spent{Queue: time.Second, Engine: 2 * time.Second, Commit: 3 * time.Second})
		return tracker.Reply{Outcome: tracker.Created, Body: []byte(`{}`)}, nil
	})
	entry.do(t, "POST", things, thingBody, "X-Request-Id: r-1")
	testkit.Eventually(t, "both nodes to log", func() bool {
		return strings.Contains(entry.log.String(), "r-1") && strings.Contains(owner.log.String(), "r-1")
	})
	for _, want := range []string{"slow operation", `route="POST /w/{organizationId}/things"`, "status=201", "queue=1s", "engine=2s", "commit=3s", "forward=0s", "workspace=" + workspaceID} {
		if !strings.Contains(owner.log.String(), want) {
			t.Errorf("the owner's log lacks %q: %s", want, owner.log)
		}
	}
	if line := entry.log.String(); strings.Contains(line, "forward=0s") || !strings.Contains(line, "queue=0s") || strings.Contains(line, token) {
		t.Errorf("the edge logged %s", line)
	}
}

func TestSlow_IsBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.Slow = time.Nanosecond })
	stopped := time.Now().Add(time.Hour)
	b.now = func() time.Time { return stopped } // no more lines come free
	for range slowBurst + 5 {
		b.do(t, "GET", things, "")
	}
	testkit.Eventually(t, "the last line", func() bool { return strings.Count(b.log.String(), "slow operation") == slowBurst })
	if left := <-b.slow.left; left == 0 {
		t.Error("no line was left out")
	}
}

func TestSlow_LeavesOutTheQuickAndThoseThatWait(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.Slow = time.Hour })
	b.do(t, "GET", things, "")
	waiting := setup(t, func(c *Config) { c.Slow = time.Nanosecond })
	sleepers := sleepy(waiting, 0)
	done := make(chan struct{})
	go func() {
		defer close(done)
		waiting.raw(t, 1, takeRequest("one"))
	}()
	(<-(<-sleepers).armed)()
	<-done
	for _, log := range []*logs{b.log, waiting.log} {
		if log.String() != "" {
			t.Errorf("logged %s", log)
		}
	}
}
