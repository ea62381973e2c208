package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// transferSessions shows sessions as GET does. Waiting claims are no part of the workspace, so an
// export has no_claimer also for sessions that one of them is about to get.
var transferSessions = transferKind{
	name: "session", tables: []storage.TableID{sessionTable, planTable}, places: placesOf(sessionTable, newestLast),
	line: func(v *View, b, key []byte) ([]byte, error) {
		return appendStored(v, sessionTable, b, key, func(b []byte, rec storage.Record) ([]byte, error) {
			x := explainer{v: v}
			b, err := x.appendExplained(b, rec)
			if err != nil {
				return b, err
			}
			return v.appendPlan(b, rec)
		})
	},
}

// transferBudgets shows budgets as GET does. An import adds up the spent amounts
// from the usage.
var transferBudgets = transferKind{
	name: "budget", tables: []storage.TableID{budgetTable}, places: placesOf(budgetTable, atLast),
	line: func(v *View, b, key []byte) ([]byte, error) {
		row, err := budgets.Get(v, key)
		if err != nil || row == nil {
			return nil, goneFrom("a budget", err)
		}
		scope, _ := parseBudgetScope(row.Value.Scope)
		shown, err := v.shownBudget(scope, &row.Value)
		if err != nil {
			return b, err
		}
		return appendJSON(b, &shown)
	},
}

// transferredState is what a session's record has that clients don't get.
type transferredState struct {
	SessionID SessionID `json:"sessionId"`
	sessionInner
}

// transferSessionStates shows the inner part of sessions without secrets, and without what
// follows from the activities.
var transferSessionStates = transferKind{
	name: "session_state", places: placesOf(sessionTable, newestLast),
	line: func(v *View, b, key []byte) ([]byte, error) {
		row, err := sessions.Get(v, key)
		if err != nil || row == nil {
			return nil, goneFrom("a session", err)
		}
		t := transferredState{row.Value.ID, row.Value.Inner}
		t.Lanes, t.Stale, t.Final, t.Retried, t.RetriedBy = nil, nil, nil, nil, ""
		t.Attempt = t.Attempt.renumbered(t.First)
		t.Plan = false // the session has it
		if row.Value.Status == SessionCreated {
			t.Park = nil // follows from holds, limits and times
		}
		t.First, t.Last, t.LastActivity, t.LastType = 0, 0, "", ""
		return appendJSON(b, &t)
	},
}

// transferredBrief is a session's instructions.
type transferredBrief struct {
	SessionID    SessionID `json:"sessionId"`
	Instructions string    `json:"instructions"`
}

var transferSessionBriefs = rowKind("session_instructions", sessionBriefTable, byOldestFirst, func(b, key, value []byte) ([]byte, error) {
	if len(key) != len(storage.ID{}) {
		return nil, fmt.Errorf("%w: instructions of %d bytes of key", storage.ErrFormat, len(key))
	}
	return appendJSON(b, transferredBrief{SessionID(storage.ID(key).String()), string(value)})
})

var transferDrafts = transferKind{
	name: "draft", tables: []storage.TableID{draftTable}, places: placesOf(draftTable, newestLast),
	line: func(v *View, b, key []byte) ([]byte, error) {
		return appendStored(v, draftTable, b, key, func(b []byte, rec storage.Record) ([]byte, error) {
			return append(append(b, publicPart(rec.JSON())...), '}'), nil
		})
	},
}

// transferredDraft is what a draft's record has that clients don't get.
type transferredDraft struct {
	DraftID DraftID `json:"draftId"`
	draftInner
}

var transferDraftStates = transferKind{
	name: "draft_state", places: placesOf(draftTable, newestLast),
	line: func(v *View, b, key []byte) ([]byte, error) {
		row, err := drafts.Get(v, key)
		if err != nil || row == nil {
			return nil, goneFrom("a draft", err)
		}
		return appendJSON(b, &transferredDraft{row.Value.ID, row.Value.Inner})
	},
}

// transferTimers has the timers of transferredTimers.
var transferTimers = transferKind{
	name: "timer", tables: []storage.TableID{timerTable},
	places: func(v *View, add func(storage.ID, []byte)) error {
		return placesOf(timerTable, func(_, value []byte) (storage.ID, error) { return lastPlace, nil })(v, func(made storage.ID, key []byte) {
			if kind, _, ok := storage.CutStr(key); ok && transferredTimers[kind] != nil {
				add(made, key)
			}
		})
	},
	line: func(v *View, b, key []byte) ([]byte, error) {
		return appendStored(v, timerTable, b, key, func(b []byte, rec storage.Record) ([]byte, error) {
			return append(b, rec.JSON()...), nil
		})
	},
}

// transferReleases shows the issues of releaseTable as timers that move on the sessions which
// wait for them. The events of a release stay behind, as the event log does.
var transferReleases = transferKind{
	name: transferTimers.name, tables: []storage.TableID{releaseTable}, places: placesOf(releaseTable, atLast),
	line: func(v *View, b, key []byte) ([]byte, error) {
		row, err := timers.Get(v, timerKey(nil, timerRelease, ""))
		if err != nil || row == nil {
			return nil, goneFrom("the timer of releases", err)
		}
		return appendJSON(b, Timer{Kind: timerWhenReady, Subject: issueOfKey(key).String(), Due: row.Value.Due})
	},
}

var transferInboundSecrets = transferKind{
	name: "inbound_secret", tables: []storage.TableID{inboundSecretTable}, places: placesOf(inboundSecretTable, byCreatedAt),
	line: func(v *View, b, key []byte) ([]byte, error) {
		return appendStored(v, inboundSecretTable, b, key, func(b []byte, rec storage.Record) ([]byte, error) {
			var shown InboundSource // without the secret
			if err := json.Unmarshal(rec.JSON(), &shown); err != nil {
				return nil, fmt.Errorf("read an inbound secret: %w", err)
			}
			return appendJSON(b, &shown)
		})
	},
}
