//go:build unix

package cluster

import (
	"net"
	"testing"

	"switchyard/internal/testkit"
)

// A kept connection whose other side has ended is not used. A request on it would end as
// one that may have been carried out.
func TestPeerPort_KeptConnectionsThatEndedAreDropped(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	a := w.add("a", "one", nil)
	b := w.add("b", "one", nil)
	kept := func() net.Conn {
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.idle["b"]) != 1 {
			t.Fatalf("%d connections are kept", len(a.idle["b"]))
		}
		return a.idle["b"][0]
	}
	if _, err := a.call(t.Context(), "b", rpcCall, nil); err != nil {
		t.Fatal(err)
	}
	first := kept()
	b.close()
	w.add("b", "one", nil) // restarted at another address
	testkit.Eventually(t, "the end of the kept connection arrives", func() bool { return !isIdleOpen(first) })
	if got, err := a.call(t.Context(), "b", rpcCall, []byte("x")); err != nil || string(got) != "x" {
		t.Errorf("after a restart: %q, %v", got, err)
	}
	if kept() == first {
		t.Error("the ended connection is kept")
	}
}
