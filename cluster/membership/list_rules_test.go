package membership

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/storage"
)

// TestList_Rules: the outcome of a request, given the record of its name.
func TestList_Rules(t *testing.T) {
	t.Parallel()
	yes := func(string) bool { return true }
	member := Record{Name: "a", Instance: "1", Peer: "old:1", FirstSeen: time.Unix(1, 0).UTC()}
	draining, removed, released := member, member, member
	draining.Draining, removed.Removed, released.Removed, released.Released = true, true, true, true
	other := Record{Name: "b", Instance: "9"}
	otherRemoved, otherDraining := other, other
	otherRemoved.Removed, otherDraining.Draining = true, true
	drains := func(r *List, input RuleInput) error { return r.Drain("a", input) }
	removes := func(r *List, input RuleInput) error { return r.Remove("a", input) }
	now := time.Unix(9, 0).UTC()
	moved := func(instance string) Record { return Record{Name: "a", Instance: instance, Peer: "new:1"} }
	tests := map[string]struct {
		have   []Record
		format storage.Format // of the cluster
		around RuleInput
		do     func(*List, RuleInput) error
		want   Record // of "a"
		reason string // of the refusal
		fails  string // of another error
	}{
		"join, new name":           {do: joins(moved("1")), want: Record{Name: "a", Instance: "1", Peer: "new:1", FirstSeen: now}},
		"join again":               {have: []Record{member}, do: joins(moved("1")), want: Record{Name: "a", Instance: "1", Peer: "new:1", FirstSeen: member.FirstSeen}},
		"join, name in use":        {have: []Record{member}, around: RuleInput{IsReachable: yes}, do: joins(moved("2")), want: member, reason: ReasonNameTaken},
		"join, wiped":              {have: []Record{member}, do: joins(moved("2")), want: member, reason: ReasonNameTaken},
		"join, wiped just now":     {have: []Record{member}, around: RuleInput{IsReachable: yes}, do: joins(Record{Name: "a", Instance: "2", Peer: member.Peer}), want: member, fails: "other data"},
		"join, removed itself":     {have: []Record{removed}, do: joins(moved("1")), want: Record{Name: "a", Instance: "1", Peer: "new:1", Removed: true, FirstSeen: member.FirstSeen}},
		"join, released itself":    {have: []Record{released}, do: joins(moved("1")), want: released, reason: ReasonRemoved},
		"join, name free again":    {have: []Record{released}, do: joins(moved("2")), want: Record{Name: "a", Instance: "2", Peer: "new:1", FirstSeen: now}},
		"join, name not yet free":  {have: []Record{removed}, do: joins(moved("2")), want: removed, fails: "may still be a voter"},
		"register moved":           {have: []Record{draining}, do: registers(moved("1")), want: Record{Name: "a", Instance: "1", Peer: "new:1", Draining: true, FirstSeen: member.FirstSeen}},
		"register unknown":         {do: registers(moved("1")), reason: ReasonUnknownNode},
		"register other instance":  {have: []Record{member}, do: registers(moved("2")), want: member, reason: ReasonNameTaken},
		"register removed":         {have: []Record{removed}, do: registers(moved("1")), want: Record{Name: "a", Instance: "1", Peer: "new:1", Removed: true, FirstSeen: member.FirstSeen}},
		"register released":        {have: []Record{released}, do: registers(moved("1")), want: released, reason: ReasonRemoved},
		"register taken over":      {have: []Record{{Name: "a", Instance: "2", Removed: true}}, do: registers(moved("1")), want: Record{Name: "a", Instance: "2", Removed: true}, reason: ReasonNameTaken},
		"join, older program":      {format: 3, do: joins(Record{Name: "a", Instance: "1", Newest: 2}), reason: ReasonFormat},
		"join, much newer program": {format: 3, do: joins(Record{Name: "a", Instance: "1", Oldest: 4, Newest: 5}), reason: ReasonFormat},
		"join, program that reads": {format: 3, do: joins(Record{Name: "a", Instance: "1", Oldest: 2, Newest: 4}), want: Record{Name: "a", Instance: "1", Oldest: 2, Newest: 4, FirstSeen: now}},
		"register older program":   {have: []Record{member}, format: 2, do: registers(moved("1")), want: member, reason: ReasonFormat},
		"drain":                    {have: []Record{member, other}, do: drains, want: draining},
		"drain the last":           {have: []Record{member}, do: drains, want: member, reason: ReasonLastNode},
		"undrain":                  {have: []Record{draining}, do: func(r *List, _ RuleInput) error { return r.Undrain("a") }, want: member},
		"undrain a removed one":    {have: []Record{removed}, do: func(r *List, _ RuleInput) error { return r.Undrain("a") }, want: member},
		"undrain a released one":   {have: []Record{released}, do: func(r *List, _ RuleInput) error { return r.Undrain("a") }, want: member},
		"undrain nobody":           {do: func(r *List, _ RuleInput) error { return r.Undrain("a") }, fails: `no node named "a"`},
		"drain a removed one":      {have: []Record{removed}, do: drains, want: removed, fails: `no node named "a"`},
		"remove a draining one":    {have: []Record{draining, other}, do: removes, want: removed},
		"remove the last":          {have: []Record{member}, do: removes, want: member, reason: ReasonLastNode},
		"remove, others removed":   {have: []Record{member, otherRemoved}, do: removes, want: member, reason: ReasonLastNode},
		"remove, others drain":     {have: []Record{member, otherDraining}, do: removes, want: member, reason: ReasonLastNode},
		"remove, others down":      {have: []Record{member, other}, around: RuleInput{IsDown: yes}, do: removes, want: member, reason: ReasonLastNode},
		"drain, others removed":    {have: []Record{member, otherRemoved}, do: drains, want: member, reason: ReasonLastNode},
		"remove nobody":            {do: removes, fails: `no node named "a"`},
		"remove one removed again": {have: []Record{removed}, do: removes, want: removed, fails: `no node named "a"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.around.Now = now
			r := &List{ListHead: ListHead{Format: test.format}, Nodes: test.have}
			err := test.do(r, test.around)
			switch {
			case test.reason != "":
				var refused *PermanentError
				if !errors.As(err, &refused) || refused.Reason != test.reason || !strings.Contains(err.Error(), `"a"`) {
					t.Errorf("%v, want a refusal for %s that names the node", err, test.reason)
				}
			case test.fails != "":
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("%v, want %q", err, test.fails)
				}
			case err != nil:
				t.Error(err)
			}
			if got, _ := r.Node("a"); got != test.want {
				t.Errorf("the record is\n%+v, want\n%+v", got, test.want)
			}
		})
	}
}

func TestList_Refuses(t *testing.T) {
	t.Parallel()
	list := &List{ListHead: ListHead{Version: 7}, Nodes: []Record{
		{Name: "a", Instance: "1"}, {Name: "released", Instance: "1", Removed: true, Released: true}, {Name: "removed", Instance: "1", Removed: true},
	}}
	for name, test := range map[string]struct {
		node, instance string
		known          uint64
		want           bool
	}{
		"a member":                               {"a", "1", 7, false},
		"a member with an older list":            {"a", "1", 3, false},
		"an older program":                       {"a", "1", 0, false},
		"removed and still needed":               {"removed", "1", 7, false},
		"released":                               {"released", "1", 3, true},
		"released, older program":                {"released", "1", 0, true},
		"let back since":                         {"released", "1", 8, false},
		"an earlier node of the name":            {"a", "0", 3, true},
		"an earlier node, older program":         {"a", "0", 0, true},
		"a later node of the name":               {"released", "2", 8, false},
		"a node that has joined since":           {"b", "1", 8, false},
		"a node that has joined, without a list": {"b", "1", 0, false},
		"a node removed long ago":                {"b", "1", 3, true},
	} {
		if got := list.Refuses(test.node, test.instance, test.known); got != test.want {
			t.Errorf("%s: refused: %t", name, got)
		}
	}
	if (&List{}).Refuses("a", "1", 0) {
		t.Error("a node without a list refuses others")
	}
}

func joins(rec Record) func(*List, RuleInput) error {
	return func(r *List, input RuleInput) error { return r.Join(rec, input) }
}

func registers(rec Record) func(*List, RuleInput) error {
	return func(r *List, _ RuleInput) error { return r.Register(rec) }
}

func TestList_ThreeOnceIsThreeForGood(t *testing.T) {
	t.Parallel()
	r := &List{}
	join := func(name string) {
		t.Helper()
		if err := r.Join(Record{Name: name, Instance: name}, RuleInput{}); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(name string) {
		t.Helper()
		if err := r.Remove(name, RuleInput{}); err != nil {
			t.Fatal(err)
		}
		r.Release(name)
	}
	join("a")
	join("b")
	remove("b")
	join("c")
	if r.HadThree {
		t.Fatal("a removed node counts")
	}
	join("d")
	remove("c")
	remove("d")
	if !r.HadThree {
		t.Fatal("there were three")
	}
	for i := range 2 * keptRemoved {
		name := fmt.Sprintf("m%d", i)
		join(name)
		remove(name)
	}
	if len(r.Nodes) != 1+keptRemoved {
		t.Errorf("%d rows", len(r.Nodes))
	}
}

// The format of the cluster is the newest one that all peers have promised, and never goes down.
func TestList_RaiseFormat(t *testing.T) {
	t.Parallel()
	type formats struct{ newest, promised storage.Format }
	tests := map[string]struct {
		nodes          map[string]formats
		had, own       storage.Format
		common, raised storage.Format
	}{
		"nobody":                     {common: 1, raised: 0},
		"older programs say nothing": {nodes: map[string]formats{"a": {}, "b": {2, 2}}, common: 1, raised: 0},
		"one has not promised":       {nodes: map[string]formats{"a": {2, 2}, "b": {2, 1}}, common: 2, raised: 0},
		"all have":                   {nodes: map[string]formats{"a": {2, 2}, "b": {3, 2}}, common: 2, raised: 2},
		"it never goes down":         {nodes: map[string]formats{"a": {2, 2}, "b": {2, 2}}, had: 3, common: 2, raised: 3},
		"the owner wrote it alone":   {nodes: map[string]formats{"a": {2, 1}}, own: 2, common: 2, raised: 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &List{ListHead: ListHead{Format: test.had}}
			for name, f := range test.nodes {
				r.put(Record{Name: name, Instance: name, Newest: f.newest, Format: f.promised})
			}
			// A released node has nothing to read any more, and does not count.
			r.put(Record{Name: "z", Instance: "z", Removed: true, Released: true})
			r.RaiseFormat(max(test.own, 1))
			if got := r.Common(); got != test.common || r.Format != test.raised {
				t.Errorf("all know %d, and the cluster writes %d; want %d and %d", got, r.Format, test.common, test.raised)
			}
		})
	}
}
