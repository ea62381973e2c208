package httpapi

import (
	"context"
	"net"
	"sync"
)

// goodbyes are the connections with TLS that are being closed. With its last bytes TLS tells the other side
// that nothing is missing, and a client that reads nothing makes it wait up to 5 seconds for room in the
// socket. Nobody waits for these clients: the streams of a lost shard end one after another before the shard
// is given up, and fasthttp closes idle connections so when the node stops.
//
// Each connection has a goroutine until it is closed. end waits for all of them, and later ones get no last
// bytes.
type goodbyes struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	ended chan struct{} // closed when no connection is left; nil before end
}

// close closes a connection, one with TLS on a goroutine of its own.
func (g *goodbyes) close(c net.Conn) error {
	if socket(c) == c {
		return c.Close()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended != nil {
		return cut(c)
	}
	if g.conns == nil {
		g.conns = map[net.Conn]struct{}{}
	}
	if _, closing := g.conns[c]; closing {
		return nil // fasthttp closes idle connections again and again until it has stopped
	}
	g.conns[c] = struct{}{}
	go func() {
		_ = c.Close()
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.conns, c)
		g.tell()
	}()
	return nil
}

// tell ends the wait of end if no connection is left. The caller holds mu.
func (g *goodbyes) tell() {
	if g.ended != nil && len(g.conns) == 0 {
		close(g.ended)
	}
}

// end returns when all connections are closed. Once ctx ends it waits for no client any more.
func (g *goodbyes) end(ctx context.Context) {
	g.mu.Lock()
	if g.ended == nil {
		g.ended = make(chan struct{})
		g.tell()
	}
	g.mu.Unlock()
	select {
	case <-g.ended:
		return
	case <-ctx.Done():
	}
	g.mu.Lock()
	for c := range g.conns {
		_ = socket(c).Close()
	}
	g.mu.Unlock()
	<-g.ended
}
