package cluster

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// recordingTransport counts the requests that it is to send, and answers none by a pipeline.
type recordingTransport struct {
	*wire
	sent int
}

func (r *recordingTransport) AppendEntries(_ raft.ServerID, _ raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	r.sent++
	*resp = raft.AppendEntriesResponse{Term: args.Term, Success: true}
	return nil
}

func (r *recordingTransport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return recordingPipeline{r}, nil
}

type recordingPipeline struct{ to *recordingTransport }

func (p recordingPipeline) AppendEntries(*raft.AppendEntriesRequest, *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	p.to.sent++
	return nil, nil
}
func (recordingPipeline) Consumer() <-chan raft.AppendFuture { return nil }
func (recordingPipeline) Close() error                       { return nil }

// Raft counts by new members only after it has told its followers' goroutines of them. No follower may
// answer before that: a member that is removed would be counted for its own removal.
func TestTrackingTransport_HoldsAChangeOfMembersUntilRaftCountsByIt(t *testing.T) {
	t.Parallel()
	members := &raft.AppendEntriesRequest{Term: 5, Entries: []*raft.Log{{Type: raft.LogCommand, Term: 5}, {Type: raft.LogConfiguration, Term: 5}}}
	ways := map[string]func(*testing.T, *trackingTransport) func(*raft.AppendEntriesRequest) error{
		"by itself": func(_ *testing.T, w *trackingTransport) func(*raft.AppendEntriesRequest) error {
			return func(args *raft.AppendEntriesRequest) error {
				return w.AppendEntries("b", "b", args, &raft.AppendEntriesResponse{})
			}
		},
		"by pipeline": func(t *testing.T, w *trackingTransport) func(*raft.AppendEntriesRequest) error {
			p, err := w.AppendEntriesPipeline("b", "b")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close() })
			return func(args *raft.AppendEntriesRequest) error {
				_, err := p.AppendEntries(args, &raft.AppendEntriesResponse{})
				return err
			}
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &recordingTransport{wire: &wire{arrivals: make(chan raft.RPC), closed: make(chan struct{})}}
				w := newTrackingTransport(to, func() int64 { return time.Now().UnixNano() }, func() uint64 { return 0 }, nil)
				defer func() { _ = w.Close() }()
				var deposed atomic.Bool
				w.wanted = func(uint64, raft.ServerID) bool { return !deposed.Load() }
				send := way(t, w)
				for _, others := range []raft.Log{{Type: raft.LogCommand, Term: 5}, {Type: raft.LogConfiguration, Term: 4}} {
					if err := send(&raft.AppendEntriesRequest{Term: 5, Entries: []*raft.Log{&others}}); err != nil {
						t.Fatal(err)
					}
				}
				if to.sent != 2 {
					t.Fatalf("%d of 2 requests without new members were sent", to.sent)
				}

				ended := make(chan error, 1)
				go func() { ended <- send(members) }()
				time.Sleep(10 * redialEvery) // of the bubble's clock
				synctest.Wait()
				if to.sent != 2 {
					t.Error("new members were sent while Raft was busy with them")
				}
				if probe := <-w.Consumer(); probe.Command.(*raft.AppendEntriesRequest).Term != 0 {
					t.Errorf("Raft is asked %+v", probe.Command)
				}
				if err := <-ended; err != nil || to.sent != 3 {
					t.Errorf("%v, %d requests sent, want 3", err, to.sent)
				}

				go func() { ended <- send(members) }()
				synctest.Wait()
				deposed.Store(true)
				if err := <-ended; !errors.Is(err, errMembersBusy) || to.sent != 3 {
					t.Errorf("from a deposed leader: %v, %d requests sent, want 3", err, to.sent)
				}
			})
		})
	}
}
