package tracker

import (
	"fmt"

	"switchyard/storage"
)

// The operator's acts in a workspace are written to the workspace's audit, and to a row
// from which it is copied to the directory. The engine copies before it answers the
// operator; the timer does after a crash, or while the directory has no owner.

// unsentAudits are the operator's entries that the cluster's list lacks.
var unsentAudits = storage.Table[AuditEntry]{
	ID:   auditUnsent,
	Name: "unsentAudit",
	Key: func(k storage.Key, e *AuditEntry) storage.Key {
		id, _ := storage.ParseID(e.ID)
		return k.ID(id)
	},
}

var _ = declareTable(&unsentAudits)

const (
	timerSendAudit = "send.audit"
	// sendAuditBatch bounds the entries sent at a time.
	sendAuditBatch = 100
)

func (tx *Tx) sendAudit(e *AuditEntry) error {
	if _, err := unsentAudits.Insert(tx, e); err != nil {
		return fmt.Errorf("add to the audit: %w", err)
	}
	return tx.SetTimerAtOnce(timerSendAudit, "")
}

// auditEntries are entries on their way to the directory.
type auditEntries struct {
	Entries []AuditEntry `json:"entries"`
}

// SendAudit copies the operator's entries of a workspace to the cluster's list.
var SendAudit = NewWorkflow[TimerIn, None]("SendAudit", "Copy the operator's acts to the cluster's audit", Needs{}, func(f Flow, _ *TimerIn) (Reply, error) {
	permit, err := permitOf(f)
	if err != nil {
		return Reply{}, err
	}
	workspace := f.Request().Workspace
	unsent, err := ask[auditEntries](f, workspace, unsentAuditOp, &None{})
	if err != nil {
		return Reply{}, err
	}
	if len(unsent.Entries) > 0 {
		if _, err := f.Command(permit, storage.DirectoryID, keepAuditOp, &unsent); err != nil {
			return Reply{}, err
		}
	}
	_, err = f.Command(permit, workspace, sentAuditOp, &unsent)
	return Reply{Outcome: NoContent}, err
}, WithSpaceEffect(FreesSpace))

var unsentAuditOp = NewQuery[None, auditEntries]("UnsentAudit", "List entries that the cluster's audit lacks", Needs{}, func(v *View, _ *None) (Reply, error) {
	unsent := auditEntries{Entries: []AuditEntry{}}
	err := unsentAudits.Scan(v, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := unsentAudits.Decode(rec)
		if err != nil {
			return false, err
		}
		unsent.Entries = append(unsent.Entries, row.Value)
		return len(unsent.Entries) < sendAuditBatch, nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("read the audit: %w", err)
	}
	return jsonReply(Done, unsent)
})

// keepAuditOp adds entries to the cluster's list, each once.
var keepAuditOp = NewCommand[auditEntries, None]("KeepAudit", "Add to the cluster's audit", Needs{}, func(tx *Tx, in *auditEntries) (Reply, error) {
	for i := range in.Entries {
		e := &in.Entries[i]
		there, err := tx.Has(auditTable, newestKey(nil, e.ID))
		if err != nil {
			return Reply{}, err
		}
		if there {
			continue
		}
		if _, err := audits.Insert(tx, e); err != nil {
			return Reply{}, fmt.Errorf("add to the audit: %w", err)
		}
	}
	return Reply{Outcome: NoContent}, tx.sweepAuditLater()
}, InDirectory, WithSpaceEffect(FreesSpace))

// sentAuditOp forgets entries that the cluster's list has.
var sentAuditOp = NewCommand[auditEntries, None]("SentAudit", "Note that the cluster's audit has entries", Needs{}, func(tx *Tx, in *auditEntries) (Reply, error) {
	for i := range in.Entries {
		id, _ := storage.ParseID(in.Entries[i].ID)
		row, err := unsentAudits.Get(tx, storage.Key(nil).ID(id))
		if err == nil && row != nil {
			err = unsentAudits.Delete(tx, row)
		}
		if err != nil {
			return Reply{}, fmt.Errorf("note what was sent of the audit: %w", err)
		}
	}
	left, err := tx.Has(auditUnsent, nil)
	if err != nil {
		return Reply{}, err
	}
	if left {
		return Reply{Outcome: NoContent}, tx.SetTimerAtOnce(timerSendAudit, "")
	}
	return Reply{Outcome: NoContent}, tx.ClearTimer(timerSendAudit, "")
}, WithSpaceEffect(FreesSpace))

// Act is an administrative act that is no change of a record: a command to the cluster, or
// a change of the directory in the name of a workspace.
type Act struct {
	Kind   string `json:"kind"`
	Act    string `json:"act"`
	Target string `json:"target"`
	// Changes are the changed fields.
	Changes map[string]FromTo `json:"changes,omitempty"`
}

// RecordAct adds a command to the cluster to the cluster's audit.
var RecordAct = NewWorkflow[Act, None]("RecordAct", "Add a command to the cluster's audit", Needs{Level: Operator}, func(f Flow, in *Act) (Reply, error) {
	permit, err := permitOperator(f)
	if err != nil {
		return Reply{}, err
	}
	req := f.Request()
	req.Idempotency = nil // commands to the cluster take no key
	return f.CommandAs(permit, req.Caller, storage.DirectoryID, recordActOp, in)
})

// recordActOp writes an entry.
var recordActOp = NewCommand[Act, None]("RecordActHere", "Add to the audit", Needs{}, func(tx *Tx, in *Act) (Reply, error) {
	tx.audit(in.Kind, in.Act, in.Target, in.Changes)
	return Reply{Outcome: NoContent}, nil
}, WithSpaceEffect(FreesSpace))
