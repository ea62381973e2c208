package tracker

import (
	"errors"
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// maxBulkLooks limits the relations that a bulk creation looks at to find rings.
const maxBulkLooks = 5 * maxRingLooks

// relate makes the relations of the new issues. Relations between new issues come first:
// planBulk has looked for rings of them alone. Every other ring has a relation to an
// existing issue, and is found when the last one of these is made.
func (r *bulkRun) relate() error {
	for _, known := range [...]bool{false, true} {
		for i := range r.items {
			if r.items[i].existing {
				continue
			}
			for j := range r.in.Items[i].Relations {
				other, existing := r.other(i, j)
				if existing != known {
					continue
				}
				if err := r.relateTo(i, j, other, existing); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// other returns the issue at the other end of an item's relation.
func (r *bulkRun) other(i, j int) (id storage.ID, existing bool) {
	if at := r.plan.others[i][j]; at != noItem {
		return r.items[at].id, r.items[at].existing
	}
	return r.others[r.in.Items[i].Relations[j].IssueID.Value], true
}

func (r *bulkRun) relateTo(i, j int, other storage.ID, existing bool) error {
	e := edgeOf(r.items[i].id, r.in.Items[i].Relations[j].Type, other)
	if row, err := relations.Get(r.tx, e.key(nil)); err != nil || row != nil {
		return err // given twice
	}
	if existing && e.kind.ringless() {
		ring, looks, err := r.tx.searchRing(e, min(maxRingLooks, maxBulkLooks-r.looks))
		if err != nil {
			return conflictAt(bulkRelationPath(i, j), err)
		}
		if ring != nil {
			return BadRequest(Fault{Path: bulkRelationPath(i, j), Message: e.kind.ringFault()})
		}
		r.looks += looks
	}
	for _, id := range [...]storage.ID{e.from, e.to} {
		if err := r.countRelation(id); err != nil {
			return conflictAt(bulkRelationPath(i, j), err)
		}
	}
	if _, err := r.tx.addRelation(e); err != nil {
		return err
	}
	return r.room()
}

// bulkRelationPath is the path of an item's relation in a bulk creation.
func bulkRelationPath(i, j int) string { return fmt.Sprintf("items[%d].relations[%d]", i, j) }

// countRelation counts a new relation of an issue. It returns CONFLICT if that is one too
// many. The relations that an issue has already are counted in the store once.
func (r *bulkRun) countRelation(id storage.ID) (err error) {
	n, known := r.related[id]
	if !known {
		if n, err = r.tx.countRelations(id); err != nil {
			return err
		}
	}
	if n < maxRelations {
		r.related[id] = n + 1
		return nil
	}
	for i := range r.items {
		if t := &r.items[i]; t.id == id && !t.existing {
			return Conflict(fmt.Sprintf("items[%d] would have more than %d relations, the most there can be.", i, maxRelations), "Nothing was changed. Leave out some of its relations.")
		}
	}
	return r.tx.fullOfRelations(id, n)
}

// dispatch makes the sessions of the new issues.
func (r *bulkRun) dispatch() error {
	for i := range r.items {
		d := r.in.Items[i].Dispatch.Ptr()
		if d == nil || r.items[i].existing {
			continue
		}
		if err := r.dispatchItem(i, d); err != nil {
			return below(fmt.Sprintf("items[%d].dispatch", i), err)
		}
		if err := r.room(); err != nil {
			return err
		}
	}
	return nil
}

func (r *bulkRun) dispatchItem(i int, d *BulkDispatch) error {
	tx, id := r.tx, r.items[i].id
	row, err := issues.Get(tx, issueKey(id))
	if err == nil && row == nil {
		err = fmt.Errorf("issue %s is not there", id)
	}
	if err != nil {
		return err
	}
	var faults Faults
	after, err := tx.predecessors(d.QueuedAfter, "", &faults)
	if err == nil {
		err = faults.Err()
	}
	if err != nil {
		return err
	}
	r.forgetEvents()
	s, body, preflight, err := tx.addSession(&newSession{
		Issue: row, AgentID: d.AgentID.Value, Provider: d.Provider.Value, Model: d.Model.Value,
		Repo: d.Repo, Branch: d.Branch, Instructions: d.Instructions, Mode: d.Mode.Value,
		Options: d.SessionOptions, Strict: d.Preflight, After: after,
	})
	if err != nil {
		return err
	}
	found, err := json.Marshal(preflight)
	if err != nil {
		return fmt.Errorf("encode a preflight check: %w", err)
	}
	body = append(append(append(appendDerived(body, s), `,"preflight":`...), found...), '}')
	r.sessions = append(r.sessions, bulkSession{id: s.id(), issue: id, body: body, created: r.firstEvent()})
	return nil
}

// conflictAt puts the path of its cause in front of the message of a CONFLICT. Other errors stay as
// they are.
func conflictAt(path string, err error) error {
	var refused *Error
	if !errors.As(err, &refused) || refused.Code != CodeConflict {
		return err
	}
	at := *refused
	at.Message = path + ": " + refused.Message
	return &at
}

// below puts a path in front of the paths of a BAD_REQUEST. Other errors stay as they are.
func below(path string, err error) error {
	var refused *Error
	if !errors.As(err, &refused) || refused.Code != CodeBadRequest {
		return err
	}
	details, ok := refused.Details.(BadRequestDetails)
	if !ok {
		return BadRequest(Fault{Path: path, Message: refused.Message})
	}
	faults := make([]Fault, 0, len(details.Issues))
	for _, f := range details.Issues {
		if f.Path = path + "." + f.Path; f.Path[len(f.Path)-1] == '.' {
			f.Path = path
		}
		faults = append(faults, f)
	}
	return BadRequest(faults...)
}
