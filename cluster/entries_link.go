package cluster

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// entriesLink sends the entries of all groups to one other node. The groups' own goroutines write, a
// piece at a time.
type entriesLink struct {
	link
	writing sync.Mutex
}

// entriesLink returns the link to a node.
func (p *peerPort) entriesLink(node string) (*entriesLink, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("%w: %w", errNotSent, net.ErrClosed)
	}
	l := p.entries[node]
	if l == nil {
		l = &entriesLink{link: newLink(p, node, kindEntries)}
		p.entries[node] = l
	}
	return l, nil
}

// sentEntries is a request under way.
type sentEntries struct {
	link    *entriesLink
	number  uint32
	outcome chan groupOutcome
	since   time.Time
}

// await returns the answer to a request.
func (s sentEntries) await(ctx context.Context) (groupAnswer, error) {
	return s.link.await(ctx, s.number, s.outcome, s.since)
}

// entriesBuffers has buffers of at most keptEntriesBuffer bytes.
var entriesBuffers = sync.Pool{New: func() any { return new([]byte) }}

const keptEntriesBuffer = 256 << 10

// send sends a request of a group. The error is errOldPeer if the node takes no such connections, and
// wraps errNotSent if the request was certainly not delivered.
func (l *entriesLink) send(shard storage.Shard, args *raft.AppendEntriesRequest) (sentEntries, error) {
	s := sentEntries{link: l, since: time.Now()}
	l.port.noteEntries(args, s.since)
	var err error
	if s.number, s.outcome, err = l.register(s.since); err != nil {
		return s, err
	}
	conn, err := l.connection()
	if err != nil {
		l.abandon(s.number, time.Time{})
		return s, err
	}
	buf := entriesBuffers.Get().(*[]byte)
	b := *buf
	if n := entriesPieceHead + entriesSize(args); cap(b) < n {
		b = make([]byte, n)
	}
	b = appendEntriesRequest(b[:entriesPieceHead], shard, args)
	for at := entriesPieceHead; at < len(b) && err == nil; at += entriesPiece {
		end := min(at+entriesPiece, len(b))
		// The head takes the place of bytes that were sent before.
		putPieceHead(b[at-entriesPieceHead:at], s.number, end == len(b), end-at)
		err = l.write(conn, b[at-entriesPieceHead:end])
	}
	if *buf = b; cap(b) <= keptEntriesBuffer {
		entriesBuffers.Put(buf)
	}
	if err != nil {
		err = fmt.Errorf("%w: send entries to node %q: %w", errLinkEnded, l.node, err)
		l.fail(conn, err)
		l.abandon(s.number, time.Time{})
	}
	return s, err
}

func (l *entriesLink) write(conn net.Conn, piece []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	_ = conn.SetWriteDeadline(time.Now().Add(l.port.limit(raftTimeout)))
	_, err := conn.Write(piece)
	return err
}

// entriesPipeline sends a group's entries to a follower without waiting for the answers to earlier
// ones. At most two requests are under way, as Raft's own transport has it. Its goroutine ends with
// Close.
type entriesPipeline struct {
	link   *entriesLink
	shard  storage.Shard
	ctx    context.Context
	cancel context.CancelFunc
	sent   chan *entriesFuture
	done   chan raft.AppendFuture
}

// entriesFuture is a request of a pipeline. It implements raft.AppendFuture.
type entriesFuture struct {
	sentEntries
	args     *raft.AppendEntriesRequest
	resp     *raft.AppendEntriesResponse
	answered chan struct{}
	err      error
}

// Error waits for the answer.
func (f *entriesFuture) Error() error {
	<-f.answered
	return f.err
}

func (f *entriesFuture) Start() time.Time                      { return f.since }
func (f *entriesFuture) Request() *raft.AppendEntriesRequest   { return f.args }
func (f *entriesFuture) Response() *raft.AppendEntriesResponse { return f.resp }

func newEntriesPipeline(ctx context.Context, l *entriesLink, shard storage.Shard) *entriesPipeline {
	p := &entriesPipeline{link: l, shard: shard, sent: make(chan *entriesFuture), done: make(chan raft.AppendFuture)}
	p.ctx, p.cancel = context.WithCancel(ctx)
	go p.relay()
	return p
}

// relay passes the answers on, in the order of the requests.
func (p *entriesPipeline) relay() {
	for {
		select {
		case f := <-p.sent:
			a, err := f.await(p.ctx)
			if f.err = err; err == nil {
				a.appendResponse(f.resp)
			}
			close(f.answered)
			select {
			case p.done <- f:
			case <-p.ctx.Done():
				return
			}
		case <-p.ctx.Done():
			return
		}
	}
}

// AppendEntries sends a request. It waits while two are under way.
func (p *entriesPipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	s, err := p.link.send(p.shard, args)
	if err != nil {
		return nil, err
	}
	f := &entriesFuture{sentEntries: s, args: args, resp: resp, answered: make(chan struct{})}
	select {
	case p.sent <- f:
		return f, nil
	case <-p.ctx.Done():
		p.link.abandon(s.number, time.Time{})
		return nil, raft.ErrPipelineShutdown
	}
}

// Consumer returns the answers.
func (p *entriesPipeline) Consumer() <-chan raft.AppendFuture { return p.done }

// Close ends the pipeline. Requests under way may still be carried out.
func (p *entriesPipeline) Close() error {
	p.cancel()
	return nil
}
