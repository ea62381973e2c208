package tracker

import (
	"fmt"

	"switchyard/storage"
)

// An issue is blocked while an issue that blocks it is open (Decision 57). The number of
// its open blockers is kept in a row of blockedTable, which is there while that is not 0.
// Every command that changes the number notes it in a blockWork. The rows are written,
// and what follows from them is done, once, at the end of the command.

// blockWork is what a command changes about which issues are blocked.
type blockWork struct {
	changed []*blockChange // in the order in which they were first changed
	of      map[storage.ID]*blockChange
	closed  []storage.ID // issues that the command has closed
	// leaving is an issue that is about to be deleted: nothing follows from its changes.
	leaving  storage.ID
	released int // issues for which the command has done what follows
}

// blockChange is the change of the open blockers of one issue.
type blockChange struct {
	issue    storage.ID
	was, now uint64
	added    bool         // an open blocker was added, or reopened
	by       []storage.ID // blockers that were closed or removed
}

// blocking returns the blockWork of this command.
func (tx *Tx) blocking() *blockWork {
	if tx.blocks == nil {
		tx.blocks = &blockWork{of: map[storage.ID]*blockChange{}}
	}
	return tx.blocks
}

// blocked reports whether an issue is blocked, with what this command has changed so far.
func (tx *Tx) blocked(issue storage.ID) (bool, error) {
	if w := tx.blocks; w != nil {
		if c := w.of[issue]; c != nil {
			return c.now > 0, nil
		}
	}
	return tx.isBlocked(issueKey(issue))
}

// isBlocked reports whether an issue, given by its primary key, is blocked as far as that
// is written.
func (v *View) isBlocked(pk []byte) (bool, error) {
	n, err := v.Number(blockedTable, pk)
	if err != nil {
		return false, fmt.Errorf("look whether an issue is blocked: %w", err)
	}
	return n > 0, nil
}

// blockChangeOf returns the change of an issue's open blockers by this command.
func (tx *Tx) blockChangeOf(issue storage.ID) (*blockChange, error) {
	w := tx.blocking()
	if c := w.of[issue]; c != nil {
		return c, nil
	}
	n, err := tx.Number(blockedTable, issueKey(issue))
	if err != nil {
		return nil, fmt.Errorf("read the number of an issue's open blockers: %w", err)
	}
	c := &blockChange{issue: issue, was: n, now: n}
	w.of[issue] = c
	w.changed = append(w.changed, c)
	return c, nil
}

// addBlocker counts one more open blocker of an issue.
func (tx *Tx) addBlocker(issue storage.ID) error {
	c, err := tx.blockChangeOf(issue)
	if err != nil {
		return err
	}
	c.now++
	c.added = true
	return nil
}

// dropBlocker counts one open blocker of an issue less.
func (tx *Tx) dropBlocker(issue, blocker storage.ID) error {
	c, err := tx.blockChangeOf(issue)
	if err != nil {
		return err
	}
	if c.now == 0 {
		return fmt.Errorf("%w: issue %s has no open blocker to lose", storage.ErrFormat, issue)
	}
	c.now--
	c.by = append(c.by, blocker)
	return nil
}

// blockingEffect notes for the issues that an issue blocks that it was closed or opened
// again. Other changes cost the comparison of two statuses, and so do all in a workspace
// without relations.
func (tx *Tx) blockingEffect(w *issueWrite) error {
	if w.old == nil || w.new == nil {
		return nil // a new issue has no relations, nor has one that is removed
	}
	closed := w.new.Value.Status.Closed()
	if closed == w.old.Value.Status.Closed() {
		return nil
	}
	id := w.new.Value.id()
	if closed && len(afterClose) > 0 {
		w := tx.blocking()
		w.closed = append(w.closed, id)
	}
	if some, err := tx.hasRelations(); err != nil || !some {
		return err
	}
	return tx.eachNeighbor(id, edgeBlocks, outward, func(other storage.ID) (bool, error) {
		if closed {
			return true, tx.dropBlocker(other, id)
		}
		return true, tx.addBlocker(other)
	})
}

// knownRelations caches whether a workspace has any relations.
type knownRelations uint8

const (
	relationsUnknown knownRelations = iota
	relationsNone
	relationsSome // there are some, or were
)

// hasRelations reports whether the workspace may have relations.
func (tx *Tx) hasRelations() (bool, error) {
	known := &tx.buffer.relations
	if *known == relationsUnknown {
		some, err := tx.Has(relationTable, nil)
		if err != nil {
			return false, fmt.Errorf("look for relations: %w", err)
		}
		if *known = relationsNone; some {
			*known = relationsSome
		}
	}
	return *known == relationsSome, nil
}

// maxBlockChanges limits the issues whose blockers a command changes by the rules of
// teams before it leaves the rest to timers; see closeBelow.
const maxBlockChanges = 2000

// full reports whether the rest of a cascade must wait for another batch.
func (w *blockWork) full() bool { return w != nil && len(w.changed) >= maxBlockChanges }

// runCascade does what follows from the command's changes: the rules of teams may close
// further issues, and closed issues release others.
func (tx *Tx) runCascade() error {
	for {
		if err := tx.applyRules(); err != nil {
			return err
		}
		if w := tx.blocks; w == nil || len(w.changed)+len(w.closed) == 0 {
			return nil
		}
		if err := tx.settleBlocks(); err != nil {
			return err
		}
	}
}

// settleBlocks writes the numbers of open blockers that the command has changed, and does
// what follows.
func (tx *Tx) settleBlocks() error {
	w := tx.blocks
	changed, closed := w.changed, w.closed
	w.changed, w.closed = nil, nil
	clear(w.of)
	for _, c := range changed {
		if err := tx.writeBlockers(c); err != nil {
			return err
		}
	}
	for _, c := range changed {
		if err := tx.blockingChanged(c); err != nil {
			return err
		}
	}
	for _, issue := range closed {
		for _, do := range afterClose {
			if err := do(tx, issue); err != nil {
				return err
			}
		}
	}
	return nil
}

func (tx *Tx) writeBlockers(c *blockChange) (err error) {
	switch pk := issueKey(c.issue); {
	case c.now == c.was:
		return nil
	case c.now == 0:
		err = tx.Writer().DeleteValue(blockedTable, pk)
	default:
		err = tx.Writer().SetNumber(blockedTable, pk, c.now)
	}
	if err != nil {
		return fmt.Errorf("write the number of an issue's open blockers: %w", err)
	}
	tx.Writer().MarkDirty(DirtySets)
	return nil
}

// blockingChanged does what follows from a changed number of open blockers.
func (tx *Tx) blockingChanged(c *blockChange) error {
	switch {
	case c.issue == tx.blocks.leaving:
	case c.now > 0 && c.added:
		if err := tx.forgetRelease(c); err != nil {
			return err
		}
		return tx.tellBlocked(c.issue)
	case c.was > 0 && c.now == 0:
		return tx.release(c.issue, c.by)
	}
	return nil
}
