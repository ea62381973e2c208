package cluster

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"time"
)

const (
	// maxFrame bounds a control request, and its answer as well.
	maxFrame = 16 << 20
	// keptControl is the number of idle control connections kept per node.
	keptControl = 8
	// controlTimeout bounds a control request without a deadline of its own, and its handler on the
	// other node.
	controlTimeout = 15 * time.Second
)

// errNotSent is wrapped by the errors of requests that were certainly not delivered.
var errNotSent = errors.New("cluster: not sent")

// rpcError is an error sent by the other node.
type rpcError struct{ message string }

func (e *rpcError) Error() string { return e.message }

// A control request is its length (4 bytes, big endian, of the rest), its kind and its body. An
// answer is its length, a status (0 for success, 1 for an error, 2 if the requesting node is refused)
// and its body, which for an error is the text. A connection carries one request at a time, and ends
// after a refusal. Versions that don't know the status 2 take it for an error.
const (
	answered byte = 0
	failed   byte = 1
	noMember byte = 2
)

// call sends a control request to a node. The error is an *rpcError if the node answered with one,
// and wraps errNotSent if nothing was delivered.
func (p *peerPort) call(ctx context.Context, node string, kind rpcKind, body []byte) ([]byte, error) {
	for {
		conn := p.takeIdle(node)
		fresh := conn == nil
		if fresh {
			addr, err := p.resolve(node)
			if err != nil {
				return nil, err
			}
			if conn, err = p.dial(ctx, kindControl, node, addr, 0); err != nil {
				return nil, err
			}
		}
		answer, err := p.exchange(ctx, conn, kind, body)
		var rpcErr *rpcError
		if err == nil || errors.As(err, &rpcErr) {
			p.keepIdle(node, conn)
			return answer, err
		}
		p.closeConn(conn)
		// A kept connection may have ended long ago. Requests of these kinds may be sent twice.
		if !fresh && ctx.Err() == nil && (kind == rpcHeartbeat || kind == rpcReport) {
			continue
		}
		return nil, fmt.Errorf("ask node %q: %w", node, err)
	}
}

// callAddr sends a control request to the node at an address, whatever its name.
func (p *peerPort) callAddr(ctx context.Context, addr string, kind rpcKind, body []byte) ([]byte, error) {
	conn, err := p.dial(ctx, kindControl, "", addr, 0)
	if err != nil {
		return nil, err
	}
	defer p.closeConn(conn)
	answer, err := p.exchange(ctx, conn, kind, body)
	if err != nil {
		return nil, fmt.Errorf("ask the node at %s: %w", addr, err)
	}
	return answer, nil
}

// takeIdle returns a kept connection to a node, or nil if there is none. Connections that the other
// node has closed are dropped: a request written to one would count as sent.
func (p *peerPort) takeIdle(node string) net.Conn {
	for {
		conn := p.lastIdle(node)
		if conn == nil || isIdleOpen(conn) {
			return conn
		}
		p.closeConn(conn)
	}
}

func (p *peerPort) lastIdle(node string) net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.idle[node]
	if len(kept) == 0 {
		return nil
	}
	conn := kept[len(kept)-1]
	p.idle[node] = kept[:len(kept)-1]
	return conn
}

func (p *peerPort) keepIdle(node string, conn net.Conn) {
	p.mu.Lock()
	_, open := p.conns[conn]
	keep := open && !p.closed && len(p.idle[node]) < keptControl
	if keep {
		p.idle[node] = append(p.idle[node], conn)
	}
	p.mu.Unlock()
	if !keep {
		p.closeConn(conn)
	}
}

// exchange sends a request and waits for its answer until ctx ends.
func (p *peerPort) exchange(ctx context.Context, conn net.Conn, kind rpcKind, body []byte) ([]byte, error) {
	if len(body) > maxFrame-1 {
		return nil, fmt.Errorf("%w: the request is larger than %d bytes", errNotSent, maxFrame)
	}
	ctx, cancel := context.WithTimeout(ctx, p.limit(controlTimeout))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	status, answer, err := roundTrip(conn, kind, body)
	if !stop() {
		if err == nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("%w (%w)", err, context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	if status == noMember {
		return nil, errNoMember
	}
	if status != answered {
		return nil, &rpcError{string(answer)}
	}
	return answer, nil
}

func roundTrip(conn net.Conn, kind rpcKind, body []byte) (status byte, answer []byte, err error) {
	if err := writeControl(conn, byte(kind), body); err != nil {
		return 0, nil, err
	}
	return readControl(conn)
}

func writeControl(conn io.Writer, first byte, body []byte) error {
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 5+len(body)), uint32(1+len(body)))
	frame = append(append(frame, first), body...)
	_, err := conn.Write(frame)
	return err
}

// readControl reads a frame. It allocates memory as bytes arrive, not by the announced length.
func readControl(conn io.Reader) (first byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size < 1 || size > maxFrame {
		return 0, nil, fmt.Errorf("a control frame of %d bytes", size)
	}
	size--
	if size <= 64<<10 {
		body = make([]byte, size)
		_, err = io.ReadFull(conn, body)
		return head[4], body, err
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, conn, int64(size)); err != nil {
		return 0, nil, err
	}
	return head[4], b.Bytes(), nil
}

// serveControl answers requests on a connection until the connection ends.
func (p *peerPort) serveControl(conn net.Conn, hello peerHello) {
	defer p.closeConn(conn)
	for {
		kind, body, err := readControl(conn)
		if err != nil {
			return
		}
		status, answer := p.carryOut(rpcKind(kind), &hello, body)
		_ = conn.SetWriteDeadline(time.Now().Add(p.limit(controlTimeout)))
		if err := writeControl(conn, status, answer); err != nil || status == noMember {
			return
		}
		_ = conn.SetWriteDeadline(time.Time{})
	}
}

// carryOut carries out a request and returns the answer with its status.
func (p *peerPort) carryOut(kind rpcKind, hello *peerHello, body []byte) (status byte, answer []byte) {
	if p.refusesRequest(kind, hello) {
		return noMember, []byte(noMemberText)
	}
	from := hello.From
	if hello.Cluster == "" {
		from = ""
	}
	answer, err := p.answer(kind, from, body)
	if err != nil {
		return failed, []byte(err.Error())
	}
	return answered, answer
}

func (p *peerPort) answer(kind rpcKind, from string, body []byte) (answer []byte, err error) {
	h := p.handlers[kind]
	if h == nil {
		return nil, fmt.Errorf("this node does not know control requests of kind %d: do all nodes run the same version?", kind)
	}
	if from == "" && kind != rpcJoin {
		return nil, errors.New("the requesting node has not joined the cluster")
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.limit(controlTimeout))
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			p.cfg.Logger.Error("a control request panicked", "kind", int(kind), "from", from, "panic", v, "stack", string(debug.Stack()))
			answer, err = nil, errors.New("internal error on the node")
		}
	}()
	answer, err = h(ctx, from, body)
	if err == nil && len(answer) > maxFrame-1 {
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxFrame)
	}
	return answer, err
}
