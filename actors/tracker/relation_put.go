package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// Types of events about relations.
var (
	eventRelationCreated = newEventKind("relation.created", "issues", onRelation)
	eventRelationDeleted = newEventKind("relation.deleted", "issues", onRelation)
)

// RelationIn names a relation: an issue, its type as seen from there, and the issue at the
// other end.
type RelationIn struct {
	ID      string       `path:"id"`
	Type    RelationType `path:"type"`
	OtherID string       `path:"otherId"`
}

// Validate checks what the tags can't express.
func (in *RelationIn) Validate(faults *Faults) {
	if in.ID == in.OtherID {
		faults.Add("path.otherId", relatedToItself)
	}
}

const relatedToItself = "An issue can't have a relation to itself."

// PutRelation relates an issue to another one. If the relation is there already, nothing
// changes (Decision 56).
var PutRelation = NewCommand[RelationIn, RelationAnswer]("PutRelation", "Relate an issue to another", Needs{Write, "issues"}, putRelation)

func putRelation(tx *Tx, in *RelationIn) (Reply, error) {
	row, err := tx.writableIssue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	answer, err := tx.putRelation(row.Value.id(), in.Type, in.OtherID)
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, answer)
}

// putRelation makes the relation of an issue to another one, unless it is there.
func (tx *Tx) putRelation(issue storage.ID, t RelationType, otherID string) (*RelationAnswer, error) {
	other, end, err := tx.otherIssue(otherID)
	if err != nil {
		return nil, err
	}
	if err := tx.refuseArchivedHead(other, end.Header); err != nil {
		return nil, err
	}
	e := edgeOf(issue, t, other)
	row, err := relations.Get(tx, e.key(nil))
	if err != nil {
		return nil, err
	}
	var made *relationRecord
	if row != nil {
		made = &row.Value
	} else {
		if err := tx.mayRelate(e); err != nil {
			return nil, err
		}
		if made, err = tx.addRelation(e); err != nil {
			return nil, err
		}
		if err := tx.applyRules(); err != nil { // a duplicate that was closed may close others
			return nil, err
		}
	}
	shown, err := tx.relatedIssue(other) // read again: it may just have been closed
	if err == nil && shown == nil {
		err = fmt.Errorf("issue %s is not there", other)
	}
	if err != nil {
		return nil, err
	}
	return &RelationAnswer{made.seenFrom(issue, shown)}, nil
}

// mayRelate returns CONFLICT if a new edge would close a ring, or be one relation too many
// for one of its issues.
func (tx *Tx) mayRelate(e edge) error {
	if e.kind.ringless() {
		ring, err := tx.ringOf(e)
		if err != nil {
			return err
		}
		if ring != nil {
			return tx.ringConflict(e, ring)
		}
	}
	return tx.roomToRelate(e)
}

// roomToRelate returns CONFLICT if a new edge would be one relation too many for one of its
// issues.
func (tx *Tx) roomToRelate(e edge) error {
	for _, id := range [...]storage.ID{e.from, e.to} {
		n, err := tx.countRelations(id)
		if err != nil {
			return err
		}
		if n >= maxRelations {
			return tx.fullOfRelations(id, n)
		}
	}
	return nil
}

// fullOfRelations returns the CONFLICT for one relation too many of an issue.
func (tx *Tx) fullOfRelations(id storage.ID, n int) error {
	t, err := tx.relatedIssue(id)
	if err != nil {
		return err
	}
	name := "One of the issues"
	if t != nil && t.Identifier != nil {
		name = *t.Identifier
	}
	return Conflict(fmt.Sprintf("%s has %d relations, the most there can be.", name, n), "Remove some of its relations first.")
}

// ringless reports whether edges of the kind must not form a ring.
func (k edgeKind) ringless() bool { return k == edgeBlocks || k == edgeDuplicates }

// countRelations counts the relations of an issue, at both of their ends.
func (v *View) countRelations(issue storage.ID) (n int, err error) {
	for _, table := range [...]storage.TableID{relationTable, relationByTo} {
		err := v.Rows(table, issue[:], nil, func(_, _ []byte) (bool, error) { n++; return true, nil })
		if err != nil {
			return 0, fmt.Errorf("count the relations of an issue: %w", err)
		}
	}
	return n, nil
}

