package gossip

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"switchyard/cluster/membership"
	"switchyard/internal/testkit"
)

// Processes without the key hold few connections, and few bytes on each. Nodes come in again
// when these have gone.
func TestTransport_BoundsStrangers(t *testing.T) {
	t.Parallel()
	start := func(name string, tune func(*memberlist.Config, *Times)) *Gossip {
		t.Helper()
		m, err := New(Config{
			Bind: "127.0.0.1:0", Keys: [][]byte{make([]byte, 32)}, Self: Meta{Node: name, Instance: name, Cluster: "c"},
			Known: func() []membership.Record { return nil }, Logger: quietLogger(), Tune: tune,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := m.Shutdown(); err != nil {
				t.Error(err)
			}
		})
		return m
	}
	m := start("a", func(c *memberlist.Config, _ *Times) { c.TCPTimeout = time.Minute })
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", m.Addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	// ended reads an answer that there may be, and reports whether the connection ends then.
	ended := func(c net.Conn) bool {
		_, err := io.Copy(io.Discard, c)
		return !errors.Is(err, os.ErrDeadlineExceeded)
	}
	large := dial()
	const encrypted = 10 // memberlist's type of an encrypted message, which has its length next
	if _, err := large.Write(binary.BigEndian.AppendUint32([]byte{encrypted}, 16<<20)); err != nil {
		t.Fatal(err)
	}
	_, _ = large.Write(make([]byte, maxStreamBytes)) // the other side may close the connection meanwhile
	if !ended(large) {
		t.Errorf("more than %d bytes of a message are taken", maxStreamBytes)
	}
	var held []net.Conn
	for range maxStreamsOfHost {
		held = append(held, dial())
	}
	if !ended(dial()) {
		t.Errorf("an address has more than %d connections", maxStreamsOfHost)
	}
	for _, c := range held {
		_ = c.Close()
	}
	b := start("b", nil)
	testkit.Eventually(t, "a node to come in", func() bool {
		met := b.Contact(t.Context(), []string{m.Addr})
		return len(met) == 1 && met[0].Outcome == ContactOK
	})
}
