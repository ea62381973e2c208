package cluster

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"

	"switchyard/storage"
)

// A connection to the peer port begins with a handshake. Both nodes prove that they hold the cluster's
// key before either names itself:
//
//	dialer:   kind (1 byte), version (1), nonce (32)
//	acceptor: status (1), nonce (32), proof (32)
//	dialer:   proof (32), length of the hello (4, big endian), hello (JSON)
//	acceptor: status (1)
//
// A proof is an HMAC of all bytes sent before it and, in the dialer's proof, of the hello. Each side has a
// label of its own, so that a proof can't be sent back to its maker, and a nonce of its own, so that a
// proof can't be used twice. While the key is replaced nodes hold two: the acceptor proves its first
// one, and the dialer the same one. Without a key both sides use an empty one, which protects nothing; that is
// the mode of --insecure-cluster. The handshake does not protect the bytes after it; TLS does.

// peerVersions has, by format of the cluster, the version of the handshake and of what follows it. A
// node dials in the version of the format that it writes, and answers every version of the formats
// that it reads.
var peerVersions = map[storage.Format]byte{storage.FormatFirst: 2, storage.FormatNumbered: 2, storage.FormatReferences: 2}

const (
	nonceBytes = 32
	proofBytes = sha256.Size
	maxHello   = 4 << 10
)

// Labels of the proofs.
const (
	acceptorProves = "switchyard peer port, acceptor"
	dialerProves   = "switchyard peer port, dialer"
)

// peerHello names the dialing node and the node that it wants to reach.
type peerHello struct {
	Cluster  string `json:"cluster"`
	From     string `json:"from"`
	Instance string `json:"instance"`
	To       string `json:"to"`
	Shard    int    `json:"shard"`
	// Generation is that of the dialer's data directory; versions without it send none.
	Generation generation `json:"generation,omitzero"`
	// ToInstance is the instance of the node to reach in the dialer's node list, and Registry the
	// version of that list. Versions without them send none.
	ToInstance string `json:"toInstance,omitempty"`
	Registry   uint64 `json:"registry,omitempty"`
}

// peerStatus is the answer to a hello. It names neither nodes nor clusters; the accepting node logs
// its reason.
type peerStatus byte

// Answers of the accepting node. Never change or reuse a number.
const (
	statusWelcome      peerStatus = 0
	statusVersion      peerStatus = 1 // another version of the protocol
	statusKind         peerStatus = 2 // an unknown kind of connection
	statusOtherNode    peerStatus = 3 // the hello is for another node
	statusNoCluster    peerStatus = 4 // the acceptor has not joined a cluster yet
	statusOtherCluster peerStatus = 5 // the dialer is of another cluster
	statusSameName     peerStatus = 6 // the dialer has the acceptor's name
	statusOlderData    peerStatus = 7 // the acceptor has seen the dialer with newer data
	statusNoMember     peerStatus = 8 // the dialer was removed from the cluster
	statusOtherData    peerStatus = 9 // the hello is for another data directory under the acceptor's name
)

// explain tells the dialing node's operator what a refusal means.
func (s peerStatus) explain(h *peerHello) string {
	switch s {
	case statusVersion:
		return "the node there speaks another version of the peer protocol: upgrade the older one"
	case statusKind:
		return "the node there does not know connections of this kind: do all nodes run the same version?"
	case statusOtherNode:
		return fmt.Sprintf("node %q is not there, the address belongs to another node: check --advertise of both", h.To)
	case statusNoCluster:
		return "the node there has not joined a cluster yet"
	case statusOtherCluster:
		return fmt.Sprintf("the node there does not belong to cluster %s: give --join addresses of this node's own cluster", h.Cluster)
	case statusSameName:
		return fmt.Sprintf("the node there is named %q, too: give every node a name of its own (--node-name)", h.From)
	case statusOlderData:
		return errOlderData.Error()
	case statusNoMember:
		return noMemberText
	case statusOtherData:
		return fmt.Sprintf("the node there runs on another data directory than the member %q: one of an earlier node of that name", h.To)
	}
	return fmt.Sprintf("with status %d, which this version does not know", s)
}

// refusedError is the refusal of a connection by another node.
type refusedError struct {
	status peerStatus
	why    string
}

func (e *refusedError) Error() string { return "refused: " + e.why }

var (
	errNotPeer = errors.New("the connection does not use the peer protocol")
	errPeerKey = errors.New("the node there has another --gossip-key than this one, or none")
	errNoProof = errors.New("the dialing node does not hold this cluster's key (--gossip-key)")
)

// peerKeys derives the keys of the proofs from the gossip keys. Without any it returns the empty
// key.
func peerKeys(gossip [][]byte) ([][]byte, error) {
	if len(gossip) == 0 {
		return [][]byte{nil}, nil
	}
	keys := make([][]byte, len(gossip))
	for i := range gossip {
		var err error
		if keys[i], err = hkdf.Key(sha256.New, gossip[i], nil, "switchyard peer port", sha256.Size); err != nil {
			return nil, fmt.Errorf("derive the key of the peer port: %w", err)
		}
	}
	return keys, nil
}

// proven returns the key that a proof was made with; ok is false if it is none of keys.
func proven(proof []byte, keys [][]byte, label string, said ...[]byte) (key []byte, ok bool) {
	for _, key := range keys {
		if hmac.Equal(proof, handshakeProof(key, label, said...)) {
			return key, true
		}
	}
	return nil, false
}

func handshakeProof(key []byte, label string, said ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(label))
	for _, part := range said {
		mac.Write(part)
	}
	return mac.Sum(nil)
}

