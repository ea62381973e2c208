package cluster

import (
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/internal/testkit"
)

// The stream of a snapshot ends within seconds if the follower stops reading it, although Raft
// allows hours for a large one. A slow follower gets the whole snapshot.
func TestRaftStream_EndsWithoutProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer func() { _, _ = ours.Close(), theirs.Close() }()
		s := &raftStream{Conn: ours, clock: time.Now, short: raftTimeout}
		if err := s.SetDeadline(time.Now().Add(5 * time.Hour)); err != nil {
			t.Fatal(err)
		}
		const pieces = 20
		go func() { // slow, and then hung
			b := make([]byte, streamPiece)
			for range pieces {
				time.Sleep(streamStall / 2)
				for left := len(b); left > 0; {
					n, err := theirs.Read(b[:left])
					if err != nil {
						return
					}
					left -= n
				}
			}
		}()
		began := time.Now()
		n, err := s.Write(make([]byte, 2*pieces*streamPiece))
		if !errors.Is(err, os.ErrDeadlineExceeded) || n != pieces*streamPiece {
			t.Fatalf("%d bytes, %v", n, err)
		}
		if took, most := time.Since(began), pieces*streamStall/2+streamStall; took > most {
			t.Errorf("it took %s, more than %s", took, most)
		}
		began = time.Now()
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) > installTime {
			t.Errorf("the answer was waited for %s: %v", time.Since(began), err)
		}
		// Other requests keep the deadline that Raft sets.
		if err := s.SetDeadline(time.Now().Add(raftTimeout)); err != nil {
			t.Fatal(err)
		}
		began = time.Now()
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != raftTimeout {
			t.Errorf("an answer was waited for %s: %v", time.Since(began), err)
		}
	})
}

// Forwarded requests that wait take no connections from Raft and control requests, and have a bound of their own.
func TestPeerPort_ForwardsLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	a := w.add("a", "one", nil)
	b := w.addWith("b", "one", peerConfig{maxAccepted: 2, MaxForwarded: 3, Keys: [][]byte{nil}})
	go func() {
		for {
			if _, err := b.httpListener().Accept(); err != nil {
				return
			}
		}
	}()
	for range 3 {
		if _, err := a.dialHTTP(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.dialHTTP(t.Context(), "b"); !errors.Is(err, errNotSent) {
		t.Fatalf("a connection beyond the limit: %v", err)
	}
	if got, err := a.call(t.Context(), "b", rpcCall, []byte("x")); err != nil || string(got) != "x" {
		t.Errorf("a control request: %q, %v", got, err)
	}
	b.disconnect("a")
	testkit.Eventually(t, "there is room again", func() bool {
		_, err := a.dialHTTP(t.Context(), "b")
		return err == nil
	})
}

// A node's peer port has the bound of its configuration, or that of the other kinds of connections.
func TestPeerPort_BoundOfTheConfiguration(t *testing.T) {
	t.Parallel()
	for set, want := range map[int]int{0: maxAccepted, 9000: 9000} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		store := openStore(t, vfs.NewMem(), "data")
		n, err := New(Config{Store: store, Peer: ln, Gossip: "127.0.0.1:0", MaxForwarded: set, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		if got := n.peering.port.cfg.MaxForwarded; got != want {
			t.Errorf("with %d: %d connections with forwarded requests", set, got)
		}
		if err := errors.Join(n.Close(t.Context()), store.Close()); err != nil {
			t.Error(err)
		}
	}
}