// addRelation stores a new relation with its event, and does what it implies: an open
// issue blocks the other one, and a duplicate is closed.
func (tx *Tx) addRelation(e edge) (*relationRecord, error) {
	id, err := tx.NewID()
	if err != nil {
		return nil, fmt.Errorf("make a relation's id: %w", err)
	}
	r := &relationRecord{
		ID: id.String(), Type: edgeForms[e.kind][0], FromID: IssueID(e.from.String()), ToID: IssueID(e.to.String()),
		CreatedAt: At(tx.order), CreatedByID: tx.Caller.ID,
	}
	if _, err := relations.Insert(tx, r); err != nil {
		return nil, fmt.Errorf("store a relation: %w", err)
	}
	tx.buffer.relations = relationsSome
	if err := tx.emitRelation(eventRelationCreated, r); err != nil {
		return nil, err
	}
	switch e.kind {
	case edgeBlocks:
		if open, err := tx.isOpen(e.from); err != nil || !open {
			return r, err
		}
		return r, tx.addBlocker(e.to)
	case edgeDuplicates:
		return r, tx.closeDuplicate(e.from)
	}
	return r, nil
}

// isOpen reports whether an existing issue is open.
func (v *View) isOpen(issue storage.ID) (open bool, err error) {
	found, err := issues.Record(v, issueKey(issue), func(rec storage.Record) error {
		open = rec.Flags()&issueClosed == 0
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("issue %s is not there", issue)
	}
	return open, err
}

// closeDuplicate closes an issue that is a duplicate, unless it is closed.
func (tx *Tx) closeDuplicate(issue storage.ID) error {
	row, err := issues.Get(tx, issueKey(issue))
	if err == nil && row == nil {
		err = fmt.Errorf("issue %s is not there", issue)
	}
	if err != nil || row.Value.Status.Closed() {
		return err
	}
	closed, resolution := *row, resolutionDuplicate
	closed.Value.Status, closed.Value.Resolution = StatusCanceled, &resolution
	_, err = tx.writeIssue(row, &closed)
	return err
}

// resolutionDuplicate is the resolution of an issue that is closed as a duplicate.
const resolutionDuplicate = "duplicate"

// relationEvent is the data of an event about a relation: the relation as its first issue
// shows it, with both ends.
type relationEvent struct {
	FromID IssueID `json:"fromId"`
	ToID   IssueID `json:"toId"`
	Relation
}

// emitRelation tells of a relation.
func (tx *Tx) emitRelation(kind *eventKind, r *relationRecord) error {
	e := r.edge()
	from, err := tx.issueHeader(e.from)
	if err != nil {
		return err
	}
	var to relatedIssue
	found, err := issues.Record(tx, issueKey(e.to), func(rec storage.Record) error {
		to.Header = rec.Header()
		return json.Unmarshal(rec.JSON(), &to)
	})
	if err == nil && !found {
		err = fmt.Errorf("issue %s is not there", e.to)
	}
	if err != nil {
		return err
	}
	data, err := json.MarshalWithOption(&relationEvent{r.FromID, r.ToID, r.seenFrom(e.from, &to)}, json.DisableHTMLEscape())
	if err != nil {
		return fmt.Errorf("encode a relation: %w", err)
	}
	// The header decides who sees the event when one of the issues is deleted. It has one
	// team, so an issue of another team that not everybody sees counts as restricted.
	from.Flags |= to.Flags & issueRestricted
	if to.Team != from.Team {
		team, err := tx.teamOf(to.Team)
		if err != nil {
			return err
		}
		if team == nil || !team.Value.IsPublic {
			from.Flags |= issueRestricted
		}
	}
	return tx.Emit(kind, from, data, nil)
}

// issueHeader returns the header of an existing issue's record.
func (v *View) issueHeader(issue storage.ID) (head storage.Header, err error) {
	found, err := issues.Record(v, issueKey(issue), func(rec storage.Record) error {
		head = rec.Header()
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("issue %s is not there", issue)
	}
	return head, err
}
