package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/cluster/gossip"
	"switchyard/cluster/membership"
	"switchyard/cluster/raftstore"
)

// fakeGossip returns what a test gives it.
type fakeGossip struct {
	contacts []gossip.ContactResult
	seen     []gossip.Node
}

func (v fakeGossip) ContactSeeds(context.Context) []gossip.ContactResult { return v.contacts }
func (v fakeGossip) Alive() []gossip.Node                                { return v.seen }
func (v fakeGossip) Changes() <-chan struct{}                            { return nil }

// rpcFunc answers every request by address.
type rpcFunc func(addr string, request *joinRequest) (*joinReply, error)

func (f rpcFunc) call(context.Context, string, rpcKind, []byte) ([]byte, error) {
	return nil, errors.New("a bootstrap sends to addresses, not names")
}

func (f rpcFunc) callAddr(_ context.Context, addr string, _ rpcKind, body []byte) ([]byte, error) {
	return viaJSON(addr, body, f)
}

func TestBootstrap_Round(t *testing.T) {
	t.Parallel()
	long := time.Now().Add(-time.Minute)
	here := func(name, cluster string) gossip.Node {
		return gossip.Node{Meta: gossip.Meta{Node: name, Instance: "of-" + name, Cluster: cluster, Peer: name + ":1"}, State: membership.NodeAlive, Since: long}
	}
	votes := func(string, *joinRequest) (*joinReply, error) { return &joinReply{Voted: true}, nil }
	takes := func(_ string, _ *joinRequest) (*joinReply, error) {
		return &joinReply{Cluster: "c", Shards: 7, List: &membership.List{}}, nil
	}
	other := []gossip.ContactResult{{Addr: "x:1", Outcome: gossip.ContactOtherCluster, Cluster: "d"}}
	// The node is "m". The outcome is in forms or in joins.
	tests := map[string]struct {
		see    fakeGossip
		expect int
		answer rpcFunc
		data   bool // of cluster "c" already
		forms  bool
		joins  string // cluster
		waits  string // the cause of the wait
		fails  string
	}{
		"nobody answers":              {see: fakeGossip{contacts: []gossip.ContactResult{{Addr: "x:1", Outcome: gossip.ContactUnreachable}}}, waits: "no node answers at x:1"},
		"only itself":                 {waits: "names only this node"},
		"only itself, expecting":      {expect: 3, waits: "names only this node"},
		"other key":                   {see: fakeGossip{contacts: []gossip.ContactResult{{Addr: "x:1", Outcome: gossip.ContactOtherKey}}}, waits: "another --gossip-key"},
		"empty nodes":                 {see: fakeGossip{seen: []gossip.Node{here("z", "")}}, waits: "--bootstrap-expect"},
		"too few":                     {see: fakeGossip{seen: []gossip.Node{here("z", "")}}, expect: 3, answer: votes, waits: "2 of the 3"},
		"enough, lowest":              {see: fakeGossip{seen: []gossip.Node{here("y", ""), here("z", "")}}, expect: 3, answer: votes, forms: true},
		"enough, one restarted":       {see: fakeGossip{seen: []gossip.Node{here("z", ""), here("z", "")}}, expect: 3, answer: votes, waits: "2 of the 3"},
		"enough, not lowest":          {see: fakeGossip{seen: []gossip.Node{here("a", ""), here("z", "")}}, expect: 3, answer: votes, waits: `node "a" is to form`},
		"enough, own name taken":      {see: fakeGossip{seen: []gossip.Node{here("m", ""), here("z", "")}}, expect: 3, answer: votes, fails: "--node-name"},
		"more than enough":            {see: fakeGossip{seen: []gossip.Node{here("x", ""), here("y", ""), here("z", "")}}, expect: 3, answer: votes, forms: true},
		"enough, voted for others":    {see: fakeGossip{seen: []gossip.Node{here("y", ""), here("z", "")}}, expect: 3, answer: func(string, *joinRequest) (*joinReply, error) { return nil, errVoted }, waits: "does not let this node form"},
		"enough, one found a cluster": {see: fakeGossip{seen: []gossip.Node{here("y", ""), here("z", "")}}, expect: 3, answer: takes, waits: "belongs to a cluster"},
		"a cluster":                   {see: fakeGossip{seen: []gossip.Node{here("a", ""), here("z", "c")}}, expect: 3, answer: takes, joins: "c"},
		"a cluster, busy":             {see: fakeGossip{seen: []gossip.Node{here("z", "c")}}, answer: func(string, *joinRequest) (*joinReply, error) { return nil, errNoDirectory }, waits: errNoDirectory.Error()},
		"a cluster, one busy": {see: fakeGossip{seen: []gossip.Node{here("y", "c"), here("z", "c")}}, joins: "c", answer: func(addr string, _ *joinRequest) (*joinReply, error) {
			if addr == "y:1" {
				return nil, errNoDirectory
			}
			return takes(addr, nil)
		}},
		"a cluster, refused": {see: fakeGossip{seen: []gossip.Node{here("z", "c")}}, fails: "not you", answer: func(string, *joinRequest) (*joinReply, error) {
			return &joinReply{Refusal: &membership.PermanentError{Reason: membership.ReasonNameTaken, Message: "not you"}}, nil
		}},
		"a cluster, strange answer": {see: fakeGossip{seen: []gossip.Node{here("z", "c")}}, fails: "does not understand", answer: votes},
		"two clusters":              {see: fakeGossip{seen: []gossip.Node{here("y", "c"), here("z", "d")}}, answer: takes, fails: "different clusters"},
		"data, other cluster":       {see: fakeGossip{contacts: other}, data: true, fails: "correct --join"},
		"data, other and nobody":    {see: fakeGossip{contacts: append([]gossip.ContactResult{{Addr: "y:1", Outcome: gossip.ContactUnreachable}}, other...)}, data: true, waits: "no node answers at y:1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := bootstrapOf(t, "m", test.expect, test.see, test.answer)
			if test.data {
				f.cfg.Identity.id.Cluster = "c"
			}
			before := f.identity().Cluster
			var reason string
			var err error
			if test.data {
				reason, err = f.assess(test.see.contacts)
			} else {
				reason, err = f.try(t.Context())
			}
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("%v, want %q", err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(reason, test.waits) || (reason == "") != (test.waits == "") {
				t.Errorf("waits: %q, want %q", reason, test.waits)
			}
			id := f.identity()
			switch {
			case test.forms && (id.Cluster == "" || id.Shards != DefaultShards):
				t.Errorf("formed nothing: %+v", id)
			case test.joins != "" && (id.Cluster != test.joins || id.Shards != 7):
				t.Errorf("joined %+v", id)
			case !test.forms && test.joins == "" && id.Cluster != before:
				t.Errorf("became %+v", id)
			}
			if row, err := raftstore.ReadRow(f.cfg.Identity.db, raftstore.Key(0, raftstore.KindIdentity, nil)); err != nil || (row != nil) != (test.forms || test.joins != "") {
				t.Errorf("on disk: %s, %v", row, err)
			}
		})
	}
}

