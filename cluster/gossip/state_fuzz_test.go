package gossip

import (
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"switchyard/cluster/membership"
	"switchyard/internal/testkit"
)

// FuzzState has a process join with any metadata, announce anything, and go.
func FuzzState(f *testing.F) {
	testkit.Corpus(f)
	meta, err := Meta{Node: "node-2", Instance: "i", Cluster: "c", Peer: "10.0.0.2:7947", Zone: "z", Version: "1"}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add("node-2/abc", meta, []byte("\x01node-2/abc"))
	f.Add("self", meta, []byte{messageLeaving})
	f.Add("x", []byte(`{"n":"node-2","c":"other"}`), []byte{})
	f.Fuzz(func(t *testing.T, name string, meta, message []byte) {
		s := newGossipState("self", Meta{Node: "node-1", Cluster: "c"})
		n := &memberlist.Node{Name: name, Meta: meta}
		_ = s.NotifyMerge([]*memberlist.Node{n})
		if s.NotifyAlive(n) != nil {
			return // memberlist does not report it then
		}
		s.NotifyJoin(n)
		s.NotifyMsg(message)
		s.NotifyUpdate(n)
		alive := s.alive()
		for _, a := range alive {
			if err := membership.CheckNodeName(a.Node); err != nil || name == "self" || a.Cluster != "c" && a.Cluster != "" {
				t.Fatalf("%+v is listed, %v", a, err)
			}
			text, err := a.Meta.encode()
			if err != nil {
				continue // longer than it came: other names for the same characters
			}
			if again, err := parseNodeMeta(text); err != nil || again != a.Meta {
				t.Fatalf("%+v came back as %+v, %v", a.Meta, again, err)
			}
		}
		s.NotifyLeave(n)
		s.NotifyMsg(message)
		if left := s.alive(); len(left) > 0 {
			t.Fatalf("%+v is there after it went", left)
		}
		for _, a := range alive {
			if found, ok := s.latest(a.Node, a.Cluster); !ok || !slices.Contains([]membership.NodeState{membership.NodeDead, membership.NodeLeft}, found.State) {
				t.Fatalf("%q is %+v", a.Node, found)
			}
		}
		s.prune(time.Now().Add(2 * forgetAfter))
		if len(s.nodes) > 0 || len(s.leaving) > 0 {
			t.Fatalf("%d processes and %d announcements are kept", len(s.nodes), len(s.leaving))
		}
	})
}
