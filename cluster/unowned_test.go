package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
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
		m.setSilent("b", time.Second)
		lost := time.Now().Add(-time.Second)
		want("it stopped answering a second ago", lost)
		pass()
		m.update("c", &heartbeatMessage{Seq: 1, Owned: []ownedShard{{1, 6}}})
		want("its successor does not answer", lost)
		pass()
		m.gained(1, 7)
		want("this node", time.Time{})
		pass()
		m.lost(1, 7)
		want("lost here", time.Now())
		m.setReachable("c", true)
		m.update("c", &heartbeatMessage{Seq: 2, Owned: []ownedShard{{1, 8}}})
		pass()
		m.update("c", &heartbeatMessage{Seq: 3, Owned: []ownedShard{{1, 8}}, Leaving: true})
		want("it is about to stop", time.Now())
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
		for _, wait := range []time.Duration{ownerWait, 0, 0} {
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

// Requests for a silent owner are refused within four seconds of its last sign (Decision 55), also
// those that came before the silence was noticed. A node that was itself paused has heard nothing for
// as long, and gives the others the time to answer.
func TestNode_OwnerDue(t *testing.T) {
	t.Parallel()
	if most := electionTimeout + ownerWait; most > 3900*time.Millisecond {
		t.Errorf("an owner that is cut off refuses after %s", most)
	}
	for name, paused := range map[string]time.Duration{"the owner is paused": 0, "this node was paused": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &Node{peering: &peering{}, id: identity{Node: "self"}}
				m := newShardMap("self", 1)
				n.owners.Store(m)
				var silent atomic.Bool
				var later atomic.Int64 // by how much this node's clock is later than the bubble's
				p := newHeartbeat(heartbeatConfig{
					Members: func() []string { return []string{"b"} }, Owned: func() []ownedShard { return nil },
					Map: func() *shardMap { return m }, Clock: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
					Clocks: newPeerClocks(time.Now, quiet()), Disconnect: func(string) {},
					Send: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
						if silent.Load() {
							<-ctx.Done()
							return nil, ctx.Err()
						}
						return json.Marshal(heartbeatMessage{Seq: uint64(time.Now().UnixNano()), Owned: []ownedShard{{1, 9}}})
					},
				})
				p.run()
				defer p.close()
				time.Sleep(2*heartbeatInterval + heartbeatInterval/2) // of the bubble
				began := time.Now()
				if due := n.OwnerDue(1, began); !due.Equal(began.Add(ownerWait)) {
					t.Errorf("with an owner a request waits until %s after it found none", due.Sub(began))
				}
				silent.Store(true)
				later.Store(int64(paused))
				_, _, changed := m.owner(1)
				<-changed
				noticed := time.Now()
				for _, since := range []time.Time{began, noticed} {
					due := n.OwnerDue(1, since)
					if due.Sub(began) > ownerWait {
						t.Errorf("a request that found no owner %s after the silence began is refused %s after it", since.Sub(began), due.Sub(began))
					}
					if due.Sub(noticed) < ownerWait-heartbeatLost-heartbeatInterval {
						t.Errorf("a request is refused %s after the silence was noticed", due.Sub(noticed))
					}
				}
				if due := n.OwnerDue(1, began.Add(-time.Second)); due.Sub(began) > ownerWait-time.Second {
					t.Errorf("a request that found no owner before is refused %s after the silence", due.Sub(began))
				}
			})
		})
	}
}
