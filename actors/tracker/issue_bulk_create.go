package tracker

import (
	"fmt"

	"switchyard/storage"
)

// CreateIssues creates many issues with their relations and sessions, or none (Decision 58).
var CreateIssues = NewCommand[BulkIssuesIn, BulkIssues]("CreateIssues", "Create many issues at once", Needs{Write, "issues"}, createIssues, BodyUpTo(maxBulkBody), WritesUpTo(maxBulkWrites), Answers(Created, Done),
	ForCallers("the permission write or issues:write, and where an item has dispatch write or sessions:write as well"))

// bulkRun is the run of a bulk creation.
type bulkRun struct {
	tx    *Tx
	in    *BulkIssuesIn
	plan  *bulkPlan
	items []bulkIssue
	// conflict is the first that check has met. The faults of all items are told before it.
	conflict error
	// others are the issues that relations name by their ids.
	others   map[string]storage.ID
	sessions []bulkSession
	looks    int // relations that were looked at to find rings
	// related has the numbers of relations of the issues that the run has counted them for.
	related map[storage.ID]int
}

// bulkIssue is an item of a bulk creation and its issue.
type bulkIssue struct {
	id       storage.ID
	existing bool // the issue was there already
	team     *storage.Row[Team]
	fields   *IssueFields
	row      *storage.Row[Issue]
	created  eventNote // the event of the creation, if the answer may refer to it
}

// bulkSession is a session of a bulk creation.
type bulkSession struct {
	id, issue storage.ID
	body      []byte
	created   eventNote
}

func createIssues(tx *Tx, in *BulkIssuesIn) (Reply, error) {
	for i := range in.Items {
		if needs := (Needs{Write, "sessions"}); in.Items[i].Dispatch.Ptr() != nil && !tx.Caller.Allows(needs) {
			return Reply{}, errLacksRight(needs)
		}
	}
	if in.plan == nil {
		return Reply{}, fmt.Errorf("create issues: the input was not validated")
	}
	r := &bulkRun{tx: tx, in: in, plan: in.plan, items: make([]bulkIssue, len(in.Items)), others: map[string]storage.ID{}, related: map[storage.ID]int{}}
	// The sessions come after the relations, which decide whether their issues are blocked.
	for _, step := range [...]func() error{r.check, r.create, r.relate, tx.runCascade, r.dispatch} {
		if err := step(); err != nil {
			return Reply{}, err
		}
	}
	return r.answer()
}

// check looks for existing issues, and checks all items before anything is written.
func (r *bulkRun) check() error {
	var faults Faults
	for i := range r.items {
		if err := r.checkItem(i, &faults); err != nil {
			return err
		}
	}
	if err := faults.Err(); err != nil {
		return err
	}
	if r.conflict != nil {
		return r.conflict
	}
	for i := range r.items {
		if err := r.refuseArchived(i); err != nil {
			return err
		}
	}
	return nil
}

// refuseArchived returns CONFLICT if a new issue would be related to an archived one, or
// be its child.
func (r *bulkRun) refuseArchived(i int) error {
	if r.items[i].existing {
		return nil
	}
	if parent := r.plan.parents[i]; parent != noItem && r.items[parent].existing {
		if err := r.tx.refuseArchivedID(r.items[parent].id); err != nil {
			return conflictAt(fmt.Sprintf("items[%d].parentRef", i), err)
		}
	}
	if parent := r.in.Items[i].ParentID.Ptr(); parent != nil {
		if err := r.tx.refuseArchivedParent(*parent); err != nil {
			return conflictAt(fmt.Sprintf("items[%d].parentId", i), err)
		}
	}
	for j := range r.in.Items[i].Relations {
		if other, existing := r.other(i, j); existing {
			if err := r.tx.refuseArchivedID(other); err != nil {
				return conflictAt(bulkRelationPath(i, j), err)
			}
		}
	}
	return nil
}