func bootstrapOf(t *testing.T, name string, expect int, see gossipView, answer rpcFunc) *bootstrap {
	t.Helper()
	store := openStore(t, vfs.NewMem(), "data")
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return newBootstrap(bootstrapConfig{
		Identity: &identityRow{db: store.Raft(), id: identity{Node: name, Instance: "of-" + name}}, Expect: expect, Gossip: see, Calls: answer, Logger: quiet(),
		Self: func() membership.Record {
			return membership.Record{Name: name, Instance: "of-" + name, Peer: name + ":1"}
		},
		AdoptList: func(*membership.List) error { return nil }, tune: fastBootstrap,
	})
}

func TestBootstrap_GivesUpOnAnotherKeyOnly(t *testing.T) {
	t.Parallel()
	f := bootstrapOf(t, "m", 0, fakeGossip{}, nil)
	key, met := []gossip.ContactResult{{Addr: "x:1", Outcome: gossip.ContactOtherKey}}, []gossip.ContactResult{{Addr: "x:1", Outcome: gossip.ContactOK}}
	for _, contacts := range [][]gossip.ContactResult{key, key, met, key, key} {
		if _, err := f.assess(contacts); err != nil {
			t.Fatal(err)
		}
	}
	_, err := f.assess(key)
	wantRefusal(t, err, membership.ReasonOtherGossipKey, "the nodes at x:1 use another --gossip-key")
}

