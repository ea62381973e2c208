package systemtest

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// links are the connections between the peer ports of a fleet's nodes, each led
// through a relay that can hold them back. A cut link is a cable pulled, not a
// connection closed: nothing arrives, nobody is told, and what was sent before is
// delivered when the link is mended.
type links struct {
	mu     sync.Mutex
	mended *sync.Cond
	cut    map[link]bool
	rates  map[link]int // bytes a second of each connection; 0: as fast as they come
	closed bool
	open   map[net.Conn]struct{}
	ended  chan struct{} // closed with the fleet
	// secure is the certificate of the nodes, if they use TLS between them; see links_tls.go.
	secure *tls.Certificate

	listeners []net.Listener
	running   sync.WaitGroup
}

// link is a direction: what from sends to to.
type link struct{ from, to string }

func newLinks() *links {
	l := &links{cut: map[link]bool{}, rates: map[link]int{}, open: map[net.Conn]struct{}{}, ended: make(chan struct{})}
	l.mended = sync.NewCond(&l.mu)
	return l
}

// Cut holds back what the two send each other.
func (f *Fleet) Cut(a, b *Member) { f.links.set(true, link{a.Name, b.Name}, link{b.Name, a.Name}) }

// CutOneWay holds back what from sends to to.
func (f *Fleet) CutOneWay(from, to *Member) { f.links.set(true, link{from.Name, to.Name}) }

// Isolate cuts a node off from all others.
func (f *Fleet) Isolate(m *Member) {
	for _, other := range f.members {
		if other != m {
			f.Cut(m, other)
		}
	}
}

// Slow lets each connection of from to to carry so many bytes a second from now on.
func (f *Fleet) Slow(from, to *Member, rate int) {
	f.links.mu.Lock()
	defer f.links.mu.Unlock()
	f.links.rates[link{from.Name, to.Name}] = rate
}

// Mend heals every link.
func (f *Fleet) Mend() { f.links.mend() }

func (l *links) set(cut bool, which ...link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range which {
		l.cut[w] = cut
	}
}

func (l *links) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.cut)
	clear(l.rates)
	l.mended.Broadcast()
}

// mendBetween heals the links between two nodes.
func (f *Fleet) mendBetween(a, b *Member) {
	f.links.mu.Lock()
	defer f.links.mu.Unlock()
	for _, w := range []link{{a.Name, b.Name}, {b.Name, a.Name}} {
		delete(f.links.cut, w)
		delete(f.links.rates, w)
	}
	f.links.mended.Broadcast()
}

// slowPiece is the most that a slow link carries at a time, in bytes.
const slowPiece = 2 << 10

// crawl returns when a slow link has carried n bytes.
func (l *links) crawl(w link, n int) {
	for n > 0 {
		l.mu.Lock()
		rate := l.rates[w]
		l.mu.Unlock()
		if rate == 0 {
			return
		}
		piece := min(n, slowPiece)
		n -= piece
		timer := time.NewTimer(time.Duration(piece) * time.Second / time.Duration(rate))
		select {
		case <-timer.C:
		case <-l.ended:
			timer.Stop()
			return
		}
	}
}

// pass returns when the link carries; false when the fleet is gone.
func (l *links) pass(w link) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.cut[w] && !l.closed {
		l.mended.Wait()
	}
	return !l.closed
}

// relay forwards connections to a node's advertised peer address to where it
// listens.
func (l *links) relay(node, advertised, behind string) error {
	ln, err := net.Listen("tcp", advertised)
	if err != nil {
		return fmt.Errorf("relay for %s: %w", node, err)
	}
	l.listeners = append(l.listeners, ln)
	l.running.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			if !l.hold(conn) {
				return
			}
			l.running.Go(func() { l.carry(node, conn, behind) })
		}
	})
	return nil
}

// hold notes a connection, to be closed with the fleet.
func (l *links) hold(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = conn.Close()
		return false
	}
	l.open[conn] = struct{}{}
	return true
}

func (l *links) release(conn net.Conn) {
	_ = conn.Close()
	l.mu.Lock()
	delete(l.open, conn)
	l.mu.Unlock()
}

// carry moves bytes both ways. The nodes say who they are only after each has shown a
// nonce, so the first two messages pass a cut link; nothing else does.
func (l *links) carry(node string, in net.Conn, behind string) {
	defer l.release(in)
	out, err := net.Dial("tcp", behind)
	if err != nil {
		return
	}
	if !l.hold(out) {
		return
	}
	defer l.release(out)
	in, out = l.inside(in, out)
	if !carried(out, in, peerOpening) || !carried(in, out, peerAnswer) {
		return
	}
	hello, from, err := readHello(in)
	if err != nil {
		return
	}
	if !l.pass(link{from, node}) {
		return
	}
	if _, err := out.Write(hello); err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		l.move(link{node, from}, in, out)
		_ = in.Close() // ends the other direction
	})
	l.move(link{from, node}, out, in)
	_ = out.Close()
	back.Wait()
}

// carried moves so many bytes, and reports whether they all came.
func carried(to io.Writer, from io.Reader, n int64) bool {
	_, err := io.CopyN(to, from, n)
	return err == nil
}

// move copies until an end closes, a piece at a time while the link carries.
func (l *links) move(w link, to io.Writer, from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			l.crawl(w, n)
			if !l.pass(w) {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			// An end that closes behind a cut is not heard of either.
			l.pass(w)
			return
		}
	}
}

func (l *links) close() {
	l.mu.Lock()
	if !l.closed {
		close(l.ended)
	}
	l.closed = true
	for conn := range l.open {
		_ = conn.Close()
	}
	l.mended.Broadcast()
	l.mu.Unlock()
	for _, ln := range l.listeners {
		_ = ln.Close()
	}
	l.running.Wait()
}

// Lengths in the handshake of a peer connection: kind, version and nonce of the node
// that dials; status, nonce and proof of the other; the first one's proof, which a hello
// of at most maxHello bytes follows behind its length.
const (
	peerOpening = 1 + 1 + 32
	peerAnswer  = 1 + 32 + 32
	peerProof   = 32
	maxHello    = 4 << 10
)

// readHello reads the proof and the hello of the node that dialed.
func readHello(conn io.Reader) (raw []byte, from string, err error) {
	head := make([]byte, peerProof+4)
	if _, err := io.ReadFull(conn, head); err != nil {
		return nil, "", err
	}
	at := head[peerProof:]
	size := uint32(at[0])<<24 | uint32(at[1])<<16 | uint32(at[2])<<8 | uint32(at[3])
	if size > maxHello {
		return nil, "", errors.New("the hello is too long")
	}
	raw = make([]byte, len(head)+int(size))
	copy(raw, head)
	if _, err := io.ReadFull(conn, raw[len(head):]); err != nil {
		return nil, "", err
	}
	var hello struct {
		From string `json:"from"`
	}
	if err := json.Unmarshal(raw[len(head):], &hello); err != nil {
		return nil, "", err
	}
	return raw, hello.From, nil
}

// nets counts the networks that were given out. They begin at firstNet, so that test runs on one machine do not meet.
var (
	nets     atomic.Uint32
	firstNet = rand.Uint32()
)

// loopbackNet returns the beginning of loopback addresses that no other test of this process has, "127.a.b.".
func loopbackNet() string {
	n := firstNet + nets.Add(1)
	return fmt.Sprintf("127.%d.%d.", 1+(n>>8)%254, n%256)
}
