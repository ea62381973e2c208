package httpapi

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipedStream is a stream whose client is at the other end of a pipe.
type pipedStream struct {
	*stream
	client net.Conn
	source *fakeStream
}

// streamsOf makes streams of a server within the limits.
func streamsOf(t *testing.T, limits Limits) (*Server, func(workspace byte) *pipedStream) {
	t.Helper()
	s, err := newServer(Config{Engine: &fakeEngine{}, Logger: slog.New(slog.DiscardHandler), Limits: limits}, fakeRoutes())
	if err != nil {
		t.Fatal(err)
	}
	return s, func(workspace byte) *pipedStream {
		here, there := net.Pipe()
		p := &pipedStream{client: there, source: newFakeStream()}
		p.stream = &stream{server: s, source: p.source, conn: &conn{Conn: here, owner: &listener{server: s}}}
		t.Cleanup(p.End)
		p.parts.to = account{kind: workspaceAccount, workspace: [16]byte{workspace}}
		return p
	}
}

// send sends a part, and reports whether there was memory for it.
func (p *pipedStream) send(size int) bool {
	if !p.Reserve(size) {
		return false
	}
	p.Send(make([]byte, size), func() {})
	return true
}

// trickle reads less than 32 KiB every ten seconds, for as long as the stream lasts.
func (p *pipedStream) trickle() {
	for {
		if _, err := io.CopyN(io.Discard, p.client, 30<<10); err != nil {
			return
		}
		time.Sleep(10 * time.Second)
	}
}

// Parts of streams that clients do not take are charged to the workspace, up to half of its
// bound: the rest is for other requests.
func TestStream_PartsNotTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const page = 1 << 20
		s, open := streamsOf(t, Limits{Bytes: 16 * page, WorkspaceBytes: 8 * page})
		var held []*pipedStream
		for range 4 {
			p := open(1)
			held = append(held, p)
			if !p.send(page) {
				t.Fatal("there was no memory for a part")
			}
		}
		if got := s.budget.all.Load(); got != 4*page {
			t.Errorf("%d bytes are in flight", got)
		}
		p := open(1)
		for range 2 {
			if p.send(page) {
				t.Error("the parts of a workspace hold more than half of its bound")
			}
		}
		if !open(1).send(freeBytes) {
			t.Error("there was no memory for a small part")
		}
		if err := s.budget.raise(&conn{}, p.parts.to, account{}, answerPart, 4*page, false); err != nil {
			t.Errorf("there was no memory for an answer: %v", err)
		}
		if !open(2).send(page) {
			t.Error("there was no memory for another workspace")
		}
		// A client takes its part, and the others leave.
		if _, err := io.CopyN(io.Discard, held[0].client, page); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := s.budget.all.Load(); got != 8*page {
			t.Errorf("%d bytes are in flight after a part was taken", got)
		}
		for _, p := range held {
			p.End()
		}
		synctest.Wait()
		if got := s.budget.all.Load(); got != 5*page {
			t.Errorf("%d bytes are in flight at the end", got)
		}
	})
}

// A part that is larger than the bounds is sent when nothing else is in flight.
func TestStream_PartLargerThanTheBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, open := streamsOf(t, Limits{Bytes: 1 << 20, WorkspaceBytes: 1 << 19})
		p := open(1)
		if !p.send(4 << 20) {
			t.Fatal("there was no memory for a part")
		}
		if open(1).send(4 << 20) {
			t.Error("there was memory for two")
		}
		if _, err := io.CopyN(io.Discard, p.client, 4<<20); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := s.budget.all.Load(); got != 0 {
			t.Errorf("%d bytes are in flight", got)
		}
	})
}

// A client that takes little at a time keeps a part for as long as others have room, and
// otherwise for about a minute.
func TestStream_OfWhoTrickles(t *testing.T) {
	t.Parallel()
	for _, others := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const page = 2 << 20
			s, open := streamsOf(t, Limits{Bytes: 16 * page, WorkspaceBytes: 4 * page})
			p := open(1)
			p.send(page)
			if others {
				if err := s.budget.raise(&conn{}, p.parts.to, account{}, bodyPart, page, false); err != nil {
					t.Fatal(err)
				}
			}
			go p.trickle()
			time.Sleep(50 * time.Second)
			if p.ended.Load() {
				t.Error("the stream ended early")
			}
			time.Sleep(30 * time.Second)
			if got := p.ended.Load(); got != others {
				t.Errorf("others need memory: %t; the stream has ended: %t", others, got)
			}
			p.End()
			time.Sleep(time.Minute)
		})
	}
}

// The engine's streams are charged to the workspace.
func TestStream_ChargesItsWorkspace(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.Limits = Limits{Bytes: 128 << 20, WorkspaceBytes: 64 << 20} })
	f := newFakeStream()
	b.engine.stream = f
	_, r := listenTo(t, b)
	l := <-f.started
	large := bytes.Repeat([]byte("data: x\n"), 2<<20)
	ready := make(chan struct{})
	if !l.Reserve(len(large)) || l.Send(large, func() { close(ready) }) {
		t.Fatal("16 MiB were taken at once, or not at all")
	}
	b.budget.mu.Lock()
	for to, n := range b.budget.by {
		if to.kind != workspaceAccount || to.workspace == [16]byte{} || n != int64(len(large)) {
			t.Errorf("%d bytes of %+v", n, to)
		}
	}
	if len(b.budget.by) != 1 {
		t.Errorf("%d accounts have bytes", len(b.budget.by))
	}
	b.budget.mu.Unlock()
	if _, err := io.CopyN(io.Discard, r, int64(len(large))); err != nil {
		t.Fatal(err)
	}
	<-ready
	if got := b.budget.all.Load(); got != 0 {
		t.Errorf("%d bytes are in flight", got)
	}
	l.End()
}

// The body of a request for a stream is given back when the stream begins.
func TestStream_BodyOfItsRequest(t *testing.T) {
	t.Parallel()
	const size = 200 << 10
	b := setup(t, func(c *Config) { c.Limits.Bytes = 8 << 20 })
	f := newFakeStream()
	b.engine.stream = f
	c, _ := dial(t, b.addr)
	request := "GET " + streamPath + " HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer " + token + "\r\nContent-Length: " + strconv.Itoa(size) + "\r\n\r\n"
	if _, err := io.WriteString(c, request+strings.Repeat(" ", size)); err != nil {
		t.Fatal(err)
	}
	listener := <-f.started
	if n := b.budget.all.Load(); n != 0 {
		t.Errorf("%d bytes are charged while the stream lasts", n)
	}
	listener.End()
}
