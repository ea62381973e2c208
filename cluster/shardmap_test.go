package cluster

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestShardMap_Rules(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		do   func(m *shardMap)
		node string
	}{
		{"nobody said anything", func(*shardMap) {}, ""},
		{"this node", func(m *shardMap) { m.gained(1, 5) }, "self"},
		{"this node gave up", func(m *shardMap) { m.gained(1, 5); m.lost(1, 5) }, ""},
		{"this node gave up what another has by now", func(m *shardMap) {
			m.setReachable("b", true)
			m.gained(1, 5)
			m.update("b", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{1, 6}}})
			m.lost(1, 5)
		}, "b"},
		{"another one", func(m *shardMap) {
			m.setReachable("b", true)
			m.update("b", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{1, 5}}})
		}, "b"},
		{"another one that does not answer", func(m *shardMap) { m.update("b", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{1, 5}}}) }, ""},
		{"another one that answers again", func(m *shardMap) {
			m.update("b", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{1, 5}}})
			m.setReachable("b", true)
			m.setReachable("b", false)
			m.setReachable("b", true)
		}, "b"},
		{"the newer of two", func(m *shardMap) {
			m.setReachable("b", true)
			m.setReachable("c", true)
			m.update("b", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{1, 7}}})
			m.update("c", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{1, 6}}})
		}, "b"},
		{"the newer of two does not answer", func(m *shardMap) {
			m.setReachable("c", true)
			m.update("b", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{1, 7}}})
			m.update("c", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{1, 6}}})
		}, ""},
		{"a word that came late", func(m *shardMap) {
			m.setReachable("b", true)
			m.update("b", &heartbeatMessage{Seq: 2})
			m.update("b", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{1, 5}}})
		}, ""},
		{"given up in a later word", func(m *shardMap) {
			m.setReachable("b", true)
			m.update("b", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{1, 5}}})
			m.update("b", &heartbeatMessage{Seq: 2, Owned: []ownedShard{{0, 5}}})
		}, ""},
		{"given up and taken back in the same epoch", func(m *shardMap) {
			m.setReachable("b", true)
			m.update("b", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{1, 5}}})
			m.update("b", &heartbeatMessage{Seq: 2})
			m.update("b", &heartbeatMessage{Seq: 3, Owned: []ownedShard{{1, 5}}})
		}, "b"},
		{"no member any more", func(m *shardMap) {
			m.setReachable("b", true)
			m.update("b", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{1, 5}}})
			m.removeNode("b")
		}, ""},
		{"a shard that is not there", func(m *shardMap) {
			m.setReachable("b", true)
			m.update("b", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{9, 5}}})
		}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			m := newShardMap("self", 2)
			_, _, before := m.owner(1)
			row.do(m)
			node, _, _ := m.owner(1)
			if node != row.node {
				t.Errorf("owner %q, want %q", node, row.node)
			}
			select {
			case <-before:
			default:
				if node != "" {
					t.Error("a change was not told")
				}
			}
		})
	}
}

func TestShardMap_Known(t *testing.T) {
	t.Parallel()
	m := newShardMap("self", 1)
	all, changed := m.allOwned()
	if all {
		t.Error("a new map knows owners")
	}
	m.gained(0, 1)
	<-changed
	m.gained(1, 1)
	if all, _ := m.allOwned(); !all {
		t.Error("an owner is not known")
	}
	if node, _, changed := m.owner(7); node != "" || changed != nil {
		t.Error("a shard that is not there has an owner")
	}
}

// A node that stops answering is unreachable within two seconds, and requests that wait for
// it end. Its first answer makes it reachable again.
func TestHeartbeat_FollowsWhoAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShardMap("self", 1)
		var mu sync.Mutex
		var cut []string
		silent := false
		seq := uint64(0)
		p := newHeartbeat(heartbeatConfig{
			Members:    func() []string { return []string{"b"} },
			Owned:      func() []ownedShard { return []ownedShard{{1, 3}} },
			Map:        func() *shardMap { return m },
			Clock:      time.Now,
			Clocks:     newPeerClocks(time.Now, quiet()),
			Disconnect: func(node string) { mu.Lock(); cut = append(cut, node); mu.Unlock() },
			Send: func(ctx context.Context, _ string, body []byte) ([]byte, error) {
				var asked heartbeatMessage
				if err := json.Unmarshal(body, &asked); err != nil || len(asked.Owned) != 1 || asked.Owned[0] != (ownedShard{1, 3}) {
					t.Errorf("asked with %s: %v", body, err)
				}
				mu.Lock()
				quiet := silent
				seq++
				word := heartbeatMessage{Seq: seq, Owned: []ownedShard{{0, 9}}}
				mu.Unlock()
				if quiet {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return json.Marshal(word)
			},
		})
		p.run()
		defer p.close()
		synctest.Wait()
		if node, epoch, _ := m.owner(0); node != "b" || epoch != 9 {
			t.Fatalf("owner %q in %d", node, epoch)
		}
		mu.Lock()
		silent = true
		mu.Unlock()
		_, _, changed := m.owner(0)
		began := time.Now()
		<-changed
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("unreachable after %s", took)
		}
		synctest.Wait()
		mu.Lock()
		if len(cut) != 1 || cut[0] != "b" {
			t.Errorf("cut off: %v", cut)
		}
		silent = false
		mu.Unlock()
		_, _, changed = m.owner(0)
		<-changed
		if node, _, _ := m.owner(0); node != "b" {
			t.Errorf("owner %q after it answers again", node)
		}
	})
}

