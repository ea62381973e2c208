package tracker

import (
	"fmt"

	"switchyard/storage"
)

// DeleteRelation removes a relation of an issue. An issue that was closed as a duplicate
// stays closed.
var DeleteRelation = NewCommand[RelationIn, None]("DeleteRelation", "Remove a relation", Needs{Write, "issues"}, deleteRelation, WithSpaceEffect(FreesSpace), Refuses(CodeConflict))

func deleteRelation(tx *Tx, in *RelationIn) (Reply, error) {
	row, err := tx.writableIssue(in.ID)
	if err != nil {
		return Reply{}, err
	}
	other, end, err := tx.otherIssue(in.OtherID)
	if err != nil {
		return Reply{}, err
	}
	if err := tx.refuseArchivedHead(other, end.Header); err != nil {
		return Reply{}, err
	}
	relation, err := relations.Get(tx, edgeOf(row.Value.id(), in.Type, other).key(nil))
	if err == nil && relation == nil {
		err = NotFound("relation")
	}
	if err != nil {
		return Reply{}, err
	}
	return Reply{Outcome: NoContent}, tx.removeRelation(relation)
}

// removeRelation removes a relation with its event.
func (tx *Tx) removeRelation(row *storage.Row[relationRecord]) error {
	if err := tx.emitRelation(eventRelationDeleted, &row.Value); err != nil {
		return err
	}
	if err := relations.Delete(tx, row); err != nil {
		return fmt.Errorf("remove a relation: %w", err)
	}
	e := row.Value.edge()
	if e.kind != edgeBlocks {
		return nil
	}
	if open, err := tx.isOpen(e.from); err != nil || !open {
		return err
	}
	return tx.dropBlocker(e.to, e.from)
}

// dropRelations removes the relations of an issue that is about to be deleted, and reports
// whether some are left.
func (tx *Tx) dropRelations(issue *storage.Row[Issue], budget *workBudget) (more bool, err error) {
	if some, err := tx.hasRelations(); err != nil || !some {
		return false, err
	}
	id := issue.Value.id()
	edges, err := tx.edgesOf(id)
	if err != nil {
		return false, err
	}
	for _, e := range edges {
		if budget.spent() {
			return true, nil
		}
		tx.blocking().leaving = id
		row, err := relations.Get(tx, e.key(nil))
		if err == nil && row == nil {
			err = fmt.Errorf("issue %s: an index names a relation that is not there", id)
		}
		if err != nil {
			return false, err
		}
		if err := tx.removeRelation(row); err != nil {
			return false, err
		}
	}
	return false, nil
}
