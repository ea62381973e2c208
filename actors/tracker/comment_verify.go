package tracker

import (
	"bytes"

	"switchyard/storage"
)

// checkComments checks that the issue of every comment exists, and that its parent is
// an older comment of the same issue. The check of indexes covers the look-up by id.
func checkComments(v *storage.View, report reporter) error {
	var issue storage.ID // the last issue that was looked up
	there := false
	return comments.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := comments.Decode(rec)
		if err != nil || len(pk) != commentKeyLen {
			return true, nil // the table's own check reports it
		}
		c := &row.Value
		if string(c.OrganizationID) != v.Workspace().String() {
			report(comments.Name, pk, "says it belongs to workspace %s", c.OrganizationID)
		}
		if id := storage.ID(pk); id != issue {
			issue = id
			if there, err = v.Has(issueTable, issueKey(issue)); err != nil {
				return false, err
			}
		}
		if !there {
			report(comments.Name, pk, "its issue %s is not there", c.IssueID)
		}
		if c.ParentID == nil {
			return true, nil
		}
		above, ok := storage.ParseID(*c.ParentID)
		if !ok {
			report(comments.Name, pk, "its parent is called %q, which is not an id", *c.ParentID)
			return true, nil
		}
		key := commentKey(issue, above)
		found, err := v.Has(commentTable, key)
		switch {
		case err != nil:
			return false, err
		case !found:
			report(comments.Name, pk, "its parent %s is not a comment of its issue", above)
		case bytes.Compare(key, pk) <= 0: // keys of newer comments are smaller
			report(comments.Name, pk, "its parent %s is not older", above)
		}
		return true, nil
	})
}
