package storage

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Schema lists everything a state may hold, for the verifier and for the golden
// files that pin the layout. Each package that writes rows declares its own.
type Schema struct {
	Tables []TableSpec
	Rows   []RowSpec
	// Check verifies the parts of one workspace that its tables can't verify by themselves:
	// counters, references between records, rows that must agree. It is called once for every
	// workspace and for the directory (View.Workspace names it), with a View of the verified
	// moment. The verifier adds the place to a Problem.
	Check func(v *View, report func(Problem)) error
	// CheckBytes verifies the workspace's own count of the bytes of its counted rows; found is the
	// actual sum. It is called like Check. Nil means that there is no such count.
	CheckBytes func(v *View, found Bytes, report func(Problem)) error
	// RowCounts are ids whose rows are counted beside the bytes: tables, or indexes of a workspace
	// with at most one entry a record.
	RowCounts []TableID
	// Partial returns which rows of a workspace are verified while it is not whole yet, as when its
	// rows come from another cluster; nil: all of them. Nil means that every workspace is whole.
	Partial func(v *View) (verified func(id TableID, fields []byte) bool, err error)
	// Unfinished reports whether records of a workspace are still to come, as those of an import
	// that is under way. Until then other records may name them. Nil means that there is no such
	// workspace.
	Unfinished func(v *View) (bool, error)
	// CheckStore verifies facts across workspaces, once, after all of them. It leaves out those for which
	// the state lacks a shard (Walk.Lacks).
	CheckStore func(w *Walk, report func(Problem)) error
}

// TableSpec is a *Table[T] without its type.
type TableSpec interface {
	describe() tableInfo
	// derive decodes a record and collects its index entries into e. It returns the primary key and
	// the flags and team that follow from the value.
	derive(e *Entries, prefix [prefixLen]byte, rec Record) (pk []byte, h Header, err error)
}

// RowSpec describes the plain rows under one id: counters, markers, indexes
// that an operation keeps by hand.
type RowSpec struct {
	ID   TableID
	Name string
	// Check returns the fault of one row. Nil means that every value is valid.
	Check func(v *View, fields, value []byte) error
	// Counting says whether the rows count towards the workspace's bytes.
	Counting Counting
}

// Counter describes rows written with Tx.SetNumber.
func Counter(id TableID, name string) RowSpec {
	return RowSpec{ID: id, Name: name, Check: func(_ *View, _, value []byte) error {
		if len(value) != 8 {
			return fmt.Errorf("%w: counter of %d bytes", ErrFormat, len(value))
		}
		return nil
	}}
}

type tableInfo struct {
	id      TableID
	name    string
	indexes []indexInfo
}

type indexInfo struct {
	id     TableID
	name   string
	unique bool
	wide   bool
}

func (t *Table[T]) describe() tableInfo {
	info := tableInfo{id: t.ID, name: t.Name}
	for _, ix := range t.Indexes {
		info.indexes = append(info.indexes, indexInfo{id: ix.ID, name: ix.Name, unique: ix.Unique, wide: ix.ShardWide})
	}
	return info
}

func (t *Table[T]) derive(e *Entries, prefix [prefixLen]byte, rec Record) ([]byte, Header, error) {
	row, err := t.Decode(rec)
	if err != nil {
		return nil, Header{}, err
	}
	pk := t.Key(nil, &row.Value)
	h := Header{Version: row.Version, ReferredBy: row.ReferredBy}
	if t.Head != nil {
		h.Flags, h.Team = t.Head(&row.Value)
	}
	h.Flags |= row.Flags & t.Held
	e.begin(prefix, pk)
	t.collect(e, &row.Value)
	return pk, h, nil
}

// keeper is the declaration that owns the keys under one id: a table its records, an index its
// entries, or a plain row.
type keeper struct {
	id    TableID
	name  string
	table TableSpec
	index *indexInfo // nil for the records themselves
	row   *RowSpec
}

// keepers assigns every id of the schemas, or says why they don't fit together.
func keepers(schemas []*Schema) (map[TableID]*keeper, error) {
	all := map[TableID]*keeper{}
	var faults []error
	add := func(k *keeper) {
		if other := all[k.id]; other != nil {
			faults = append(faults, fmt.Errorf("id %d is both %q and %q", k.id, other.name, k.name))
		}
		if k.name == "" {
			faults = append(faults, fmt.Errorf("id %d has no name", k.id))
		}
		all[k.id] = k
	}
	for _, s := range schemas {
		for _, t := range s.Tables {
			info := t.describe()
			add(&keeper{id: info.id, name: info.name, table: t})
			for i := range info.indexes {
				ix := &info.indexes[i]
				add(&keeper{id: ix.id, name: info.name + "." + ix.name, table: t, index: ix})
				if ix.unique && ix.wide {
					faults = append(faults, fmt.Errorf("index %q is unique and shard-wide: its value would not tell the workspace", ix.name))
				}
			}
		}
		for i := range s.Rows {
			add(&keeper{id: s.Rows[i].ID, name: s.Rows[i].Name, row: &s.Rows[i]})
		}
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("schema: %w", errors.Join(faults...))
	}
	return all, nil
}

// Describe lists the ids of the schemas, one per line in their order, as the
// golden files keep them. An error says that two declarations clash.
func Describe(schemas ...*Schema) (string, error) {
	all, err := keepers(schemas)
	if err != nil {
		return "", err
	}
	sorted := make([]*keeper, 0, len(all))
	for _, k := range all {
		sorted = append(sorted, k)
	}
	slices.SortFunc(sorted, func(a, b *keeper) int { return cmp.Compare(a.id, b.id) })
	var out strings.Builder
	for _, k := range sorted {
		kind := "table"
		switch {
		case k.row != nil:
			kind = "rows"
		case k.index != nil && k.index.unique:
			kind = "unique index"
		case k.index != nil && k.index.wide:
			kind = "shard-wide index"
		case k.index != nil:
			kind = "index"
		}
		fmt.Fprintf(&out, "%3d  %-16s  %s\n", k.id, kind, k.name)
	}
	return out.String(), nil
}

// Explain lists a record's keys as they are stored, in hexadecimal behind the
// workspace's prefix: its own and its index entries'. Golden files pin with it
// the order and encoding of the fields.
func Explain[T any](t *Table[T], v *T) string {
	var e Entries
	var prefix [prefixLen]byte
	pk := t.Key(nil, v)
	e.begin(prefix, pk)
	t.collect(&e, v)
	var out strings.Builder
	fmt.Fprintf(&out, "%s %x\n", t.Name, append([]byte{byte(t.ID)}, pk...))
	names := map[TableID]string{}
	for _, ix := range t.Indexes {
		names[ix.ID] = ix.Name
	}
	for _, s := range e.spans {
		key := e.buf[s.start:s.end]
		fmt.Fprintf(&out, "%s.%s %x\n", t.Name, names[TableID(key[prefixLen])], bytes.TrimPrefix(key, prefix[:]))
	}
	return out.String()
}
