package tracker

import (
	"fmt"
	"slices"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// The audit says who changed what decides on rights, limits and connections (Decision 69).
// An operation declares with Audits the kinds of its acts. Then every change of a table of
// these kinds makes an entry, in the batch of the change. Entries of the directory are the
// cluster's list. The operator's acts in a workspace are in both lists: see audit_send.go.

// AuditEntry is one administrative act.
type AuditEntry struct {
	ID        string            `json:"id"`
	At        Timestamp         `json:"at"`
	Actor     AuditActor        `json:"actor"`
	Action    string            `json:"action"`
	Target    AuditTarget       `json:"target"`
	Changes   map[string]FromTo `json:"changes"`
	RequestID string            `json:"requestId"`
	Address   string            `json:"address"`
}

// AuditActor is who acted. The operator is "root" of type "root".
type AuditActor struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

// AuditTarget is what an act was about. ID is the id in the resource's path.
type AuditTarget struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// The kinds of acts.
const (
	auditToken          = "token"
	auditMember         = "member"
	auditTeam           = "team"
	auditOAuthClient    = "oauth_client"
	auditSCIMConnection = "scim_connection"
	auditWebhook        = "webhook"
	auditChannel        = "channel"
	auditInboundSecret  = "inbound_secret"
	auditInboundRoute   = "inbound_route"
	auditAccess         = "access"
	auditShare          = "share"
	auditLimit          = "limit"
	auditWorkspace      = "workspace"
	auditCluster        = "cluster"
	auditHold           = "hold"
	auditBudget         = "budget"
	auditRetention      = "retention"
)

// The acts of most kinds.
const (
	actCreated  = "created"
	actUpdated  = "updated"
	actDeleted  = "deleted"
	actReadOnly = "read_only"
	actEnded    = "ended"
	// The acts of a workspace that moves here.
	actArriving  = "arriving"
	actArrived   = "arrived"
	actAbandoned = "arrival_abandoned"
	// The acts of a workspace that a file is imported into.
	actImporting = "importing"
	actImported  = "imported"
)

// audits holds the entries, newest first.
var audits = storage.Table[AuditEntry]{
	ID:   auditTable,
	Name: "audit",
	Key:  func(k storage.Key, e *AuditEntry) storage.Key { return newestKey(k, e.ID) },
}

// The cluster's list has entries of other clocks, so the directory's clock may be behind its newest.
var _ = declareTable(&audits)

// Audits declares the kinds of administrative acts of an operation.
func Audits(kinds ...string) Option { return func(o *Op) { o.Audits = kinds } }

// auditNote is an act of the running command.
type auditNote struct {
	kind, act, target string
	changes           map[string]FromTo
}

// audit notes an act. The entry is written with the command, if that succeeds. Acts of one
// target in a command make one entry.
func (tx *Tx) audit(kind, act, target string, changes map[string]FromTo) {
	if changes == nil {
		changes = map[string]FromTo{}
	}
	for i := range tx.acts {
		n := &tx.acts[i]
		if n.kind != kind || n.target != target {
			continue
		}
		if n.act != actCreated || act == actDeleted {
			n.act = act
		}
		for field, c := range changes {
			if earlier, known := n.changes[field]; known {
				c.From = earlier.From
			}
			n.changes[field] = c
		}
		return
	}
	tx.acts = append(tx.acts, auditNote{kind, act, target, changes})
}

// audited makes changes of a table acts of a kind. It is the Changed of the table.
func audited[T any](kind string, target func(*T) string) func(storage.Writer, *T, *T) error {
	return func(w storage.Writer, old, new *T) error {
		tx, ok := w.(*Tx)
		if !ok || !slices.Contains(tx.audits, kind) {
			return nil
		}
		changes, err := auditChanges(old, new)
		if err != nil {
			return err
		}
		switch {
		case old == nil:
			tx.audit(kind, actCreated, target(new), changes)
		case new == nil:
			tx.audit(kind, actDeleted, target(old), changes)
		default:
			tx.audit(kind, actUpdated, target(new), changes)
		}
		return nil
	}
}

// auditedHere is audited for a record of which a workspace has one. Its target is the workspace.
// A record that is always there, if only with the defaults, is never created.
func auditedHere[T any](kind string, always bool) func(storage.Writer, *T, *T) error {
	return func(w storage.Writer, old, new *T) error {
		tx, ok := w.(*Tx)
		if !ok {
			return nil
		}
		if always && old == nil {
			var none T
			old = &none
		}
		return audited(kind, func(*T) string { return tx.Workspace().String() })(w, old, new)
	}
}

// auditOmits are fields of records that entries don't show: secrets, and what the entry says
// already.
var auditOmits = []string{"id", "connectionId", "organizationId", "issueId", "createdAt", "updatedAt", "token", "secret", "hash"}

// auditChanges lists the fields that differ between two records, either of which may be nil.
func auditChanges[T any](old, new *T) (map[string]FromTo, error) {
	from, err := auditFields(old)
	if err != nil {
		return nil, err
	}
	to, err := auditFields(new)
	if err != nil {
		return nil, err
	}
	null := json.RawMessage("null")
	changes := map[string]FromTo{}
	for field, was := range from {
		is := to[field]
		if is == nil {
			is = null
		}
		if string(was) != string(is) {
			changes[field] = FromTo{was, is}
		}
	}
	for field, is := range to {
		if from[field] == nil && string(is) != "null" {
			changes[field] = FromTo{null, is}
		}
	}
	return changes, nil
}

func auditFields[T any](record *T) (map[string]json.RawMessage, error) {
	if record == nil {
		return nil, nil
	}
	body, err := json.MarshalWithOption(record, json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("encode a record for the audit: %w", err)
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, fmt.Errorf("read a record for the audit: %w", err)
	}
	for _, field := range auditOmits {
		delete(fields, field)
	}
	return fields, nil
}

// writeAudit writes the entries of the command's acts.
func (tx *Tx) writeAudit(req *Request) error {
	for i := range tx.acts {
		n := &tx.acts[i]
		id, err := tx.NewID()
		if err != nil {
			return fmt.Errorf("make an entry's id: %w", err)
		}
		e := AuditEntry{
			ID: id.String(), At: At(tx.now), Actor: AuditActor{tx.Caller.ID, string(tx.Caller.Type)},
			Action: n.kind + "." + n.act, Target: AuditTarget{n.kind, n.target}, Changes: n.changes, RequestID: req.ID,
		}
		switch {
		case tx.Caller.Root:
			e.Actor.Type = "root"
		case tx.founder != "":
			e.Actor = AuditActor{string(tx.founder), string(ActorUser)}
		}
		if req.Address.IsValid() {
			e.Address = req.Address.String()
		}
		if _, err := audits.Insert(tx, &e); err != nil {
			return fmt.Errorf("add to the audit: %w", err)
		}
		if tx.Caller.Root && !tx.Workspace().IsService() {
			if err := tx.sendAudit(&e); err != nil {
				return err
			}
		}
	}
	if len(tx.acts) == 0 {
		return nil
	}
	return tx.sweepAuditLater()
}