// Five nodes expect three. Each of them sees another part of the rest.
func TestBootstrap_OneOfManyWhoSeeDifferentParts(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e"}
	parts := map[string]string{"a": "bc", "b": "cde", "c": "de", "d": "ce", "e": "bd"}
	for round := range 20 {
		nodes := map[string]*bootstrap{}
		ask := rpcFunc(func(addr string, request *joinRequest) (*joinReply, error) {
			return voteFor(t, nodes[addr[:1]], request)
		})
		for _, name := range names {
			var see fakeGossip
			for _, other := range parts[name] {
				see.seen = append(see.seen, gossip.Node{Meta: gossip.Meta{Node: string(other), Instance: "of-" + string(other), Peer: string(other) + ":1"}, State: membership.NodeAlive})
			}
			nodes[name] = bootstrapOf(t, name, 3, see, ask)
		}
		var all sync.WaitGroup
		for i := range names {
			name := names[(i+round)%len(names)]
			all.Go(func() {
				for range 5 {
					if _, err := nodes[name].try(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		formed := 0
		for _, f := range nodes {
			if f.identity().joined() {
				formed++
			}
		}
		if formed > 1 {
			t.Fatalf("round %d: %d clusters", round, formed)
		}
	}
}

func TestBootstrap_VotesExpire(t *testing.T) {
	t.Parallel()
	f := bootstrapOf(t, "m", 3, fakeGossip{}, nil)
	f.times.voteTTL = time.Hour
	ask := func(name string) error {
		_, err := voteFor(t, f, &joinRequest{Node: membership.Record{Name: name, Instance: name}, Vote: true})
		return err
	}
	if err := ask("z"); err == nil {
		t.Error("voted for a node of a higher name")
	}
	if err := ask("b"); err != nil {
		t.Fatal(err)
	}
	if err := ask("b"); err != nil {
		t.Errorf("the same again: %v", err)
	}
	if err := ask("a"); !errors.Is(err, errVoted) {
		t.Errorf("to a second one: %v", err)
	}
	f.voteExpires = time.Now()
	if err := ask("a"); err != nil {
		t.Errorf("after its time: %v", err)
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	store := openStore(t, vfs.NewMem(), "data")
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	read := func(cfg Config) identity {
		t.Helper()
		cfg.Store = store
		id, err := identify(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	waiting := read(Config{NodeName: "a", Join: []string{"x"}, Shards: 3})
	if waiting.joined() || waiting.Instance == "" {
		t.Fatalf("%+v", waiting)
	}
	if _, err := Inspect(store); err == nil {
		t.Error("inspected a node that never joined")
	}
	formed := read(Config{Shards: 5})
	if !formed.joined() || formed.Instance != waiting.Instance || formed.Shards != 5 || formed.Node != "a" {
		t.Errorf("without --join it became %+v", formed)
	}
	if again := read(Config{Join: []string{"x"}}); again != formed {
		t.Errorf("with data and --join: %+v", again)
	}

	// A store of the first release.
	old := fmt.Sprintf(`{"format":1,"cluster":%q,"node":"a","shards":5}`, formed.Cluster)
	if err := store.Raft().Set(raftstore.Key(0, raftstore.KindIdentity, nil), []byte(old), nil); err != nil {
		t.Fatal(err)
	}
	upgraded := read(Config{})
	if upgraded.Instance == "" || upgraded.Cluster != formed.Cluster || upgraded.Format != identityUnnumbered {
		t.Errorf("upgraded to %+v", upgraded)
	}
	if again := read(Config{}); again != upgraded {
		t.Errorf("and then %+v", again)
	}
	for says, cfg := range map[string]Config{
		"needs --join": {BootstrapExpect: 3}, "can't be opened as": {NodeName: "b"}, "fixed when it was created": {Shards: 4},
	} {
		cfg.Store = store
		if _, err := identify(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// viaJSON carries a request and its answer as a call does.
func viaJSON(addr string, body []byte, answer rpcFunc) ([]byte, error) {
	var request joinRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	reply, err := answer(addr, &request)
	if err != nil {
		return nil, err
	}
	return json.Marshal(reply)
}

func voteFor(t *testing.T, f *bootstrap, request *joinRequest) (*joinReply, error) {
	t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	answer, err := f.handleVote(t.Context(), request.Node.Name, body)
	if err != nil {
		return nil, err
	}
	var reply joinReply
	return &reply, json.Unmarshal(answer, &reply)
}
