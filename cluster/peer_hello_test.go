package cluster

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/storage"
)

// keylessDialer is a raw connection to a peer port.
type keylessDialer struct {
	t    *testing.T
	conn net.Conn
}

func (w *peerNetwork) keylessDialer(t *testing.T, node string) *keylessDialer {
	t.Helper()
	conn, err := net.Dial("tcp", w.at[node])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &keylessDialer{t, conn}
}

func (s *keylessDialer) send(parts ...[]byte) {
	_, _ = s.conn.Write(bytes.Join(parts, nil)) // the other side may have hung up
}

func (s *keylessDialer) take(n int) []byte {
	s.t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(s.conn, b); err != nil {
		s.t.Fatal(err)
	}
	return b
}

// rest returns the bytes that arrive until the other side hangs up.
func (s *keylessDialer) rest() []byte {
	s.t.Helper()
	b, err := io.ReadAll(s.conn)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		s.t.Fatal(err)
	}
	return b
}

// hello writes a hello as it stands in a handshake, behind its length.
func hello(t *testing.T, h peerHello) []byte {
	t.Helper()
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

// control writes a control request.
func control(kind rpcKind, body string) []byte {
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(1+len(body))), byte(kind)), body...)
}

// A process without the key gets random bytes as answers, even if it knows the cluster, and
// none of its requests is carried out.
func TestPeerPort_StrangersLearnNothing(t *testing.T) {
	t.Parallel()
	key := []byte("the key of the cluster")
	opening := append([]byte{kindControl, peerVersions[storage.FormatNewest]}, bytes.Repeat([]byte{7}, nonceBytes)...)
	request := control(rpcCall, "effect")
	right := peerHello{Cluster: "one", From: "a", Instance: "a-instance", To: "b"}
	for name, talk := range map[string]func(s *keylessDialer) (learned []byte){
		"no proof": func(s *keylessDialer) []byte {
			s.send(opening)
			answer := s.take(1 + nonceBytes + proofBytes)
			s.send(make([]byte, proofBytes), hello(t, right), request)
			return append(answer, s.rest()...)
		},
		"the proof of another key": func(s *keylessDialer) []byte {
			s.send(opening)
			answer := s.take(1 + nonceBytes + proofBytes)
			text := hello(t, right)
			s.send(handshakeProof([]byte("another"), dialerProves, opening, answer[:1+nonceBytes], text), text, request)
			return append(answer, s.rest()...)
		},
		"the empty key": func(s *keylessDialer) []byte {
			s.send(opening)
			answer := s.take(1 + nonceBytes + proofBytes)
			text := hello(t, right)
			s.send(handshakeProof(nil, dialerProves, opening, answer[:1+nonceBytes], text), text, request)
			return append(answer, s.rest()...)
		},
		"its own proof sent back": func(s *keylessDialer) []byte {
			s.send(opening)
			answer := s.take(1 + nonceBytes + proofBytes)
			s.send(answer[1+nonceBytes:], hello(t, right), request)
			return append(answer, s.rest()...)
		},
		"another hello than was proven": func(s *keylessDialer) []byte {
			s.send(opening)
			answer := s.take(1 + nonceBytes + proofBytes)
			s.send(handshakeProof(key, dialerProves, opening, answer[:1+nonceBytes], hello(t, peerHello{})), hello(t, right), request)
			return append(answer, s.rest()...)
		},
		"another version": func(s *keylessDialer) []byte {
			s.send([]byte{kindControl, peerVersions[storage.FormatNewest] + 1}, hello(t, right), request)
			return s.rest()
		},
		"a hello alone": func(s *keylessDialer) []byte {
			s.send([]byte{kindControl}, hello(t, right), request)
			return s.rest()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newPeerNetwork(t)
			w.addWithKey("b", "one", nil, key)
			learned := talk(w.keylessDialer(t, "b"))
			if n := len(learned); n > 1+nonceBytes+proofBytes || bytes.Contains(learned, []byte("one")) || bytes.Contains(learned, []byte("effect")) {
				t.Errorf("it is answered %d bytes: %q", n, learned)
			}
		})
	}
}

