package tracker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchyard/storage"
)

// Hold keeps the sessions of a scope from being claimed. They stay in the queue, and
// running ones go on (Decision 60).
type Hold struct {
	Scope       string     `json:"scope"`
	Until       *Timestamp `json:"until"`
	Reason      string     `json:"reason"`
	CreatedByID string     `json:"createdById"`
	CreatedAt   Timestamp  `json:"createdAt"`
}

// holds has a row for each scope on hold.
var holds = storage.Table[Hold]{
	ID:   holdTable,
	Name: "hold",
	Key:  func(k storage.Key, h *Hold) storage.Key { return k.Str(h.Scope) },
	Changed: func(w storage.Writer, old, new *Hold) error {
		if err := audited(auditHold, func(h *Hold) string { return h.Scope })(w, old, new); err != nil || new != nil {
			return err
		}
		if tx, ok := w.(*Tx); ok && slices.Contains(tx.audits, auditHold) {
			tx.audit(auditHold, actEnded, old.Scope, nil)
		}
		return nil
	},
}

var _ = declareTable(&holds, atMost(1000, "holds"))

// Types of events about holds.
var (
	eventHoldCreated = newEventKind("hold.created", "sessions", onNoIssue)
	eventHoldEnded   = newEventKind("hold.ended", "sessions", onNoIssue)
)

// isHoldScope reports whether a text is a scope that can be put on hold.
func isHoldScope(text string) bool {
	if text == scopeWorkspace {
		return true
	}
	if agent, is := strings.CutPrefix(text, scopeAgent); is {
		return isScopeName(agent, 255)
	}
	provider, is := strings.CutPrefix(text, scopeProvider)
	return is && isScopeName(provider, 200)
}

// isScopeName reports whether a text can name an agent or a provider in a scope.
func isScopeName(text string, most int) bool {
	return text != "" && len([]rune(text)) <= most && !strings.ContainsRune(text, 0)
}

// HoldIn names a scope.
type HoldIn struct {
	Scope string `path:"scope" form:"holdScope"`
}

// PutHoldIn puts a scope on hold.
type PutHoldIn struct {
	HoldIn
	Until  Opt[string] `json:"until" rules:"nullable,datetime"`
	Reason string      `json:"reason" rules:"required,min=1,max=500"`
}

// Validate checks what the tags can't express.
func (in *PutHoldIn) Validate(faults *Faults) {
	if text := in.Until.Ptr(); text != nil && !faults.Has("until") && snooze(text) == nil {
		faults.Add("until", "Must be an RFC 3339 date and time between the years 0000 and 9999 in UTC.")
	}
}

// ValidateFor checks that the end lies ahead.
func (in *PutHoldIn) ValidateFor(_ *Caller, now time.Time, faults *Faults) {
	if until := snooze(in.Until.Ptr()); until != nil && !until.Time().After(now) {
		faults.Add("until", faultPast)
	}
}

// ShownHold is the answer to PutHold.
type ShownHold struct {
	Hold Hold `json:"hold"`
}

// HoldList lists the holds.
type HoldList struct {
	Holds []Hold `json:"holds"`
}

// holdCallers are the callers that mayHold lets through.
const holdCallers = "the owner or admin role in the workspace, and the permission admin; for the hold of an agent, a token of that agent with the permission write or sessions:write suffices"

// PutHold puts a scope on hold, or replaces its hold (Decision 60).
var PutHold = NewCommand[PutHoldIn, ShownHold]("PutHold", "Put sessions on hold", Needs{Write, "sessions"}, putHold, Refuses(CodeConflict), Audits(auditHold), ForCallers(holdCallers))

func putHold(tx *Tx, in *PutHoldIn) (Reply, error) {
	if err := tx.mayHold(in.Scope); err != nil {
		return Reply{}, err
	}
	h := Hold{Scope: in.Scope, Until: snooze(in.Until.Ptr()), Reason: in.Reason, CreatedByID: tx.Caller.ID, CreatedAt: At(tx.order)}
	var faults Faults
	in.ValidateFor(tx.Caller, tx.now, &faults)
	if err := faults.Err(); err != nil {
		return Reply{}, err
	}
	old, err := tx.hold(in.Scope)
	if err != nil {
		return Reply{}, err
	}
	var list changes
	if old == nil {
		if err := tx.countRecord(holdTable, 1); err != nil {
			return Reply{}, err
		}
		_, err = holds.Insert(tx, &h)
	} else {
		note(&list, "until", old.Value.Until, h.Until)
		note(&list, "reason", &old.Value.Reason, &h.Reason)
		_, err = holds.Update(tx, old, &h)
	}
	if err != nil {
		return Reply{}, fmt.Errorf("store a hold: %w", err)
	}
	if err := tx.tellHold(eventHoldCreated, &h, list); err != nil {
		return Reply{}, err
	}
	if h.Until != nil {
		err = tx.SetTimer(timerHold, h.Scope, h.Until.Time())
	} else {
		err = tx.ClearTimer(timerHold, h.Scope)
	}
	if err != nil {
		return Reply{}, err
	}
	if err := tx.suspendScope(parkHold, h.Scope); err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, &ShownHold{h})
}

