package tracker

import (
	"errors"
	"fmt"
)

// takeRelation stores a relation and counts the open blockers of an issue. It closes and
// releases nothing: the issues are as they were left.
func takeRelation(im *importing, data []byte) error {
	var r relationRecord
	if err := im.decode(data, &r); err != nil {
		return err
	}
	from, err := im.needIssue(r.FromID)
	if err != nil {
		return err
	}
	to, err := im.needIssue(r.ToID)
	if err != nil {
		return err
	}
	e := r.edge()
	if e.from == e.to || edgeForms[e.kind][0] != r.Type || e.from != from.Value.id() {
		return im.refuse("data must be a relation of two issues in the first form of its type.")
	}
	if err := im.tx.mayRelate(e); err != nil {
		if told := (*Error)(nil); errors.As(err, &told) {
			return im.refuse("%s", told.Message)
		}
		return err
	}
	if err := restore(im, &relations, &r); err != nil {
		return err
	}
	im.tx.buffer.relations = relationsSome
	if e.kind != edgeBlocks || from.Value.Status.Closed() {
		return nil
	}
	pk := issueKey(to.Value.id())
	n, err := im.tx.Number(blockedTable, pk)
	if err != nil {
		return fmt.Errorf("read the number of an issue's open blockers: %w", err)
	}
	im.tx.Writer().MarkDirty(DirtySets)
	return im.tx.Writer().SetNumber(blockedTable, pk, n+1)
}
