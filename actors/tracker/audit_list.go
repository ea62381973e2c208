package tracker

import (
	"cmp"
	"fmt"
	"strings"

	"switchyard/storage"
)

// ListAuditIn asks for a page of an audit, newest first. All filters must hold.
type ListAuditIn struct {
	Limit  int    `query:"limit" rules:"min=1,max=100" default:"50"`
	Cursor string `query:"cursor" rules:"max=1024"`
	// Action is an action, such as token.created, or all of a kind: token.*
	Action   Opt[string] `query:"action" rules:"min=1,max=64"`
	ActorID  Opt[string] `query:"actorId" rules:"max=255"`
	TargetID Opt[string] `query:"targetId" rules:"max=512"`
	// From and To are moments. Entries of From are listed, those of To are not.
	From Opt[string] `query:"from" rules:"datetime"`
	To   Opt[string] `query:"to" rules:"datetime"`
}

// Validate checks what the tags can't express.
func (in *ListAuditIn) Validate(faults *Faults) {
	for path, at := range map[string]*Opt[string]{"query.from": &in.From, "query.to": &in.To} {
		if text := at.Ptr(); text != nil && !faults.Has(path) && snooze(text) == nil {
			faults.Add(path, "Must be an RFC 3339 date and time between the years 0000 and 9999 in UTC.")
		}
	}
}

// AuditPage is a page of an audit.
type AuditPage struct {
	Entries    []AuditEntry `json:"entries"`
	NextCursor string       `json:"nextCursor,omitempty"`
}

// ListAudit and ListClusterAudit list the administrative acts in a workspace, and those of the
// operator (Decision 69).
var (
	ListAudit = NewQuery[ListAuditIn, AuditPage]("ListAudit", "List administrative acts", Needs{Level: Admin}, listAudit, FromSnapshot)

	ListClusterAudit = NewWorkflow[ListAuditIn, AuditPage]("ListClusterAudit", "List the operator's acts", Needs{Level: Operator}, func(f Flow, in *ListAuditIn) (Reply, error) {
		return f.Query(storage.DirectoryID, listClusterAuditOp, in)
	})

	listClusterAuditOp = NewQuery[ListAuditIn, AuditPage]("ListClusterAuditHere", "List the operator's acts", Needs{}, listAudit, FromSnapshot, InDirectory)
)

// maxAuditExamined bounds the entries that one page looks through.
const maxAuditExamined = 20_000

func listAudit(v *View, in *ListAuditIn) (Reply, error) {
	p, err := newPage(v.Buf, pageSpec{
		name: "entries", limit: cmp.Or(in.Limit, 50), cursor: sent(in.Cursor), query: listQuery(v.Workspace(), "audit", in.Action, in.ActorID, in.TargetID, in.From, in.To),
	})
	if err != nil {
		return Reply{}, err
	}
	p.examine = maxAuditExamined
	end := v.auditEnd()
	from, to := snooze(in.From.Ptr()), snooze(in.To.Ptr())
	err = audits.Scan(v, nil, p.after, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := audits.Decode(rec)
		if err != nil {
			return false, err
		}
		e := &row.Value
		// The entries that follow have smaller ids, and no entry's time is later than that of its id. The
		// times alone may go back: a clock may have been ahead.
		made, _ := storage.ParseID(e.ID)
		if string(pk) > string(end) || from != nil && idTime(made) < *from {
			return false, nil // all that follow are older
		}
		if !p.mayLook() {
			return false, nil
		}
		if (from == nil || e.At >= *from) && (to == nil || e.At < *to) && in.wants(e) {
			return p.add(pk, rec.JSON()), nil
		}
		p.pass(pk)
		return true, nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list the audit: %w", err)
	}
	return p.reply(), nil
}

// wants reports whether an entry passes the filters by value.
func (in *ListAuditIn) wants(e *AuditEntry) bool {
	if in.Action.Set && e.Action != in.Action.Value {
		kind, all := strings.CutSuffix(in.Action.Value, "*")
		if !all || kind != "" && !strings.HasSuffix(kind, ".") || !strings.HasPrefix(e.Action, kind) {
			return false
		}
	}
	return (!in.ActorID.Set || e.Actor.ID == in.ActorID.Value) && (!in.TargetID.Set || e.Target.ID == in.TargetID.Value)
}
