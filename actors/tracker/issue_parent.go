package tracker

import (
	"fmt"

	"switchyard/storage"
)

// maxParentChain limits the number of issues from a topmost parent to its deepest
// descendant, and so every walk along parents.
const maxParentChain = 100

// maxMovedBelow limits the descendants of an issue that are looked at to find their
// depth when it gets a parent.
const maxMovedBelow = 100_000

// parentFault returns the fault of making parent the parent of an issue, or "". The
// issue is the zero ID if it is being created.
func (v *View) parentFault(issue storage.ID, parent IssueID) (string, error) {
	const unknown = "There is no such issue."
	at, ok := storage.ParseID(parent)
	if !ok {
		return unknown, nil
	}
	if seen, err := v.hasIssue(at); err != nil || !seen {
		return unknown, err
	}
	above := 0
	for at != (storage.ID{}) {
		if at == issue {
			return "Makes a loop: the issue would be among its own parents.", nil
		}
		if above++; above >= maxParentChain {
			return tooDeep, nil
		}
		var next storage.ID
		if _, err := issues.Record(v, issueKey(at), func(rec storage.Record) error {
			next = parentIn(rec)
			return nil
		}); err != nil {
			return "", fmt.Errorf("walk up the parents: %w", err)
		}
		at = next
	}
	if issue == (storage.ID{}) {
		return "", nil
	}
	return v.depthFault(issue, maxParentChain-above)
}

var tooDeep = fmt.Sprintf("Makes a chain of parents longer than %d issues.", maxParentChain)

// depthFault returns a fault if an issue and its descendants have more than the given
// number of levels.
func (v *View) depthFault(issue storage.ID, levels int) (string, error) {
	seen := 0
	for level := [][]byte{issueKey(issue)}; ; levels-- {
		var below [][]byte
		for _, parent := range level {
			children, err := v.childKeys(parent, maxMovedBelow+1-seen)
			if err != nil {
				return "", err
			}
			below = append(below, children...)
			if seen += len(children); seen > maxMovedBelow {
				return fmt.Sprintf("The issue has more than %d issues below it, too many to move.", maxMovedBelow), nil
			}
		}
		switch {
		case len(below) == 0:
			return "", nil
		case levels == 1:
			return tooDeep, nil
		}
		level = below
	}
}

// childKeys returns at most limit primary keys of an issue's children, newest first.
func (v *View) childKeys(parent []byte, limit int) ([][]byte, error) {
	keys, err := v.rowKeys(issueByParent, parent, limit)
	if err != nil {
		return nil, fmt.Errorf("list children: %w", err)
	}
	return keys, nil
}
