package cluster

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"reflect"
	"testing"

	"switchyard/internal/testkit"
	"switchyard/storage"
)

// FuzzEntry decodes entries of the log, and compresses what was in them again.
func FuzzEntry(f *testing.F) {
	testkit.Corpus(f)
	batch := append(make([]byte, batchHeader), bytes.Repeat([]byte("row of a workspace "), 100)...)
	plain := appendEntry(nil, entryBatch, 3, string(batch))
	packed, ok := pack(nil, plain)
	if !ok {
		f.Fatal("the batch was not compressed")
	}
	for _, seed := range [][]byte{plain, packed, appendEntry(nil, entryClaim, 4, "node-1"), appendEntry(nil, entryRelease, 5, "")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		kind, epoch, body, err := splitEntry(data)
		if err != nil || kind != entryPacked {
			return
		}
		batch, err := unpack(nil, body)
		if err != nil {
			return
		}
		if len(batch) > maxUnpacked {
			t.Fatalf("unpacked %d bytes", len(batch))
		}
		again, ok := pack(nil, appendEntry(nil, entryBatch, epoch, string(batch)))
		if !ok {
			return // too small, or random
		}
		_, epochAgain, body, err := splitEntry(again)
		if err != nil || epochAgain != epoch {
			t.Fatalf("epoch %d came back as %d, %v", epoch, epochAgain, err)
		}
		if came, err := unpack(nil, body); err != nil || !bytes.Equal(came, batch) {
			t.Fatalf("%d bytes came back as %d, %v", len(batch), len(came), err)
		}
	})
}

// FuzzReadControl reads control frames until the input ends or has a fault.
func FuzzReadControl(f *testing.F) {
	testkit.Corpus(f)
	var frames bytes.Buffer
	for _, body := range []string{"", "{}", `{"seq":1}`} {
		if err := writeControl(&frames, byte(rpcJoin), []byte(body)); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(frames.Bytes())
	f.Add(binary.BigEndian.AppendUint32(nil, maxFrame))
	f.Fuzz(func(t *testing.T, sent []byte) {
		in := bytes.NewReader(sent)
		var again bytes.Buffer
		for {
			first, body, err := readControl(in)
			if err != nil {
				break
			}
			if len(body) > maxFrame {
				t.Fatalf("a body of %d bytes", len(body))
			}
			if err := writeControl(&again, first, body); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.HasPrefix(sent, again.Bytes()) {
			t.Fatalf("%x was read as %x", sent, again.Bytes())
		}
	})
}

// FuzzHeartbeat decodes the most frequent control request.
func FuzzHeartbeat(f *testing.F) {
	testkit.Corpus(f)
	seed, err := json.Marshal(heartbeatMessage{Seq: 7, Owned: []ownedShard{{1, 2}, {MaxShards, 1 << 63}}, Clock: 1, Generation: generation{}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"owned":[[70000,1]]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var m, again heartbeatMessage
		if decodeRequest(body, &m) != nil {
			return
		}
		for _, o := range m.Owned {
			if o.shard > MaxShards {
				t.Fatalf("shard %d", o.shard)
			}
		}
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := decodeRequest(text, &again); err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("%+v came back as %+v, %v", m, again, err)
		}
	})
}

// scriptedConn is the accepting side's connection to a dialer that has sent in already, and sends
// what respond makes of the first bytes written to it.
type scriptedConn struct {
	net.Conn
	in      bytes.Buffer
	respond func(written []byte) []byte
	written int
}

func (c *scriptedConn) Read(b []byte) (int, error) { return c.in.Read(b) }

func (c *scriptedConn) Write(b []byte) (int, error) {
	if c.written += len(b); c.respond != nil {
		_, _ = c.in.Write(c.respond(b)) // never fails
		c.respond = nil
	}
	return len(b), nil
}

// FuzzServerHandshake sends anything as a hello, with and without the key of the cluster.
func FuzzServerHandshake(f *testing.F) {
	testkit.Corpus(f)
	keys, err := peerKeys([][]byte{bytes.Repeat([]byte{1}, 32)})
	if err != nil {
		f.Fatal(err)
	}
	p := &peerPort{cfg: peerConfig{Keys: keys}}
	version := peerVersions[storage.FormatNewest]
	seed, err := json.Marshal(peerHello{Cluster: "c", From: "a", To: "b", Shard: 3})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(kindRaft, version, true, seed)
	f.Add(kindControl, version, false, seed)
	f.Add(kindHTTP, byte(0), true, []byte(`{"shard":-1}`))
	f.Fuzz(func(t *testing.T, kind, version byte, holdsKey bool, text []byte) {
		said := append([]byte{kind, version}, bytes.Repeat([]byte{2}, nonceBytes)...)
		conn := &scriptedConn{respond: func(answer []byte) []byte {
			hello := append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
			key := []byte("another key")
			if holdsKey {
				key = keys[0]
			}
			if len(answer) < 1+nonceBytes {
				return nil // a refusal
			}
			return append(handshakeProof(key, dialerProves, said, answer[:1+nonceBytes], hello), hello...)
		}}
		conn.in.Write(said)
		got, hello, err := p.serverHandshake(conn)
		if conn.written > 1+nonceBytes+proofBytes {
			t.Fatalf("%d bytes were sent", conn.written)
		}
		if err != nil {
			return
		}
		rest, _ := io.ReadAll(&conn.in)
		if !holdsKey || got != kind || hello.Shard < 0 || hello.Shard > MaxShards || len(text) > maxHello || len(rest) > 0 {
			t.Fatalf("accepted: key %t, kind %q, %+v", holdsKey, got, hello)
		}
	})
}
