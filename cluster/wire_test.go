package cluster

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"switchyard/storage"
)

// wire is one end of a test network's links, for one group.
type wire struct {
	network  *network
	shard    storage.Shard
	node     string
	arrivals chan raft.RPC
	closed   chan struct{}
	once     sync.Once
}

// wireTimeout bounds the wait for an answer. On a busy machine a member may answer late.
const wireTimeout = time.Second

var errCut = fmt.Errorf("%w: the link is cut", errLinkEnded)

func (w *wire) call(to raft.ServerAddress, command any, data io.Reader) (any, error) {
	timeout := time.NewTimer(wireTimeout)
	defer timeout.Stop()
	peer, late := w.network.link(w.shard, w.node, string(to))
	if peer == nil {
		return nil, errCut
	}
	if late > 0 {
		<-time.After(late)
	}
	answer := make(chan raft.RPCResponse, 1)
	select {
	case peer.arrivals <- raft.RPC{Command: command, Reader: data, RespChan: answer}:
	case <-peer.closed:
		return nil, errCut
	case <-timeout.C:
		return nil, errCut
	}
	select {
	case r := <-answer:
		back, late := w.network.link(w.shard, string(to), w.node)
		if back == nil { // the message arrived, and its answer is lost
			<-timeout.C
			return nil, errCut
		}
		if late > 0 {
			<-time.After(late)
		}
		return r.Response, r.Error
	case <-timeout.C:
		return nil, errCut
	}
}

func ask[R any](w *wire, to raft.ServerAddress, command any, data io.Reader, resp *R) error {
	answer, err := w.call(to, command, data)
	if r, ok := answer.(*R); ok && err == nil {
		*resp = *r
	}
	return err
}

func (w *wire) Consumer() <-chan raft.RPC     { return w.arrivals }
func (w *wire) LocalAddr() raft.ServerAddress { return raft.ServerAddress(w.node) }

func (w *wire) AppendEntries(_ raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	err := ask(w, to, args, nil, resp)
	if err == nil && resp.Success && len(args.Entries) > 0 {
		w.network.tookEntries(shardLink{w.shard, w.node, string(to)})
	}
	return err
}

func (w *wire) RequestVote(_ raft.ServerID, to raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	return ask(w, to, args, nil, resp)
}

func (w *wire) RequestPreVote(_ raft.ServerID, to raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	return ask(w, to, args, nil, resp)
}

func (w *wire) TimeoutNow(_ raft.ServerID, to raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	return ask(w, to, args, nil, resp)
}

func (w *wire) InstallSnapshot(_ raft.ServerID, to raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	return ask(w, to, args, data, resp)
}

func (w *wire) EncodePeer(_ raft.ServerID, to raft.ServerAddress) []byte { return []byte(to) }
func (w *wire) DecodePeer(name []byte) raft.ServerAddress                { return raft.ServerAddress(name) }
func (w *wire) SetHeartbeatHandler(func(raft.RPC))                       {}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	return nil
}

func (w *wire) AppendEntriesPipeline(_ raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	p := &wirePipeline{wire: w, to: to, sent: make(chan *wireFuture, 16), done: make(chan raft.AppendFuture, 16), quit: make(chan struct{})}
	go p.run()
	return p, nil
}

// wirePipeline sends one request after another, ahead of the answers' readers.
type wirePipeline struct {
	wire *wire
	to   raft.ServerAddress
	sent chan *wireFuture
	done chan raft.AppendFuture
	quit chan struct{}
	once sync.Once
}

type wireFuture struct {
	began time.Time
	args  *raft.AppendEntriesRequest
	resp  *raft.AppendEntriesResponse
	err   error
}

func (f *wireFuture) Error() error                          { return f.err }
func (f *wireFuture) Start() time.Time                      { return f.began }
func (f *wireFuture) Request() *raft.AppendEntriesRequest   { return f.args }
func (f *wireFuture) Response() *raft.AppendEntriesResponse { return f.resp }

func (p *wirePipeline) run() {
	for {
		select {
		case f := <-p.sent:
			select { // a request of a pipeline that is held has not left yet
			case <-p.wire.network.released(p.wire.node, string(p.to)):
			case <-p.quit:
				return
			}
			f.err = p.wire.AppendEntries("", p.to, f.args, f.resp)
			select {
			case p.done <- f:
			case <-p.quit:
				return
			}
		case <-p.quit:
			return
		}
	}
}

func (p *wirePipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	f := &wireFuture{began: time.Now(), args: args, resp: resp}
	select {
	case p.sent <- f:
		return f, nil
	case <-p.quit:
		return nil, raft.ErrPipelineShutdown
	}
}

func (p *wirePipeline) Consumer() <-chan raft.AppendFuture { return p.done }

func (p *wirePipeline) Close() error {
	p.once.Do(func() { close(p.quit) })
	return nil
}