// A refusal names neither the node nor its cluster, also to a node that holds the key.
func TestPeerPort_RefusalsNameNothing(t *testing.T) {
	t.Parallel()
	w := newPeerNetwork(t)
	w.addWithKey("bravo", "cluster-two", nil, nil)
	for name, h := range map[string]peerHello{
		"another cluster": {Cluster: "one", From: "a", To: "bravo"}, "another node": {Cluster: "cluster-two", From: "a", To: "c"},
	} {
		s := w.keylessDialer(t, "bravo")
		opening := append([]byte{kindControl, peerVersions[storage.FormatNewest]}, make([]byte, nonceBytes)...)
		s.send(opening)
		answer := s.take(1 + nonceBytes + proofBytes)
		text := hello(t, h)
		s.send(handshakeProof(nil, dialerProves, opening, answer[:1+nonceBytes], text), text)
		if got := s.rest(); len(got) != 1 || got[0] == byte(statusWelcome) {
			t.Errorf("%s: answered %q", name, got)
		}
	}
}

// Nodes need the same key. A node without a key is refused too, whichever side dials.
func TestPeerPort_KeysMustMatch(t *testing.T) {
	t.Parallel()
	first, second := testPeerKeys(t)
	w := newPeerNetwork(t)
	nodes := map[string]*peerPort{
		"a": w.addWithKey("a", "one", nil, first), "b": w.addWithKey("b", "one", nil, first),
		"other": w.addWithKey("other", "one", nil, second), "none": w.addWithKey("none", "one", nil, nil),
	}
	for from, p := range nodes {
		for to := range nodes {
			if from == to {
				continue
			}
			got, err := p.call(t.Context(), to, rpcReport, []byte("x"))
			switch alike := len(from) == 1 && len(to) == 1; {
			case alike && (err != nil || string(got) != to+" to "+from+": x"):
				t.Errorf("%s to %s: %q, %v", from, to, got, err)
			case !alike && (!errors.Is(err, errNotSent) || !strings.Contains(err.Error(), "--gossip-key")):
				t.Errorf("%s to %s: %q, %v", from, to, got, err)
			}
		}
	}
}

// testPeerKeys returns two keys of the handshake.
func testPeerKeys(t *testing.T) (first, second []byte) {
	t.Helper()
	keys, err := peerKeys([][]byte{[]byte("0123456789abcdef"), []byte("fedcba9876543210")})
	if err != nil {
		t.Fatal(err)
	}
	return keys[0], keys[1]
}

// A key is replaced in three rounds of restarts, in which each node gets both keys, then the new one
// first, then the new one alone. Within a round all nodes reach each other.
func TestPeerPort_KeyIsReplaced(t *testing.T) {
	t.Parallel()
	before, after := testPeerKeys(t)
	rounds := [][][]byte{{before}, {before, after}, {after, before}, {after}}
	for i, earlier := range rounds[:len(rounds)-1] {
		w := newPeerNetwork(t)
		nodes := map[string]*peerPort{
			"a": w.addWith("a", "one", peerConfig{Keys: earlier}), "b": w.addWith("b", "one", peerConfig{Keys: rounds[i+1]}),
		}
		for from, to := range map[string]string{"a": "b", "b": "a"} {
			if got, err := nodes[from].call(t.Context(), to, rpcReport, []byte("x")); err != nil || string(got) != to+" to "+from+": x" {
				t.Errorf("round %d, %s to %s: %q, %v", i+1, from, to, got, err)
			}
		}
	}
	w := newPeerNetwork(t)
	a := w.addWith("a", "one", peerConfig{Keys: rounds[0]})
	w.addWith("b", "one", peerConfig{Keys: rounds[3]})
	if _, err := a.call(t.Context(), "b", rpcReport, []byte("x")); !errors.Is(err, errNotSent) {
		t.Errorf("the key before is still taken: %v", err)
	}
}

// recorded is a connection that records the bytes written to it.
type recorded struct {
	net.Conn
	mu   sync.Mutex
	sent []byte
}

func (r *recorded) Write(b []byte) (int, error) {
	r.mu.Lock()
	r.sent = append(r.sent, b...)
	r.mu.Unlock()
	return r.Conn.Write(b)
}

// A recorded handshake is refused when it is sent again.
func TestPeerPort_HandshakesCantBeReplayed(t *testing.T) {
	t.Parallel()
	key := []byte("the key of the cluster")
	w := newPeerNetwork(t)
	a := w.addWithKey("a", "one", nil, key)
	w.addWithKey("b", "one", nil, key)
	overheard := &recorded{Conn: w.keylessDialer(t, "b").conn}
	if err := a.clientHandshake(overheard, kindControl, &peerHello{Cluster: "one", From: "a", To: "b"}); err != nil {
		t.Fatal(err)
	}
	s := w.keylessDialer(t, "b")
	s.send(overheard.sent, control(rpcCall, "effect"))
	if got := s.rest(); len(got) != 1+nonceBytes+proofBytes {
		t.Errorf("a replay is answered %q", got)
	}
}