// mayHold refuses callers who are neither admins nor the agent of the scope.
func (tx *Tx) mayHold(scope string) error {
	c := tx.Caller
	if c.Root || c.Level >= Admin || c.Type == ActorAgent && c.Kind == WorkspaceToken && scope == scopeAgent+c.ID {
		return nil
	}
	return Forbidden("Only owners and admins put sessions on hold, and an agent its own.", "Ask an admin of the workspace, or use the scope agent: with the id of the token's agent.")
}

// hold returns the hold of a scope, or nil.
func (v *View) hold(scope string) (*storage.Row[Hold], error) {
	row, err := holds.Get(v, storage.Key(nil).Str(scope))
	if err != nil {
		return nil, fmt.Errorf("read a hold: %w", err)
	}
	return row, nil
}

func (tx *Tx) tellHold(event *eventKind, h *Hold, list []Change) error {
	body, err := jsonReply(Done, h)
	if err != nil {
		return err
	}
	return tx.Emit(event, toAll, body.Body, list)
}

// DeleteHold ends a hold.
var DeleteHold = NewCommand[HoldIn, None]("DeleteHold", "End a hold", Needs{Write, "sessions"}, deleteHold, WithSpaceEffect(FreesSpace), Audits(auditHold), ForCallers(holdCallers))

func deleteHold(tx *Tx, in *HoldIn) (Reply, error) {
	if err := tx.mayHold(in.Scope); err != nil {
		return Reply{}, err
	}
	row, err := tx.hold(in.Scope)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("hold")
	}
	return Reply{Outcome: NoContent}, tx.endHold(row)
}

// endHold removes a hold and releases its sessions.
func (tx *Tx) endHold(row *storage.Row[Hold]) error {
	h := &row.Value
	if err := holds.Delete(tx, row); err != nil {
		return fmt.Errorf("remove a hold: %w", err)
	}
	if err := tx.countRecord(holdTable, -1); err != nil {
		return err
	}
	if err := tx.ClearTimer(timerHold, h.Scope); err != nil {
		return err
	}
	if err := tx.tellHold(eventHoldEnded, h, nil); err != nil {
		return err
	}
	return tx.resumeScope(parkHold, h.Scope)
}

// timerHold ends a hold at its until; the subject is the scope.
const timerHold = "hold.end"

var endHoldOp = NewCommand[TimerIn, None]("EndHold", "End a hold at its time", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	row, err := tx.hold(in.Subject)
	switch {
	case err != nil:
		return Reply{}, err
	case row == nil || row.Value.Until == nil:
		return Reply{Outcome: NoContent}, tx.ClearTimer(in.Kind, in.Subject)
	case row.Value.Until.Time().After(tx.now):
		return Reply{Outcome: NoContent}, tx.SetTimer(in.Kind, in.Subject, row.Value.Until.Time())
	}
	return Reply{Outcome: NoContent}, tx.endHold(row)
})

// ListHolds lists the holds that have not ended.
var ListHolds = NewQuery[None, HoldList]("ListHolds", "List holds", Needs{Read, "sessions"}, listHolds, FromSnapshot)

func listHolds(v *View, _ *None) (Reply, error) {
	list := HoldList{Holds: []Hold{}}
	err := holds.Scan(v, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := holds.Decode(rec)
		if err != nil {
			return false, err
		}
		if until := row.Value.Until; until == nil || until.Time().After(v.now) {
			list.Holds = append(list.Holds, row.Value)
		}
		return true, nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list the holds: %w", err)
	}
	slices.SortStableFunc(list.Holds, func(a, b Hold) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return jsonReply(Done, &list)
}

// checkHolds checks that exactly the scopes on hold are suspended by holds, and that holds
// with an end have a timer.
func checkHolds(v *storage.View, report reporter) error {
	err := holds.Scan(v, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := holds.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		there, err := v.Has(suspensionTable, suspensionKey(parkHold, row.Value.Scope))
		if err != nil {
			return false, err
		}
		set, err := v.Has(timerTable, timerKey(nil, timerHold, row.Value.Scope))
		if err != nil {
			return false, err
		}
		if !there || set != (row.Value.Until != nil) {
			report(holds.Name, pk, "its scope is suspended: %t, and its end has a timer: %t", there, set)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	return v.Rows(suspensionTable, []byte{byte(parkHold)}, nil, func(fields, _ []byte) (bool, error) {
		there, err := v.Has(holdTable, fields[1:])
		if err == nil && !there {
			report("suspended scope", fields, "no hold suspends it")
		}
		return true, err
	})
}