func (r *bulkRun) checkItem(i int, faults *Faults) error {
	item, t := &r.in.Items[i], &r.items[i]
	if ref := item.ExternalRef.Ptr(); ref != nil {
		if err := r.findExisting(i, *ref); err != nil || t.existing {
			return err
		}
	}
	given := item.IssueFields
	if r.plan.parents[i] != noItem {
		given.ParentID = Opt[IssueID]{Set: true, Null: true} // set later; a template's parent is not used
	}
	var own Faults
	var err error
	if t.fields, t.team, err = r.tx.checkIssue(&given, &own); err != nil {
		return err
	}
	for _, f := range own.list {
		faults.Add(fmt.Sprintf("items[%d].%s", i, f.Path), f.Message)
	}
	for j := range item.Relations {
		if err := r.findOther(i, j, faults); err != nil {
			return err
		}
	}
	if d := item.Dispatch.Ptr(); d != nil {
		if _, err := r.tx.checkOptions(&d.SessionOptions, fmt.Sprintf("items[%d].dispatch.", i), faults); err != nil {
			return err
		}
	}
	return nil
}

// findExisting looks for the issue that has an item's externalRef. It notes the conflict if
// the caller can't see that issue.
func (r *bulkRun) findExisting(i int, ref string) error {
	pk, err := r.tx.issueWithRef(ref)
	if err != nil || pk == nil {
		return err
	}
	t, seen := &r.items[i], false
	if _, err := issues.Record(r.tx, pk, func(rec storage.Record) (err error) {
		seen, err = r.tx.canViewIssue(rec)
		return err
	}); err != nil {
		return fmt.Errorf("read an issue by its externalRef: %w", err)
	}
	if !seen {
		if r.conflict == nil {
			r.conflict = Conflict(fmt.Sprintf("Another issue has the externalRef of items[%d].", i), "Nothing was changed. An externalRef is unique in a workspace: use another one.")
		}
		return nil
	}
	t.existing, t.id = true, issueOfKey(pk)
	return nil
}

// findOther resolves the id in a relation of an item.
func (r *bulkRun) findOther(i, j int, faults *Faults) error {
	text := r.in.Items[i].Relations[j].IssueID.Ptr()
	if text == nil {
		return nil
	}
	if _, known := r.others[*text]; known {
		return nil
	}
	id, seen := storage.ParseID(*text)
	if seen {
		var err error
		if seen, err = r.tx.hasIssue(id); err != nil {
			return err
		}
	}
	if !seen {
		faults.Add(fmt.Sprintf("items[%d].relations[%d].issueId", i, j), "There is no such issue.")
		return nil
	}
	r.others[*text] = id
	return nil
}

// create makes the new issues, with ids and numbers in the order of the items.
func (r *bulkRun) create() (err error) {
	for i := range r.items {
		t := &r.items[i]
		if t.existing {
			continue
		}
		if t.row, err = r.tx.newIssue(r.in.Items[i].Title, t.team, t.fields); err != nil {
			return err
		}
		t.id = t.row.Value.id()
	}
	for _, i := range r.plan.order {
		if r.items[i].existing {
			continue
		}
		if err := r.write(i); err != nil {
			return err
		}
	}
	return nil
}

// write stores a new issue, whose parent is stored already.
func (r *bulkRun) write(i int) error {
	t := &r.items[i]
	if parent := r.plan.parents[i]; parent != noItem {
		id := IssueID(r.items[parent].id.String())
		fault, err := r.tx.parentFault(storage.ID{}, id)
		if err != nil {
			return err
		}
		if fault != "" {
			return BadRequest(Fault{Path: fmt.Sprintf("items[%d].parentRef", i), Message: fault})
		}
		t.row.Value.ParentID = &id
	}
	r.forgetEvents()
	if d := r.in.Items[i].Dispatch.Ptr(); d != nil {
		// Without an agentId the dispatch is to the assignee.
		r.tx.dispatches = func(agent string) bool { return !d.AgentID.Set || d.AgentID.Value == agent }
		defer func() { r.tx.dispatches = nil }()
	}
	if _, err := r.tx.writeIssue(nil, t.row); err != nil {
		return err
	}
	t.created, t.row = r.firstEvent(), nil
	return r.room()
}

// room returns an error once the run has written more than a command may. Templates can
// make a small request write much.
func (r *bulkRun) room() error {
	if r.tx.written() > maxBulkWrites {
		return tooMuch(maxBulkWrites)
	}
	return nil
}

func (r *bulkRun) forgetEvents() { r.tx.buffer.events = r.tx.buffer.events[:0] }

// firstEvent returns the first event since forgetEvents.
func (r *bulkRun) firstEvent() (e eventNote) {
	if noted := r.tx.buffer.events; len(noted) > 0 {
		e = noted[0]
	}
	r.forgetEvents()
	return e
}