// A node that is about to stop gets no further requests, although it answers.
func TestHeartbeat_LeavingNode(t *testing.T) {
	t.Parallel()
	m := newShardMap("self", 1)
	p := newHeartbeat(heartbeatConfig{
		Members: func() []string { return nil }, Owned: func() []ownedShard { return nil },
		Map: func() *shardMap { return m }, Disconnect: func(string) {}, Clock: time.Now, Clocks: newPeerClocks(time.Now, quiet()),
	})
	m.setReachable("b", true)
	m.update("b", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{1, 5}}})
	if _, err := p.answer(t.Context(), "b", []byte(`{"seq":2,"owned":[[1,5]],"leaving":true}`)); err != nil {
		t.Fatal(err)
	}
	if node, _, _ := m.owner(1); node != "" || m.isReachable("b") || !m.isLeaving("b") {
		t.Errorf("owner %q after it said that it leaves; leaving: %v", node, m.isLeaving("b"))
	}
	if _, err := p.answer(t.Context(), "b", []byte(`{"seq":1,"owned":[[1,5]]}`)); err != nil || !m.isLeaving("b") {
		t.Errorf("it stays after an earlier message came late: %v", err)
	}
	if m.setReachable("b", true); m.isReachable("b") {
		t.Error("it gets requests after it has answered an earlier message")
	}
	if _, err := p.answer(t.Context(), "b", []byte(`{"seq":3}`)); err != nil || m.isLeaving("b") {
		t.Errorf("it leaves after it was started again: %v", err)
	}
	p.announceLeaving()
	word, err := p.answer(t.Context(), "c", []byte(`{"seq":1}`))
	if err != nil || !strings.Contains(string(word), `"leaving":true`) {
		t.Errorf("%s, %v", word, err)
	}
	if _, err := p.answer(t.Context(), "c", []byte("garbage")); err == nil {
		t.Error("garbage was taken")
	}
}

// The clock of a node may have been set back while it was down: its messages count from its first one on,
// and late ones of the process before don't.
func TestHeartbeat_RestartWithAnEarlierClock(t *testing.T) {
	t.Parallel()
	m := newShardMap("self", 1)
	p := newHeartbeat(heartbeatConfig{
		Owned: func() []ownedShard { return nil }, Map: func() *shardMap { return m }, Clock: time.Now,
	})
	m.setReachable("b", true)
	for _, step := range []struct {
		name, message string
		epoch         uint64
	}{
		{"before", `{"seq":1000,"owned":[[1,5]],"generation":{"instance":"i","count":3,"start":"x"}}`, 5},
		{"after the restart", `{"seq":10,"owned":[[1,6]],"generation":{"instance":"i","count":4,"start":"y"}}`, 6},
		{"late, of the process before", `{"seq":1001,"leaving":true,"generation":{"instance":"i","count":3,"start":"x"}}`, 6},
		{"late, of this process", `{"seq":9,"generation":{"instance":"i","count":4,"start":"y"}}`, 6},
		{"counted on", `{"seq":11,"owned":[[1,7]],"generation":{"instance":"i","count":5,"start":"y"}}`, 7},
		{"another directory", `{"seq":1,"owned":[[1,8]],"generation":{"instance":"j","count":1,"start":"z"}}`, 8},
		{"a version without generations", `{"seq":2,"owned":[[1,9]]}`, 9},
	} {
		if _, err := p.answer(t.Context(), "b", []byte(step.message)); err != nil {
			t.Fatal(err)
		}
		if node, epoch, _ := m.owner(1); node != "b" || epoch != step.epoch || m.isLeaving("b") {
			t.Errorf("%s: owner %q in epoch %d, not b in %d; it leaves: %v", step.name, node, epoch, step.epoch, m.isLeaving("b"))
		}
	}
}
