package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"switchyard/storage"
)

// nodesTable is the table, in the directory shard's own range, of the registry: a
// row per node under its name, and the head under no name. Never change or reuse
// it.
const nodesTable storage.TableID = 254

// record is what the registry knows of a node. It is part of what is on disk and
// of the protocol.
type record struct {
	Name     string `json:"name"`
	Instance string `json:"instance"`
	Zone     string `json:"zone,omitempty"`
	Peer     string `json:"peer,omitempty"` // host:port, as the two below
	HTTP     string `json:"http,omitempty"`
	Gossip   string `json:"gossip,omitempty"`
	Version  string `json:"version,omitempty"`
	Draining bool   `json:"draining,omitempty"`
	// Removed nodes stay known, so that they can be told.
	Removed   bool      `json:"removed,omitempty"`
	FirstSeen time.Time `json:"firstSeen"`
}

// nodeListHead is the registry's row of its own.
type nodeListHead struct {
	Version uint64 `json:"version"` // counts changes
	// HadThree: there were three nodes once, none of them removed (Decision 53).
	HadThree bool `json:"three,omitempty"`
}

// node list is the whole registry at one version. It is shared once it is made:
// change a clone.
type nodeList struct {
	nodeListHead
	Nodes []record `json:"nodes"` // by name, each once
}

func (r *nodeList) clone() *nodeList {
	return &nodeList{nodeListHead: r.nodeListHead, Nodes: slices.Clone(r.Nodes)}
}

func (r *nodeList) search(name string) (int, bool) {
	return slices.BinarySearchFunc(r.Nodes, name, func(rec record, name string) int { return strings.Compare(rec.Name, name) })
}

// node gives a node's record, also of a removed one.
func (r *nodeList) node(name string) (record, bool) {
	if i, ok := r.search(name); ok {
		return r.Nodes[i], true
	}
	return record{}, false
}

// members lists the nodes that were not removed.
func (r *nodeList) members() []record {
	out := make([]record, 0, len(r.Nodes))
	for _, rec := range r.Nodes {
		if !rec.Removed {
			out = append(out, rec)
		}
	}
	return out
}

func (r *nodeList) put(rec record) {
	if i, ok := r.search(rec.Name); ok {
		r.Nodes[i] = rec
	} else {
		r.Nodes = slices.Insert(r.Nodes, i, rec)
	}
}

// Bounds of what a record may hold, in bytes.
const (
	maxAddress = 261 // a name of 253, colon, port, and brackets
	maxLabel   = 64  // zone and version
)

// check refuses a record that no node of this program sends.
func (rec *record) check() error {
	if err := checkNodeName(rec.Name); err != nil {
		return err
	}
	if rec.Instance == "" || len(rec.Instance) > maxLabel || len(rec.Zone) > maxLabel || len(rec.Version) > maxLabel {
		return fmt.Errorf("cluster: node %q: instance, zone and version have at most %d bytes, and the first is no empty one", rec.Name, maxLabel)
	}
	if max(len(rec.Peer), len(rec.HTTP), len(rec.Gossip)) > maxAddress {
		return fmt.Errorf("cluster: node %q: an address has more than %d bytes", rec.Name, maxAddress)
	}
	return nil
}

// check refuses a node list that another node can't have sent in good order.
func (r *nodeList) check() error {
	if len(r.Nodes) > maxNodes+keptRemoved {
		return fmt.Errorf("cluster: a registry of %d nodes", len(r.Nodes))
	}
	for i := range r.Nodes {
		if err := r.Nodes[i].check(); err != nil {
			return err
		}
		if i > 0 && r.Nodes[i-1].Name >= r.Nodes[i].Name {
			return errors.New("cluster: a registry out of order")
		}
	}
	return nil
}

func nodeKey(name string) []byte {
	start, _ := storage.WorkspaceRange(0, storage.SystemID)
	return append(append(start, byte(nodesTable)), name...)
}

// readNodeList reads the registry from a state that holds the directory's replica.
func readNodeList(db pebble.Reader) (*nodeList, error) {
	lower := nodeKey("")
	upper := append(bytes.Clone(lower[:len(lower)-1]), byte(nodesTable)+1)
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, fmt.Errorf("read the registry: %w", err)
	}
	r := &nodeList{}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if len(it.Key()) == len(lower) {
			err = json.Unmarshal(it.Value(), &r.nodeListHead)
			continue
		}
		var rec record
		if err = json.Unmarshal(it.Value(), &rec); err == nil {
			r.Nodes = append(r.Nodes, rec)
		}
	}
	if err := errors.Join(err, it.Error(), it.Close()); err != nil {
		return nil, fmt.Errorf("read the registry: %w", err)
	}
	return r, nil
}

// nodeListBatch is the batch that turns the rows of one node list into those of
// another; nil when they are the same.
func nodeListBatch(db *pebble.DB, from, to *nodeList) ([]byte, error) {
	b := db.NewBatch()
	err := diffNodeLists(b, from, to)
	var repr []byte
	if err == nil && !b.Empty() {
		repr = bytes.Clone(b.Repr())
	}
	if err := errors.Join(err, b.Close()); err != nil {
		return nil, fmt.Errorf("write the registry: %w", err)
	}
	return repr, nil
}

func diffNodeLists(b *pebble.Batch, from, to *nodeList) error {
	set := func(name string, v any) error {
		row, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return b.Set(nodeKey(name), row, nil)
	}
	var errs []error
	for _, rec := range to.Nodes {
		if old, ok := from.node(rec.Name); !ok || old != rec {
			errs = append(errs, set(rec.Name, rec))
		}
	}
	for _, rec := range from.Nodes {
		if _, ok := to.node(rec.Name); !ok {
			errs = append(errs, b.Delete(nodeKey(rec.Name), nil))
		}
	}
	if from.nodeListHead != to.nodeListHead {
		errs = append(errs, set("", to.nodeListHead))
	}
	return errors.Join(errs...)
}

// checkNodesRow is the verifier's look at a row.
func checkNodesRow(fields, value []byte) error {
	if len(fields) == 0 {
		return json.Unmarshal(value, &nodeListHead{})
	}
	var rec record
	if err := json.Unmarshal(value, &rec); err != nil {
		return err
	}
	if rec.Name != string(fields) {
		return fmt.Errorf("the row of node %q is under %q", rec.Name, fields)
	}
	return rec.check()
}
