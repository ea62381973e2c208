package tracker

import (
	"fmt"
	"time"
)

// maxBulkBody limits the body of a bulk creation in bytes.
const maxBulkBody = 4 << 20

// maxBulkRelations limits the relations of a bulk creation, all items together. With short
// titles so many fit into maxBulkWrites.
const maxBulkRelations = 20_000

// maxBulkWrites limits the bytes that a bulk creation writes. The text of an issue is
// written up to five times, and once more for an idempotency key: the issue before and after
// it is closed as a duplicate, and the events of its creation, of that change, and of its
// being blocked. So every body of plain text fits.
const maxBulkWrites = 26 << 20

// maxBulkAnswer limits the bytes of the answer. New issues take less than maxBulkWrites. An
// issue whose externalRef is taken is shown and not written, however large it is.
const maxBulkAnswer = maxBulkWrites

// BulkIssuesIn is a list of issues to create together, with the relations between them and
// their sessions.
type BulkIssuesIn struct {
	Items []BulkItem `json:"items" rules:"required,min=1,max=500"`
	// DryRun makes the request check everything and write nothing.
	DryRun bool `json:"dryRun"`

	// plan is what the items' refs stand for. Validate makes it, before the input reaches the
	// workspace's goroutine.
	plan *bulkPlan
}

// BulkItem is one issue of a bulk creation.
type BulkItem struct {
	Title string `json:"title" rules:"required,min=1,max=1000"`
	IssueFields
	// Ref is a name of the issue within the request.
	Ref Opt[string] `json:"ref" rules:"nullable,min=1,max=255"`
	// ParentRef is the ref of the item that is the issue's parent.
	ParentRef Opt[string]       `json:"parentRef" rules:"nullable,min=1,max=255"`
	Relations []BulkRelation    `json:"relations" rules:"max=200"`
	Dispatch  Opt[BulkDispatch] `json:"dispatch" rules:"nullable,strict"`
}

// BulkRelation is a relation of an item: its type as seen from the item, and the issue at
// its other end, by its ref or its id.
type BulkRelation struct {
	Type    RelationType `json:"type" rules:"required"`
	Ref     Opt[string]  `json:"ref" rules:"nullable,min=1,max=255"`
	IssueID Opt[string]  `json:"issueId" rules:"nullable,min=1,max=255"`
}

// BulkDispatch has the fields of DispatchIssueIn that its body has.
type BulkDispatch struct {
	AgentID      Opt[string] `json:"agentId" rules:"min=1,max=255"`
	Provider     Opt[string] `json:"provider" rules:"min=1,max=200"`
	Model        Opt[string] `json:"model" rules:"max=200"`
	Repo         Opt[string] `json:"repo" rules:"nullable,max=255"`
	Branch       Opt[string] `json:"branch" rules:"nullable,max=255"`
	Instructions Opt[string] `json:"instructions" rules:"max=131072"`
	Preflight    bool        `json:"preflight"`
	Mode         Opt[string] `json:"mode" enum:"build,plan,implement_plan"`
	SessionOptions
}

// BulkIssues is the answer to a bulk creation: the issues of the items in their order, and
// the sessions of the items with a dispatch.
type BulkIssues struct {
	Issues   []BulkIssue   `json:"issues"`
	Sessions []BulkSession `json:"sessions"`
}

// BulkIssue is the issue of an item. In a dry run a new issue has no id, identifier and
// number, and its parentId is null if its parent is new.
type BulkIssue struct {
	Issue
	ID      *IssueID `json:"id"`
	Ref     *string  `json:"ref"`
	Created bool     `json:"created"`
}

// BulkSession is a session of a bulk creation. In a dry run it has no id, nor that of its
// issue.
type BulkSession struct {
	DispatchedSession
	ID      *SessionID `json:"id"`
	IssueID *IssueID   `json:"issueId"`
}

// Validate checks what the tags can't express, and makes the plan of the refs.
func (in *BulkIssuesIn) Validate(faults *Faults) {
	total, schemas := 0, bulkSchemas{known: map[string]string{}}
	for i := range in.Items {
		item, at := &in.Items[i], fmt.Sprintf("items[%d].", i)
		item.IssueFields.validateAt(at, faults)
		if d := item.Dispatch.Ptr(); d != nil {
			d.validateShape(at+"dispatch.", faults)
			schemas.check(at+"dispatch.resultSchema", d.ResultSchema, faults)
		}
		if total += len(item.Relations); total > maxBulkRelations {
			faults.Add(at+"relations", fmt.Sprintf("The items must have at most %d relations together.", maxBulkRelations))
			return
		}
	}
	in.plan = planBulk(in.Items, faults)
}

// ValidateFor checks the times of the first claims. An item whose externalRef is taken has
// no dispatch, so those of items with one are left to the operation.
func (in *BulkIssuesIn) ValidateFor(_ *Caller, now time.Time, faults *Faults) {
	for i := range in.Items {
		if d := in.Items[i].Dispatch.Ptr(); d != nil && in.Items[i].ExternalRef.Ptr() == nil {
			d.validateTimes(now, fmt.Sprintf("items[%d].dispatch.", i), faults)
		}
	}
}

// bulkSchemas compiles the schemas of a request, each of them once.
type bulkSchemas struct {
	total int
	known map[string]string // their faults
}

func (s *bulkSchemas) check(at string, schema []byte, faults *Faults) {
	if len(schema) == 0 || schema[0] != '{' || faults.Has(at) {
		return
	}
	text := string(schema)
	fault, known := s.known[text]
	if !known {
		if s.total += len(text); s.total > maxBatchSchemas {
			fault = fmt.Sprintf("The schemas of a request that differ must have at most %d bytes together.", maxBatchSchemas)
		} else {
			fault = schemaFault(schema)
		}
		s.known[text] = fault
	}
	if fault != "" {
		faults.Add(at, fault)
	}
}