// clientHandshake makes the handshake on the dialing side.
func (p *peerPort) clientHandshake(conn net.Conn, kind byte, hello *peerHello) error {
	said := make([]byte, 2+nonceBytes, 2+nonceBytes+1+nonceBytes)
	said[0], said[1] = kind, peerVersions[p.cfg.Format()]
	if _, err := rand.Read(said[2:]); err != nil {
		return err
	}
	if _, err := conn.Write(said); err != nil {
		return err
	}
	if err := readStatus(conn, hello); err != nil {
		return err
	}
	var answer [nonceBytes + proofBytes]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	said = append(append(said, byte(statusWelcome)), answer[:nonceBytes]...)
	key, ok := proven(answer[nonceBytes:], p.cfg.Keys, acceptorProves, said)
	if !ok {
		return errPeerKey
	}
	text, err := json.Marshal(hello)
	if err != nil {
		return err
	}
	text = append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
	if _, err := conn.Write(append(handshakeProof(key, dialerProves, said, text), text...)); err != nil {
		return err
	}
	return readStatus(conn, hello)
}

func readStatus(conn io.Reader, hello *peerHello) error {
	var status [1]byte
	if _, err := io.ReadFull(conn, status[:]); err != nil {
		return err
	}
	if s := peerStatus(status[0]); s != statusWelcome {
		return &refusedError{s, s.explain(hello)}
	}
	return nil
}

// serverHandshake makes the handshake on the accepting side, up to the hello. A dialer without the
// key gets nothing but this side's nonce and proof.
func (p *peerPort) serverHandshake(conn net.Conn) (kind byte, hello peerHello, err error) {
	said := make([]byte, 2+nonceBytes+1+nonceBytes)
	if _, err := io.ReadFull(conn, said[:2]); err != nil {
		return 0, hello, err
	}
	kind = said[0]
	if oldest, newest := peerVersions[storage.FormatOldest], peerVersions[storage.FormatNewest]; said[1] < oldest || said[1] > newest {
		_, _ = conn.Write([]byte{byte(statusVersion)})
		return 0, hello, fmt.Errorf("%w, or speaks version %d of the protocol, not %d to %d", errNotPeer, said[1], oldest, newest)
	}
	if _, err := io.ReadFull(conn, said[2:2+nonceBytes]); err != nil {
		return 0, hello, err
	}
	answer := said[2+nonceBytes:]
	answer[0] = byte(statusWelcome)
	if _, err := rand.Read(answer[1:]); err != nil {
		return 0, hello, err
	}
	if _, err := conn.Write(append(answer[:len(answer):len(answer)], handshakeProof(p.cfg.Keys[0], acceptorProves, said)...)); err != nil {
		return 0, hello, err
	}
	var head [proofBytes + 4]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return 0, hello, err
	}
	size := binary.BigEndian.Uint32(head[proofBytes:])
	if size > maxHello {
		return 0, hello, errNotPeer
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(conn, text); err != nil {
		return 0, hello, err
	}
	if _, ok := proven(head[:proofBytes], p.cfg.Keys, dialerProves, said, head[proofBytes:], text); !ok {
		return 0, hello, errNoProof
	}
	if err := json.Unmarshal(text, &hello); err != nil {
		return 0, hello, fmt.Errorf("%w: %w", errNotPeer, err)
	}
	if hello.Shard < 0 || hello.Shard > MaxShards {
		return 0, hello, errNotPeer
	}
	return kind, hello, nil
}

// checkHello decides whether a connection is for this node. The reason is written to the log.
func (p *peerPort) checkHello(kind byte, h *peerHello) (status peerStatus, reason string) {
	self := p.cfg.Self()
	joins := kind == kindControl && h.Cluster == ""
	known := kind == kindRaft || kind == kindHTTP || kind == kindControl || kind == kindGroups || kind == kindEntries
	switch {
	case !known || p.cfg.old && (kind == kindGroups || kind == kindEntries):
		return statusKind, fmt.Sprintf("this node does not know connections of kind %q: do all nodes run the same version?", kind)
	case h.To != "" && h.To != self.node:
		return statusOtherNode, fmt.Sprintf("node %q is not here, this address belongs to node %q: check --advertise of both", h.To, self.node)
	case self.cluster == "" && !joins: // nodes without a cluster may form one together
		return statusNoCluster, fmt.Sprintf("node %q has not joined a cluster yet", self.node)
	case !joins && h.Cluster != self.cluster:
		return statusOtherCluster, fmt.Sprintf("this node belongs to cluster %s and the dialing node to %s: give that node --join addresses of its own cluster", self.cluster, h.Cluster)
	case h.From == self.node && !joins:
		return statusSameName, fmt.Sprintf("the name %q is this node's own: give every node a name of its own (--node-name)", h.From)
	case !joins && p.isEarlier(h):
		return statusOtherData, fmt.Sprintf("node %q asks for instance %s of this node, which is instance %s", h.From, h.ToInstance, self.instance)
	case !joins && p.refuses(h):
		if kind != kindControl { // by control requests it may ask whether it is a member
			return statusNoMember, fmt.Sprintf("node %q (instance %s) was removed from the cluster", h.From, h.Instance)
		}
	case !joins && !p.cfg.Generations.accepts(h.From, h.Generation):
		return statusOlderData, fmt.Sprintf("the data directory of node %q is older than this node has seen it: it has forgotten what it acknowledged since", h.From)
	}
	return statusWelcome, ""
}
