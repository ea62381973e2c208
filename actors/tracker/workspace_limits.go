package tracker

import (
	"fmt"

	"switchyard/storage"
)

// WorkspaceLimits are the limits that the operator has set for a workspace; null: the
// limit of the flag.
type WorkspaceLimits struct {
	Issues            *int64 `json:"issues"`
	Bytes             *int64 `json:"bytes"`
	Sessions          *int64 `json:"sessions"`
	Tokens            *int64 `json:"tokens"`
	Subscriptions     *int64 `json:"subscriptions"`
	RequestsPerSecond *int64 `json:"requestsPerSecond"`
	CreatesPerSecond  *int64 `json:"createsPerSecond"`
}

// WorkspaceUsage is what a workspace has of what limits are about.
type WorkspaceUsage struct {
	Issues        uint64 `json:"issues"`        // all, archived ones too
	Bytes         uint64 `json:"bytes"`         // with attachments, events and kept answers
	Sessions      uint64 `json:"sessions"`      // that have not ended
	Tokens        uint64 `json:"tokens"`        // with the one of the onboarding
	Subscriptions uint64 `json:"subscriptions"` // to webhooks
}

// LimitsAndUsage is the answer about a workspace's limits.
type LimitsAndUsage struct {
	Limits WorkspaceLimits `json:"limits"`
	Used   WorkspaceUsage  `json:"used"`
}

// limitRows holds the limits of a workspace; no row stands for none of its own.
var limitRows = storage.Table[WorkspaceLimits]{
	ID:      limitsTable,
	Name:    "limits",
	Key:     func(k storage.Key, _ *WorkspaceLimits) storage.Key { return k },
	Changed: auditedHere[WorkspaceLimits](auditLimit, false),
	// A Caller carries the limit on requests.
	Dirty: DirtyAccess,
}

var _ = declareTable(&limitRows)

// readLimits returns the limits that the operator has set for a workspace.
func readLimits(v *storage.View) (WorkspaceLimits, error) {
	row, err := limitRows.Get(v, nil)
	if err != nil {
		return WorkspaceLimits{}, fmt.Errorf("read the limits: %w", err)
	}
	if row == nil {
		return WorkspaceLimits{}, nil
	}
	return row.Value, nil
}

// usage returns what a workspace has, from its counters.
func usage(number func(counterKey) (uint64, error)) (u WorkspaceUsage, err error) {
	for _, c := range [...]struct {
		to  *uint64
		key counterKey
	}{
		{&u.Issues, usageKey(rowsIssues)}, {&u.Bytes, bytesKey(bytesAll)}, {&u.Sessions, usageKey(rowsSessions)},
		{&u.Tokens, usageKey(rowsTokens)}, {&u.Subscriptions, usageKey(rowsSubscriptions)},
	} {
		if *c.to, err = number(c.key); err != nil {
			return u, fmt.Errorf("read what a workspace uses: %w", err)
		}
	}
	return u, nil
}

// GetLimits shows the limits of a workspace, and what it uses of them (Decision 70).
var GetLimits = NewQuery[None, LimitsAndUsage]("WorkspaceLimits", "Show the limits of a workspace and what it uses", Needs{Level: Operator}, func(v *View, _ *None) (Reply, error) {
	if _, err := v.workspace(); err != nil {
		return Reply{}, err
	}
	limits, err := readLimits(&v.View)
	if err != nil {
		return Reply{}, err
	}
	used, err := usage(func(key counterKey) (uint64, error) { return v.Number(key.table, key.subject[:]) })
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, LimitsAndUsage{limits, used})
}, FromSnapshot)

// PutLimitsIn are the new limits of a workspace. They replace those that it has.
type PutLimitsIn struct {
	Limits LimitsIn `json:"limits" rules:"required"`
}

// LimitsIn are limits in a request. An absent or null one is the flag's.
type LimitsIn struct {
	Issues            Opt[int64] `json:"issues" rules:"nullable,min=0,max=9007199254740991"`
	Bytes             Opt[int64] `json:"bytes" rules:"nullable,min=0,max=9007199254740991"`
	Sessions          Opt[int64] `json:"sessions" rules:"nullable,min=0,max=9007199254740991"`
	Tokens            Opt[int64] `json:"tokens" rules:"nullable,min=0,max=9007199254740991"`
	Subscriptions     Opt[int64] `json:"subscriptions" rules:"nullable,min=0,max=9007199254740991"`
	RequestsPerSecond Opt[int64] `json:"requestsPerSecond" rules:"nullable,min=0,max=9007199254740991"`
	CreatesPerSecond  Opt[int64] `json:"createsPerSecond" rules:"nullable,min=0,max=9007199254740991"`
}

// PutLimits sets the limits of a workspace. Existing records beyond them stay.
var PutLimits = NewCommand[PutLimitsIn, LimitsAndUsage]("PutWorkspaceLimits", "Set the limits of a workspace", Needs{Level: Operator}, putLimits, Audits(auditLimit))

func putLimits(tx *Tx, in *PutLimitsIn) (Reply, error) {
	set := WorkspaceLimits{
		Issues: in.Limits.Issues.Ptr(), Bytes: in.Limits.Bytes.Ptr(), Sessions: in.Limits.Sessions.Ptr(), Tokens: in.Limits.Tokens.Ptr(), Subscriptions: in.Limits.Subscriptions.Ptr(),
		RequestsPerSecond: in.Limits.RequestsPerSecond.Ptr(), CreatesPerSecond: in.Limits.CreatesPerSecond.Ptr(),
	}
	old, err := limitRows.Get(tx, nil)
	switch {
	case err != nil:
	case old == nil:
		_, err = limitRows.Insert(tx, &set)
	default:
		_, err = limitRows.Update(tx, old, &set)
	}
	if err != nil {
		return Reply{}, fmt.Errorf("set the limits: %w", err)
	}
	tx.buffer.limits = nil // they are read again
	used, err := usage(func(key counterKey) (uint64, error) { return tx.buffer.counters.number(tx, key) })
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, LimitsAndUsage{set, used})
}
