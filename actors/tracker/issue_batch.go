package tracker

import (
	"fmt"

	"switchyard/storage"
)

// BatchIssuesIn is one change for many issues.
type BatchIssuesIn struct {
	IDs   []string   `json:"ids" rules:"required,min=1,max=100" items:"min=1,max=255"`
	Patch IssuePatch `json:"patch" rules:"required"`
}

// Validate checks what the tags can't express.
func (in *BatchIssuesIn) Validate(faults *Faults) { in.Patch.validateAt("patch.", faults) }

// IssueList is an answer with a list of issues.
type IssueList struct {
	Issues []Issue `json:"issues"`
}

// MissingDetails are the details of NOT_FOUND if several ids were given: the ids that
// were not found.
type MissingDetails struct {
	Missing []string `json:"missing"`
}

// BatchIssues changes all of the given issues, or none (Decision 22).
var BatchIssues = NewCommand[BatchIssuesIn, IssueList]("BatchIssues", "Change many issues at once", Needs{Write, "issues"}, batchIssues)

// maxBatchBytes limits the bytes that the changes write, so that the command stays
// below maxCommandBytes. It limits the answer, too: a patch that changes nothing writes
// nothing, and its answer has all of the issues.
const maxBatchBytes = maxCommandBytes - 2<<20

func batchIssues(tx *Tx, in *BatchIssuesIn) (Reply, error) {
	ids, missing, err := tx.eachOnce(in.IDs)
	if err != nil {
		return Reply{}, err
	}
	if len(missing) > 0 {
		return Reply{}, &Error{
			Code: CodeNotFound, Message: fmt.Sprintf("Not found: %d of the ids.", len(missing)),
			Hint:    "Nothing was changed. Leave out the ids in details.missing, or check that the credential may see them.",
			Details: MissingDetails{missing},
		}
	}
	start, shownBytes := tx.Writer().Size(), 0
	changed := make([][]byte, len(ids))
	for i, id := range ids {
		row, err := tx.writableIssue(id)
		if err != nil {
			return Reply{}, err
		}
		w, err := tx.changeIssue(row, &in.Patch, "patch.")
		if err != nil {
			return Reply{}, err
		}
		changed[i] = w.body
		shownBytes += len(w.body)
		if max(tx.Writer().Size()-start, shownBytes) > maxBatchBytes {
			return Reply{}, &Error{
				Code: CodePayloadTooLarge, Message: fmt.Sprintf("The batch would write or answer more than %d MiB.", maxBatchBytes>>20),
				Hint: "Nothing was changed. Send fewer ids at a time.",
			}
		}
	}
	if err := tx.applyRules(); err != nil {
		return Reply{}, err
	}
	body := append(make([]byte, 0, 1024*len(ids)), `{"issues":[`...)
	for i, id := range ids {
		// runCascade may have closed an issue that lost its last open child in the batch.
		if parsed, _ := storage.ParseID(id); tx.closedByRule(parsed) {
			if changed[i], err = tx.storedIssue(parsed); err != nil {
				return Reply{}, err
			}
		}
		shown, err := tx.shownIssue(changed[i])
		if err != nil {
			return Reply{}, err
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, shown...)
	}
	return Reply{Body: append(body, `]}`...)}, nil
}

// eachOnce removes duplicate ids, and separates those that are not issues that the
// caller may see.
func (v *View) eachOnce(all []string) (ids, missing []string, err error) {
	once := make(map[string]bool, len(all))
	for _, id := range all {
		if once[id] {
			continue
		}
		once[id] = true
		parsed, seen := storage.ParseID(id)
		if seen {
			if seen, err = v.hasIssue(parsed); err != nil {
				return nil, nil, err
			}
		}
		if seen {
			ids = append(ids, id)
		} else {
			missing = append(missing, id)
		}
	}
	return ids, missing, nil
}
