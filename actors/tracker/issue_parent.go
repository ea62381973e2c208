package tracker

import (
	"fmt"

	"switchyard/storage"
)

// maxParentChain bounds the issues in a line from a topmost parent down, both ends
// counted; with it every walk along parents is bounded.
const maxParentChain = 100

// maxMovedBelow bounds how many issues below one are looked at when it gets a
// parent, to learn how deep they go.
const maxMovedBelow = 100_000

// parentFault tells what is wrong with making parent the parent of an issue, the
// zero ID for one that is being created; "" when nothing is.
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

// depthFault tells whether an issue and those below it take more than the given
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

// childKeys lists the primary keys of an issue's children, newest first, at most
// limit of them.
func (v *View) childKeys(parent []byte, limit int) ([][]byte, error) {
	keys, err := v.rowKeys(issueByParent, parent, limit)
	if err != nil {
		return nil, fmt.Errorf("list children: %w", err)
	}
	return keys, nil
}

// hasChild tells whether an issue, given by its primary key, has a child that the
// caller may see: a hidden one must not show in its parent. A caller from whom no
// team is hidden needs no look at the children themselves.
func (v *View) hasChild(pk []byte) (found bool, err error) {
	if len(v.Caller.Hidden) == 0 {
		return v.Has(issueByParent, pk)
	}
	children := []storage.Match{storage.Equal(issueByParent, storage.Key(pk))}
	err = issues.List(v, children, nil, func(_ []byte, rec storage.Record) (bool, error) {
		found, err = v.seesIssue(rec)
		return !found, err
	})
	return found, err
}
