package tracker

import (
	"bytes"
	"fmt"

	"switchyard/storage"
)

// RelationType is the type of a relation between two issues, as seen from one of them
// (Decision 56).
type RelationType string

// The types of relations. All but the last come in pairs: the first form, and the same
// relation seen from its other end.
const (
	RelationBlocks         RelationType = "blocks"
	RelationBlockedBy      RelationType = "blocked_by"
	RelationDuplicates     RelationType = "duplicates"
	RelationDuplicatedBy   RelationType = "duplicated_by"
	RelationDiscoveredFrom RelationType = "discovered_from"
	RelationLedTo          RelationType = "led_to"
	RelationRelates        RelationType = "relates"
)

var relationTypes = [...]RelationType{
	RelationBlocks, RelationBlockedBy, RelationDuplicates, RelationDuplicatedBy, RelationDiscoveredFrom, RelationLedTo, RelationRelates,
}

// EnumValues implements Enumerated.
func (RelationType) EnumValues() []string { return enumTexts(relationTypes[:]) }

// edgeKind is the type of an edge: a pair of types of relations.
type edgeKind byte

// The kinds of edges. A kind is a byte of the keys on disk.
const (
	edgeBlocks edgeKind = iota
	edgeDuplicates
	edgeDiscovered
	edgeRelates
	edgeKinds
)

// edgeForms are the two forms of each kind: as seen from the issue at which the edge
// begins, and from the one at which it ends.
var edgeForms = [edgeKinds][2]RelationType{
	edgeBlocks:     {RelationBlocks, RelationBlockedBy},
	edgeDuplicates: {RelationDuplicates, RelationDuplicatedBy},
	edgeDiscovered: {RelationDiscoveredFrom, RelationLedTo},
	edgeRelates:    {RelationRelates, RelationRelates},
}

// edge is a relation in the form in which it is stored, whichever end it was made from.
type edge struct {
	kind     edgeKind
	from, to storage.ID
}

// edgeOf returns the edge that a relation of an issue to another one is. A symmetric one
// begins at the smaller id.
func edgeOf(issue storage.ID, t RelationType, other storage.ID) edge {
	if t == RelationRelates {
		if bytes.Compare(issue[:], other[:]) > 0 {
			issue, other = other, issue
		}
		return edge{edgeRelates, issue, other}
	}
	for kind, forms := range edgeForms {
		switch t {
		case forms[0]:
			return edge{edgeKind(kind), issue, other}
		case forms[1]:
			return edge{edgeKind(kind), other, issue}
		}
	}
	return edge{}
}

// seenFrom returns the type of the relation as seen from one of its ends, and the other
// end.
func (e edge) seenFrom(issue storage.ID) (RelationType, storage.ID) {
	if issue == e.from {
		return edgeForms[e.kind][0], e.to
	}
	return edgeForms[e.kind][1], e.from
}

func (e edge) key(k storage.Key) storage.Key { return k.ID(e.from).Byte(byte(e.kind)).ID(e.to) }

// edgeKeyLen is the length of the key of an edge; edgeOther is the position of the other
// end in it, and in an entry of relationByTo, which begins in the same way.
const (
	edgeKeyLen = 16 + 1 + 16
	edgeOther  = 16 + 1
)

// relationRecord is the stored form of a relation, in the first form of its pair.
type relationRecord struct {
	ID          string       `json:"id"` // tells in which order relations were made
	Type        RelationType `json:"type"`
	FromID      IssueID      `json:"fromId"`
	ToID        IssueID      `json:"toId"`
	CreatedAt   Timestamp    `json:"createdAt"`
	CreatedByID string       `json:"createdById"`
}

// edge returns the edge of a stored relation, whose ids are valid.
func (r *relationRecord) edge() edge {
	from, _ := storage.ParseID(r.FromID)
	to, _ := storage.ParseID(r.ToID)
	return edgeOf(from, r.Type, to)
}

// relations holds the relations of a workspace's issues. The keys alone say which issues
// are related and how, so that a walk along them decodes no record.
var relations = storage.Table[relationRecord]{
	ID:   relationTable,
	Name: "relation",
	Key:  func(k storage.Key, r *relationRecord) storage.Key { return r.edge().key(k) },
	Indexes: []storage.Index[relationRecord]{
		{ID: relationByTo, Name: "end", Entries: func(e *storage.Entries, r *relationRecord) {
			at := r.edge()
			e.Add(e.Key().ID(at.to).Byte(byte(at.kind)))
		}},
	},
}

var _ = declareTable(&relations)

// maxRelations is the number of relations that an issue may have, both ends counted.
const maxRelations = 200

// direction says along which ends of edges a walk goes.
type direction bool

const (
	// outward goes from the beginning of an edge to its end: from an issue to those that
	// it blocks.
	outward direction = true
	// inward goes from the end of an edge to its beginning.
	inward direction = false
)

// eachNeighbor calls fn for the issues at the other ends of an issue's edges of one kind,
// until fn returns false.
func (v *View) eachNeighbor(issue storage.ID, kind edgeKind, along direction, fn func(other storage.ID) (bool, error)) error {
	table := relationByTo
	if along == outward {
		table = relationTable
	}
	err := v.Rows(table, storage.Key(nil).ID(issue).Byte(byte(kind)), nil, func(fields, _ []byte) (bool, error) {
		if len(fields) < edgeKeyLen {
			return false, fmt.Errorf("%w: relation", storage.ErrFormat)
		}
		return fn(storage.ID(fields[edgeOther:edgeKeyLen]))
	})
	if err != nil {
		return fmt.Errorf("read the relations of an issue: %w", err)
	}
	return nil
}

// edgesOf returns all edges of an issue.
func (v *View) edgesOf(issue storage.ID) (all []edge, err error) {
	for _, table := range [...]storage.TableID{relationTable, relationByTo} {
		err := v.Rows(table, issue[:], nil, func(fields, _ []byte) (bool, error) {
			if len(fields) < edgeKeyLen {
				return false, fmt.Errorf("%w: relation", storage.ErrFormat)
			}
			e := edge{edgeKind(fields[16]), issue, storage.ID(fields[edgeOther:edgeKeyLen])}
			if table == relationByTo {
				e.from, e.to = e.to, e.from
			}
			all = append(all, e)
			return true, nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the relations of an issue: %w", err)
		}
	}
	return all, nil
}
