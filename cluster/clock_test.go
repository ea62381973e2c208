package cluster

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/testkit"
)

// A node's clock is wrong where most others say so, and at least two.
func TestPeerClocks(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for name, test := range map[string]struct {
		ahead map[string]time.Duration // of this node, by other node
		off   bool
	}{
		"alone":                     {},
		"one other":                 {ahead: map[string]time.Duration{"b": day}},
		"both others":               {ahead: map[string]time.Duration{"b": day, "c": day}, off: true},
		"both others behind":        {ahead: map[string]time.Duration{"b": -day, "c": -day}, off: true},
		"one of two":                {ahead: map[string]time.Duration{"b": day, "c": 0}},
		"in opposite directions":    {ahead: map[string]time.Duration{"b": day, "c": -day}},
		"two of four":               {ahead: map[string]time.Duration{"b": day, "c": day, "d": 0, "e": time.Second}},
		"three of four":             {ahead: map[string]time.Duration{"b": day, "c": day, "d": time.Minute, "e": 0}, off: true},
		"within what is tolerated":  {ahead: map[string]time.Duration{"b": 9 * time.Second, "c": 9 * time.Second}},
		"just beyond the tolerance": {ahead: map[string]time.Duration{"b": 11 * time.Second, "c": 11 * time.Second}, off: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			c := newPeerClocks(func() time.Time { return now }, quiet())
			for node, ahead := range test.ahead {
				c.note(node, now.Add(ahead), now.Add(-100*time.Millisecond), now)
			}
			if got := c.isOff(); got != test.off {
				t.Errorf("off: %v", got)
			}
			// An exchange that took long proves little, and an old one nothing.
			for node, ahead := range test.ahead {
				c.note(node, now.Add(ahead), now.Add(-2*day), now.Add(2*day))
			}
			if c.isOff() {
				t.Error("off by a time that may be right")
			}
			for node, ahead := range test.ahead {
				c.note(node, now.Add(ahead), now, now)
			}
			now = now.Add(clockMemory + time.Second)
			if c.isOff() {
				t.Error("off by what was long ago")
			}
		})
	}
}

// Nodes hear of each other's clocks by their heartbeats.
func TestHeartbeat_Clock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		beats := map[string]*heartbeat{}
		clocks := map[string]*peerClocks{}
		for name, ahead := range map[string]time.Duration{"a": time.Hour, "b": 0, "c": time.Millisecond} {
			clock := func() time.Time { return time.Now().Add(ahead) }
			var others []string
			for _, other := range []string{"a", "b", "c"} {
				if other != name {
					others = append(others, other)
				}
			}
			m := newShardMap(name, 1)
			clocks[name] = newPeerClocks(clock, quiet())
			beats[name] = newHeartbeat(heartbeatConfig{
				Members: func() []string { return others }, Owned: func() []ownedShard { return nil },
				Map: func() *shardMap { return m }, Disconnect: func(string) {}, Clock: clock, Clocks: clocks[name],
				Send: func(ctx context.Context, node string, body []byte) ([]byte, error) {
					return beats[node].answer(ctx, name, body)
				},
			})
		}
		for _, b := range beats {
			b.run()
		}
		time.Sleep(2 * heartbeatInterval)
		for name, c := range clocks {
			if got := c.isOff(); got != (name == "a") {
				t.Errorf("the clock of %s is off: %v", name, got)
			}
		}
		for _, b := range beats {
			b.close()
		}
	})
}

// A node whose clock is wrong does not keep what it is elected for, unless no other voter takes it.
func TestLead_ClockIsOff(t *testing.T) {
	t.Parallel()
	w, _ := threeNodes(t, 1)
	names := []string{"a", "b", "c"}
	owner := w.owner(t, 1, names...)
	wrong := w.nodes[namesBut(names, owner.Name())[0]]
	wrong.clockOff.Store(true)
	if err := owner.group(1).handOver(t.Context(), wrong.Name(), true); err != nil {
		t.Fatal(err)
	}
	w.owner(t, 1, namesBut(names, wrong.Name())...)
	for _, what := range wrong.watcher.all() {
		if strings.HasPrefix(what, "gained 1/") {
			t.Error("it served the shard")
		}
	}
	// All are wrong: one of them serves.
	for _, name := range names {
		w.nodes[name].clockOff.Store(true)
	}
	owner = w.owner(t, 1, names...)
	testkit.Eventually(t, "another voter follows and is told to lead", func() bool {
		return owner.group(1).handOver(t.Context(), namesBut(names, owner.Name())[0], true) == nil
	})
	testkit.Eventually(t, "one of them serves", func() bool {
		for _, name := range names {
			if _, ok := w.nodes[name].Owner(1); ok {
				return true
			}
		}
		return false
	})
}
