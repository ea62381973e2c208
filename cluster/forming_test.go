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
)

// view is gossip as a test wants it.
type view struct {
	contacts []contact
	seen     []sighting
}

func (v view) contactSeeds(context.Context) []contact { return v.contacts }
func (v view) live() []sighting                       { return v.seen }
func (v view) changes() <-chan struct{}               { return nil }

// rpcFunc answers every request by address.
type rpcFunc func(addr string, request *joinRequest) (*joinReply, error)

func (f rpcFunc) call(context.Context, string, rpcKind, []byte) ([]byte, error) {
	return nil, errors.New("forming knows no names")
}

func (f rpcFunc) callAddr(_ context.Context, addr string, _ rpcKind, body []byte) ([]byte, error) {
	return viaJSON(addr, body, f)
}

func TestForming_Round(t *testing.T) {
	t.Parallel()
	long := time.Now().Add(-time.Minute)
	here := func(name, cluster string) sighting {
		return sighting{card: card{Node: name, Instance: "of-" + name, Cluster: cluster, Peer: name + ":1"}, state: NodeAlive, since: long}
	}
	pledges := func(string, *joinRequest) (*joinReply, error) { return &joinReply{Pledged: true}, nil }
	takes := func(_ string, _ *joinRequest) (*joinReply, error) {
		return &joinReply{Cluster: "c", Shards: 7, Roster: &roster{}}, nil
	}
	other := []contact{{addr: "x:1", kind: contactForeign, cluster: "d"}}
	// The node is "m"; forms and joins tell what becomes of it.
	tests := map[string]struct {
		see    view
		expect int
		answer rpcFunc
		data   bool // of cluster "c" already
		forms  bool
		joins  string // cluster
		waits  string // for what
		fails  string
	}{
		"nobody answers":              {see: view{contacts: []contact{{addr: "x:1", kind: contactNone}}}, waits: "nobody answers at x:1"},
		"only itself":                 {waits: "no node but this one"},
		"only itself, expecting":      {expect: 3, waits: "no node but this one"},
		"other key":                   {see: view{contacts: []contact{{addr: "x:1", kind: contactKey}}}, waits: "another --gossip-key"},
		"empty nodes":                 {see: view{seen: []sighting{here("z", "")}}, waits: "--bootstrap-expect"},
		"too few":                     {see: view{seen: []sighting{here("z", "")}}, expect: 3, answer: pledges, waits: "2 of the 3"},
		"enough, lowest":              {see: view{seen: []sighting{here("y", ""), here("z", "")}}, expect: 3, answer: pledges, forms: true},
		"enough, one restarted":       {see: view{seen: []sighting{here("z", ""), here("z", "")}}, expect: 3, answer: pledges, waits: "2 of the 3"},
		"enough, not lowest":          {see: view{seen: []sighting{here("a", ""), here("z", "")}}, expect: 3, answer: pledges, waits: `node "a" is to form`},
		"enough, own name taken":      {see: view{seen: []sighting{here("m", ""), here("z", "")}}, expect: 3, answer: pledges, fails: "--node-name"},
		"more than enough":            {see: view{seen: []sighting{here("x", ""), here("y", ""), here("z", "")}}, expect: 3, answer: pledges, forms: true},
		"enough, pledged to others":   {see: view{seen: []sighting{here("y", ""), here("z", "")}}, expect: 3, answer: func(string, *joinRequest) (*joinReply, error) { return nil, errPledged }, waits: "does not let this node form"},
		"enough, one found a cluster": {see: view{seen: []sighting{here("y", ""), here("z", "")}}, expect: 3, answer: takes, waits: "belongs to a cluster"},
		"a cluster":                   {see: view{seen: []sighting{here("a", ""), here("z", "c")}}, expect: 3, answer: takes, joins: "c"},
		"a cluster, busy":             {see: view{seen: []sighting{here("z", "c")}}, answer: func(string, *joinRequest) (*joinReply, error) { return nil, errNoDirectory }, waits: errNoDirectory.Error()},
		"a cluster, one busy": {see: view{seen: []sighting{here("y", "c"), here("z", "c")}}, joins: "c", answer: func(addr string, _ *joinRequest) (*joinReply, error) {
			if addr == "y:1" {
				return nil, errNoDirectory
			}
			return takes(addr, nil)
		}},
		"a cluster, refused": {see: view{seen: []sighting{here("z", "c")}}, fails: "not you", answer: func(string, *joinRequest) (*joinReply, error) {
			return &joinReply{Refusal: &denial{Reason: refusedName, Message: "not you"}}, nil
		}},
		"a cluster, strange answer": {see: view{seen: []sighting{here("z", "c")}}, fails: "does not understand", answer: pledges},
		"two clusters":              {see: view{seen: []sighting{here("y", "c"), here("z", "d")}}, answer: takes, fails: "different clusters"},
		"data, other cluster":       {see: view{contacts: other}, data: true, fails: "correct --join"},
		"data, other and nobody":    {see: view{contacts: append([]contact{{addr: "y:1", kind: contactNone}}, other...)}, data: true, waits: "nobody answers at y:1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := formingOf(t, "m", test.expect, test.see, test.answer)
			if test.data {
				f.id.Cluster = "c"
			}
			before := f.identity().Cluster
			var why string
			var err error
			if test.data {
				why, err = f.weigh(test.see.contacts)
			} else {
				why, err = f.round(t.Context())
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
			if !strings.Contains(why, test.waits) || (why == "") != (test.waits == "") {
				t.Errorf("waits: %q, want %q", why, test.waits)
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
			if row, err := readRow(f.cfg.Raft, raftKey(0, kindIdentity, nil)); err != nil || (row != nil) != (test.forms || test.joins != "") {
				t.Errorf("on disk: %s, %v", row, err)
			}
		})
	}
}

func formingOf(t *testing.T, name string, expect int, see gatherer, answer rpcFunc) *forming {
	t.Helper()
	store := openStore(t, vfs.NewMem(), "data")
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return newForming(identity{Node: name, Instance: "of-" + name}, formingConfig{
		Raft: store.Raft(), Expect: expect, Gossip: see, Calls: answer, Logger: quiet(),
		Self:  func() record { return record{Name: name, Instance: "of-" + name, Peer: name + ":1"} },
		Adopt: func(*roster) error { return nil }, tune: hurryForming,
	})
}

func TestForming_GivesUpOnAnotherKeyOnly(t *testing.T) {
	t.Parallel()
	f := formingOf(t, "m", 0, view{}, nil)
	key, met := []contact{{addr: "x:1", kind: contactKey}}, []contact{{addr: "x:1", kind: contactMet}}
	for _, contacts := range [][]contact{key, key, met, key, key} {
		if _, err := f.weigh(contacts); err != nil {
			t.Fatal(err)
		}
	}
	_, err := f.weigh(key)
	wantRefusal(t, err, refusedKey, "the nodes at x:1 use another --gossip-key")
}

// TestForming_OneOfManyWhoSeeDifferentParts: five nodes, three expected, each of
// which sees another part of the rest.
func TestForming_OneOfManyWhoSeeDifferentParts(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e"}
	parts := map[string]string{"a": "bc", "b": "cde", "c": "de", "d": "ce", "e": "bd"}
	for round := range 20 {
		nodes := map[string]*forming{}
		ask := rpcFunc(func(addr string, request *joinRequest) (*joinReply, error) {
			return pledgeOf(t, nodes[addr[:1]], request)
		})
		for _, name := range names {
			var see view
			for _, other := range parts[name] {
				see.seen = append(see.seen, sighting{card: card{Node: string(other), Instance: "of-" + string(other), Peer: string(other) + ":1"}, state: NodeAlive})
			}
			nodes[name] = formingOf(t, name, 3, see, ask)
		}
		var all sync.WaitGroup
		for i := range names {
			name := names[(i+round)%len(names)]
			all.Go(func() {
				for range 5 {
					if _, err := nodes[name].round(t.Context()); err != nil {
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

func TestForming_PledgesRunOut(t *testing.T) {
	t.Parallel()
	f := formingOf(t, "m", 3, view{}, nil)
	f.times.pledge = time.Hour
	ask := func(name string) error {
		_, err := pledgeOf(t, f, &joinRequest{Node: record{Name: name, Instance: name}, Pledge: true})
		return err
	}
	if err := ask("z"); err == nil {
		t.Error("pledged to a node of a higher name")
	}
	if err := ask("b"); err != nil {
		t.Fatal(err)
	}
	if err := ask("b"); err != nil {
		t.Errorf("the same again: %v", err)
	}
	if err := ask("a"); !errors.Is(err, errPledged) {
		t.Errorf("to a second one: %v", err)
	}
	f.until = time.Now()
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
	if err := store.Raft().Set(raftKey(0, kindIdentity, nil), []byte(old), nil); err != nil {
		t.Fatal(err)
	}
	upgraded := read(Config{})
	if upgraded.Instance == "" || upgraded.Cluster != formed.Cluster || upgraded.Format != identityFormat {
		t.Errorf("upgraded to %+v", upgraded)
	}
	if again := read(Config{}); again != upgraded {
		t.Errorf("and then %+v", again)
	}
	for says, cfg := range map[string]Config{
		"needs --join": {BootstrapExpect: 3}, "can't be opened as": {NodeName: "b"}, "fixed when it was made": {Shards: 4},
	} {
		cfg.Store = store
		if _, err := identify(cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

func TestParseGossipKey(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"MDEyMzQ1Njc4OWFiY2RlZg==": true, "MDEyMzQ1Njc4OWFiY2RlZg": true, "": false, "MDEy": false, "not base64 at all!": false,
	} {
		key, err := ParseGossipKey(text)
		if (err == nil) != ok || ok && string(key) != "0123456789abcdef" {
			t.Errorf("%q: %q, %v", text, key, err)
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

func pledgeOf(t *testing.T, f *forming, request *joinRequest) (*joinReply, error) {
	t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	answer, err := f.handlePledge(t.Context(), request.Node.Name, body)
	if err != nil {
		return nil, err
	}
	var reply joinReply
	return &reply, json.Unmarshal(answer, &reply)
}
