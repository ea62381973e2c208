package cluster

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A shard's time without an owner begins when the last owner is lost. Reports of unreachable
// owners don't end it.
func TestShardMap_UnownedSince(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShardMap("self", 1)
		began := time.Now()
		pass := func() { time.Sleep(time.Second) } // of the bubble
		want := func(what string, since time.Time) {
			t.Helper()
			if got := m.unowned(1); !got.Equal(since) {
				t.Errorf("%s: without an owner since %s, want %s", what, got, since)
			}
		}
		pass()
		want("from the start", began)
		m.update("b", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{1, 5}}})
		pass()
		want("an owner that does not answer", began)
		m.setReachable("b", true)
		want("it answers", time.Time{})
		pass()
		m.setReachable("b", false)
		lost := time.Now()
		want("it stopped answering", lost)
		pass()
		m.update("c", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{1, 6}}})
		want("its successor does not answer", lost)
		pass()
		m.gained(1, 7)
		want("this node", time.Time{})
		pass()
		m.lost(1, 7)
		want("lost here", time.Now())
		if !m.unowned(9).IsZero() {
			t.Error("a shard that is not there has lost its owner")
		}
	})
}

// A step for a shard without an owner waits during the first seconds after the loss, and fails at
// once later.
func TestNode_CallWithoutAnOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShardMap("self", 1)
		n := &Node{peering: &peering{}, id: identity{Node: "self"}}
		n.owners.Store(m)
		for _, wait := range []time.Duration{OwnerWait, 0, 0} {
			began := time.Now()
			_, err := n.Call(t.Context(), 1, nil)
			var told *Error
			if !errors.As(err, &told) || !told.NotApplied() {
				t.Errorf("%v", err)
			}
			if took := time.Since(began); took != wait {
				t.Errorf("refused after %s, want %s", took, wait)
			}
		}
		m.gained(1, 3)
		m.lost(1, 3)
		began := time.Now()
		time.AfterFunc(time.Second, func() { m.gained(1, 4) })
		if _, err := n.Call(t.Context(), 1, nil); !errors.Is(err, errNotOwner) || time.Since(began) != time.Second {
			t.Errorf("%v after %s: this node is the owner since a second later", err, time.Since(began))
		}
	})
}
