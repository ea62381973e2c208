package tracker

import (
	"errors"
	"fmt"
	"time"

	"switchyard/actors/tracker/resultschema"
)

// DispatchBatchIn is a list of issues to dispatch.
type DispatchBatchIn struct {
	Items []DispatchItem `json:"items" rules:"required,min=1,max=50"`
}

// DispatchItem is one issue to dispatch.
type DispatchItem struct {
	IssueID      string      `json:"issueId" rules:"required,min=1,max=255"`
	AgentID      Opt[string] `json:"agentId" rules:"min=1,max=255"`
	Branch       Opt[string] `json:"branch" rules:"nullable,max=255"`
	Instructions Opt[string] `json:"instructions" rules:"max=131072"`
	SessionOptions

	// schemaFault is the fault of the schema, once it was checked.
	schemaFault *string
}

// DispatchedBatch is the answer to DispatchBatch: the result of each item, in the same
// order.
type DispatchedBatch struct {
	BatchID string           `json:"batchId"`
	Results []DispatchedItem `json:"results"`
}

// DispatchedItem is the result of an item: its session with its status, or an error.
type DispatchedItem struct {
	IssueID   string         `json:"issueId"`
	SessionID *SessionID     `json:"sessionId"`
	Status    *SessionStatus `json:"status"`
	Error     *string        `json:"error"`
}

// maxBatchSchemas limits the total bytes of a batch's distinct schemas: compiling one
// is costly, and each item may have another.
const maxBatchSchemas = 2 * resultschema.MaxSchema

// Validate checks what the tags can't express. A schema's fault fails only its own
// item, but it is looked for here, where no other request waits.
func (in *DispatchBatchIn) Validate(faults *Faults) {
	for i := range in.Items {
		in.Items[i].validateShape(fmt.Sprintf("items[%d].", i), faults)
	}
	if !faults.Empty() {
		return
	}
	total, known := 0, map[string]*string{}
	for i := range in.Items {
		item := &in.Items[i]
		text := string(item.ResultSchema)
		if text == "" || text[0] != '{' {
			continue
		}
		if known[text] == nil {
			if total += len(text); total > maxBatchSchemas {
				faults.Add(fmt.Sprintf("items[%d].resultSchema", i), fmt.Sprintf("The schemas of a batch that differ must have at most %d bytes together.", maxBatchSchemas))
				return
			}
			fault := schemaFault(item.ResultSchema)
			known[text] = &fault
		}
		item.schemaFault = known[text]
	}
}

// ValidateFor checks the times of the first claims.
func (in *DispatchBatchIn) ValidateFor(_ *Caller, now time.Time, faults *Faults) {
	for i := range in.Items {
		in.Items[i].validateTimes(now, fmt.Sprintf("items[%d].", i), faults)
	}
}

// DispatchBatch dispatches many issues independently of each other (Decision 33).
var DispatchBatch = NewCommand[DispatchBatchIn, DispatchedBatch]("DispatchBatch", "Dispatch many issues to agents", Needs{Write, "sessions"}, dispatchBatch, StrictBody)

func dispatchBatch(tx *Tx, in *DispatchBatchIn) (Reply, error) {
	var faults Faults
	in.ValidateFor(tx.Caller, tx.now, &faults)
	if err := faults.Err(); err != nil {
		return Reply{}, err
	}
	id, err := tx.NewID()
	if err != nil {
		return Reply{}, err
	}
	out := DispatchedBatch{BatchID: id.String(), Results: make([]DispatchedItem, len(in.Items))}
	dispatched := make(map[string]bool, len(in.Items)) // whether an issue's last item was dispatched
	for i := range in.Items {
		item, result := &in.Items[i], &out.Results[i]
		result.IssueID = item.IssueID
		s, fault, err := tx.dispatchItem(item, dispatched)
		if err != nil {
			return Reply{}, err
		}
		dispatched[item.IssueID] = s != nil
		if s == nil {
			result.Error = &fault
			continue
		}
		result.SessionID, result.Status = &s.ID, &s.Status
	}
	return jsonReply(Done, &out)
}

// dispatchItem makes the session of one item, or returns why it can't be made. A
// refused item has written nothing.
func (tx *Tx) dispatchItem(item *DispatchItem, dispatched map[string]bool) (s *sessionRecord, fault string, err error) {
	issue, err := tx.issue(item.IssueID)
	if err != nil {
		return nil, "", err
	}
	if issue == nil {
		return nil, NotFound("issue").Message, nil
	}
	if issue.Value.ArchivedAt != nil {
		return nil, errArchived(&issue.Value).Message, nil
	}
	if item.schemaFault == nil {
		text := schemaFault(item.ResultSchema)
		item.schemaFault = &text
	}
	if *item.schemaFault != "" {
		return nil, "resultSchema: " + *item.schemaFault, nil
	}
	n := &newSession{Issue: issue, AgentID: item.AgentID.Value, Branch: item.Branch, Instructions: item.Instructions, Options: item.SessionOptions}
	for _, after := range queuedAfterIDs(item.QueuedAfter, "", new(Faults)) {
		if was, given := dispatched[after]; given && !was {
			return nil, "queuedAfter: The item before it for that issue was not dispatched.", nil
		}
	}
	var faults Faults
	if n.After, err = tx.predecessors(item.QueuedAfter, "", &faults); err != nil {
		return nil, "", err
	}
	if !faults.Empty() {
		return nil, faults.list[0].Path + ": " + faults.list[0].Message, nil
	}
	if err = tx.roomForSessions(); err == nil {
		s, _, _, err = tx.addSession(n)
	}
	if refused := (*Error)(nil); errors.As(err, &refused) && (refused.Code == CodeConflict || refused.Code == CodeBadRequest) {
		return nil, refused.Message, nil
	}
	return s, "", err
}
