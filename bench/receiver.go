package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
)

// receiver takes webhook deliveries within the generator's process, with little work, so
// that the node gets the processors: it reads only as much HTTP/1.1 as the node's
// deliveries need and answers 200 at once. Its goroutines, one for each connection and
// one that accepts them, end in stop.
type receiver struct {
	url  string
	took atomic.Int64 // deliveries
	// arrived sees the path and the body of each before it is answered, from the
	// goroutine of its connection; nil: it is not called.
	arrived func(path, body []byte)

	listener net.Listener
	all      sync.WaitGroup
	mu       sync.Mutex
	open     map[net.Conn]struct{} // nil once it was stopped
}

const (
	// largestDelivery is the size of a connection's buffer for one, head included, in bytes.
	largestDelivery = 64 << 10
	// mostDelivering connections are served at a time. A node has a few to each webhook.
	mostDelivering = 256
)

func startReceiver(ctx context.Context, arrived func(path, body []byte)) (*receiver, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("bench: a receiver: %w", err)
	}
	r := &receiver{url: "http://" + l.Addr().String(), arrived: arrived, listener: l, open: map[net.Conn]struct{}{}}
	r.all.Go(r.accept)
	return r, nil
}

func (r *receiver) accept() {
	for {
		c, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // a delivery that is not taken shows in the count
			continue
		}
		r.mu.Lock()
		serve := r.open != nil && len(r.open) < mostDelivering
		if serve {
			r.open[c] = struct{}{}
			r.all.Go(func() { r.serve(c) })
		}
		r.mu.Unlock()
		if !serve {
			_ = c.Close()
		}
	}
}

// serve takes the deliveries of a connection, one after another.
func (r *receiver) serve(c net.Conn) {
	defer func() {
		_ = c.Close()
		r.mu.Lock()
		delete(r.open, c)
		r.mu.Unlock()
	}()
	buf := make([]byte, largestDelivery)
	have := 0
	for {
		whole, path, body, err := delivery(buf[:have])
		if err != nil || whole > len(buf) {
			return
		}
		if whole == 0 || whole > have {
			if have == len(buf) {
				return
			}
			n, err := c.Read(buf[have:])
			have += n
			if err != nil {
				return
			}
			continue
		}
		if r.arrived != nil {
			r.arrived(path, body)
		}
		r.took.Add(1) // after arrived: a reader of the count finds the delivery noted
		if _, err := c.Write(thanks); err != nil {
			return
		}
		have = copy(buf, buf[whole:have])
	}
}

var thanks = []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

// delivery finds a request's length, 0 until its head is there, and its path and
// body once all of it is.
func delivery(b []byte) (whole int, path, body []byte, err error) {
	head := bytes.Index(b, []byte("\r\n\r\n"))
	if head < 0 {
		return 0, nil, nil, nil
	}
	head += 4
	method, rest, _ := bytes.Cut(b[:head], []byte(" "))
	path, _, ok := bytes.Cut(rest, []byte(" "))
	value, found := headValue(b[:head], "Content-Length: ")
	if !ok || !found || string(method) != "POST" {
		return 0, nil, nil, fmt.Errorf("not a delivery: %.40q", b)
	}
	length, err := strconv.Atoi(string(value))
	if err != nil || length < 0 || length > largestAnswer {
		return 0, nil, nil, fmt.Errorf("a delivery with the length %.40q", value)
	}
	if whole = head + length; whole <= len(b) {
		body = b[head:whole]
	}
	return whole, path, body, nil
}

// stop closes all connections and returns when all goroutines have ended.
func (r *receiver) stop() {
	_ = r.listener.Close()
	r.mu.Lock()
	for c := range r.open {
		_ = c.Close()
	}
	r.open = nil
	r.mu.Unlock()
	r.all.Wait()
}
