package membership

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

// Table is the table of the registry in the directory shard's own range: a row per node under
// its name, and the head row under the empty name. Never change or reuse the number.
const Table storage.TableID = 254

// Record is the registry's record of a node. It is stored on disk and part of the protocol.
type Record struct {
	Name     string `json:"name"`
	Instance string `json:"instance"`
	Zone     string `json:"zone,omitempty"`
	Peer     string `json:"peer,omitempty"` // host:port, like HTTP and Gossip
	HTTP     string `json:"http,omitempty"`
	Gossip   string `json:"gossip,omitempty"`
	Version  string `json:"version,omitempty"`
	// Oldest and Newest are the formats that the node's program reads. Absent: FormatFirst alone.
	Oldest storage.Format `json:"oldest,omitempty"`
	Newest storage.Format `json:"newest,omitempty"`
	// Format is the newest one that the node's data directory has promised: a program that does not
	// know it refuses to open the directory.
	Format   storage.Format `json:"format,omitempty"`
	Draining bool           `json:"draining,omitempty"`
	// Removed nodes keep their records. Until it is released, a removed node serves the shards whose
	// groups still count it: they may need its vote.
	Removed bool `json:"removed,omitempty"`
	// Released is set when no group counts the removed node any more. From then on the node is
	// refused, and its name is free.
	Released  bool      `json:"released,omitempty"`
	FirstSeen time.Time `json:"firstSeen"`
}

// ListHead is the head row of the registry.
type ListHead struct {
	Version uint64 `json:"version"` // counts changes
	// HadThree is set once the cluster has had three members at the same time (Decision 53).
	HadThree bool `json:"three,omitempty"`
	// Format is the one that the cluster writes. Absent: FormatFirst.
	Format storage.Format `json:"format,omitempty"`
}

// List is the whole registry at one version. It is shared: change a clone.
type List struct {
	ListHead
	Nodes []Record `json:"nodes"` // sorted by name, without duplicates
}

// Clone returns a copy that may be changed.
func (r *List) Clone() *List {
	return &List{ListHead: r.ListHead, Nodes: slices.Clone(r.Nodes)}
}

func (r *List) search(name string) (int, bool) {
	return slices.BinarySearchFunc(r.Nodes, name, func(rec Record, name string) int { return strings.Compare(rec.Name, name) })
}

// Node returns the record of a node, also of a removed one.
func (r *List) Node(name string) (Record, bool) {
	if i, ok := r.search(name); ok {
		return r.Nodes[i], true
	}
	return Record{}, false
}

// Members lists the nodes that were not removed.
func (r *List) Members() []Record {
	out := make([]Record, 0, len(r.Nodes))
	for _, rec := range r.Nodes {
		if !rec.Removed {
			out = append(out, rec)
		}
	}
	return out
}

// Peers lists the nodes that take part in groups: the members, and the removed nodes that are not
// released.
func (r *List) Peers() []Record {
	out := make([]Record, 0, len(r.Nodes))
	for _, rec := range r.Nodes {
		if !rec.Released {
			out = append(out, rec)
		}
	}
	return out
}

func (r *List) put(rec Record) {
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

// Check refuses a record with fields that are malformed or too long.
func (rec *Record) Check() error {
	if err := CheckNodeName(rec.Name); err != nil {
		return err
	}
	if rec.Instance == "" || len(rec.Instance) > maxLabel || len(rec.Zone) > maxLabel || len(rec.Version) > maxLabel {
		return fmt.Errorf("cluster: node %q: instance, zone and version have at most %d bytes, and the instance is not empty", rec.Name, maxLabel)
	}
	if max(len(rec.Peer), len(rec.HTTP), len(rec.Gossip)) > maxAddress {
		return fmt.Errorf("cluster: node %q: an address has more than %d bytes", rec.Name, maxAddress)
	}
	return nil
}

// Check refuses a node list that is too long, out of order, or has invalid records.
func (r *List) Check() error {
	if len(r.Nodes) > MaxNodes+keptRemoved {
		return fmt.Errorf("cluster: the registry has %d nodes, too many", len(r.Nodes))
	}
	for i := range r.Nodes {
		if err := r.Nodes[i].Check(); err != nil {
			return err
		}
		if i > 0 && r.Nodes[i-1].Name >= r.Nodes[i].Name {
			return errors.New("cluster: the nodes of the registry are not in order")
		}
	}
	return nil
}

func nodeKey(name string) []byte {
	start, _ := storage.WorkspaceRange(0, storage.SystemID)
	return append(append(start, byte(Table)), name...)
}

// Forget deletes the rows of the registry.
func Forget(batch *pebble.Batch) error {
	lower := nodeKey("")
	upper := append(bytes.Clone(lower[:len(lower)-1]), byte(Table)+1)
	if err := batch.DeleteRange(lower, upper, nil); err != nil {
		return fmt.Errorf("forget the nodes: %w", err)
	}
	return nil
}

// ReadList reads the registry from a state that holds a replica of the directory.
func ReadList(db pebble.Reader) (*List, error) {
	lower := nodeKey("")
	upper := append(bytes.Clone(lower[:len(lower)-1]), byte(Table)+1)
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, fmt.Errorf("read the registry: %w", err)
	}
	r := &List{}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		if len(it.Key()) == len(lower) {
			err = json.Unmarshal(it.Value(), &r.ListHead)
			continue
		}
		var rec Record
		if err = json.Unmarshal(it.Value(), &rec); err == nil {
			r.Nodes = append(r.Nodes, rec)
		}
	}
	if err := errors.Join(err, it.Error(), it.Close()); err != nil {
		return nil, fmt.Errorf("read the registry: %w", err)
	}
	return r, nil
}

// ListBatch returns the batch that turns the rows of one node list into those of another; nil
// if they are equal.
func ListBatch(db *pebble.DB, from, to *List) ([]byte, error) {
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

func diffNodeLists(b *pebble.Batch, from, to *List) error {
	set := func(name string, v any) error {
		row, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return b.Set(nodeKey(name), row, nil)
	}
	var errs []error
	for _, rec := range to.Nodes {
		if old, ok := from.Node(rec.Name); !ok || old != rec {
			errs = append(errs, set(rec.Name, rec))
		}
	}
	for _, rec := range from.Nodes {
		if _, ok := to.Node(rec.Name); !ok {
			errs = append(errs, b.Delete(nodeKey(rec.Name), nil))
		}
	}
	if from.ListHead != to.ListHead {
		errs = append(errs, set("", to.ListHead))
	}
	return errors.Join(errs...)
}

// CheckRow checks a row for the verifier.
func CheckRow(fields, value []byte) error {
	if len(fields) == 0 {
		return json.Unmarshal(value, &ListHead{})
	}
	var rec Record
	if err := json.Unmarshal(value, &rec); err != nil {
		return err
	}
	if rec.Name != string(fields) {
		return fmt.Errorf("the row of node %q is under %q", rec.Name, fields)
	}
	return rec.Check()
}
