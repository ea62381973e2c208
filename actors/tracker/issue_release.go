package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// Types of events about blocked issues.
var (
	eventIssueBlocked = newEventKind("issue.blocked", "issues", onItself)
	eventIssueReady   = newEventKind("issue.ready", "issues", onItself)
)

// issueHook does what follows from a change of an issue, in the batch of the change.
type issueHook func(tx *Tx, issue storage.ID) error

// afterUnblock has what follows when an issue stops being blocked, and afterClose what
// follows when an issue is closed. Init functions add to them: as initial values, hooks
// that change issues again would depend on themselves.
var afterUnblock, afterClose []issueHook

// A command that closes issues may release many others, with large events and with many
// sessions that wait for them. It does what follows for as many issues as one can block, if no
// more than one session waits for each. It stops at maxUnblockedSessions where more do, so that
// it keeps other commands of the workspace waiting for a few milliseconds. It leaves the rest
// as rows of releaseTable to a timer. So does a command that opens a blocker of many large issues,
// behind maxUnblockedBytes.
const (
	maxUnblocked         = maxRelations
	maxUnblockedBytes    = 4 << 20
	maxUnblockedSessions = 30
)

// timerRelease continues with the rows of releaseTable.
const timerRelease = "issue.release"

// heldRelease is the value of a row of releaseTable.
type heldRelease struct {
	Actor EventActor `json:"actor"`
	By    []string   `json:"by"` // ids of issues
	// Blocked is set if the issue has become blocked: that is still to be told.
	Blocked bool `json:"blocked,omitempty"`
}

// tellBlocked tells of an issue that an open blocker was added to, or leaves it to the timer.
func (tx *Tx) tellBlocked(issue storage.ID) error {
	if tx.written() <= maxUnblockedBytes {
		return tx.emitBlocked(issue)
	}
	return tx.holdRelease(issue, &heldRelease{Blocked: true})
}

// emitBlocked tells of an issue that an open blocker was added to.
func (tx *Tx) emitBlocked(issue storage.ID) error {
	row, body, err := tx.issueAndBody(issue)
	if err != nil {
		return err
	}
	return tx.Emit(eventIssueBlocked, row, body, nil)
}

// issueAndBody returns the header of an existing issue's record and a copy of its JSON.
func (tx *Tx) issueAndBody(issue storage.ID) (head storage.Header, body []byte, err error) {
	found, err := issues.Record(tx, issueKey(issue), func(rec storage.Record) error {
		head, body = rec.Header(), append([]byte(nil), rec.JSON()...)
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("issue %s is not there", issue)
	}
	return head, body, err
}

// release does what follows for an issue that has lost its last open blocker, or leaves it
// to the timer.
func (tx *Tx) release(issue storage.ID, by []storage.ID) error {
	if w := tx.blocking(); w.released < maxUnblocked && tx.hasRoomToRelease(w.released) {
		w.released++
		return tx.unblocked(issue, by)
	}
	held := new(heldRelease)
	for _, id := range by {
		held.By = append(held.By, id.String())
	}
	return tx.holdRelease(issue, held)
}

// holdRelease leaves what follows for an issue to the timer.
func (tx *Tx) holdRelease(issue storage.ID, held *heldRelease) error {
	held.Actor = EventActor{ID: tx.Caller.ID, Type: tx.Caller.Type}
	value, err := json.Marshal(held)
	if err != nil {
		return fmt.Errorf("encode a release: %w", err)
	}
	if err := tx.Writer().SetValue(releaseTable, issueKey(issue), value); err != nil {
		return err
	}
	return tx.SetTimerAtOnce(timerRelease, "")
}

// hasRoomToRelease reports whether a command that has released some issues may release one
// more.
func (tx *Tx) hasRoomToRelease(released int) bool {
	moved := tx.followers.moved
	return (moved < maxUnblockedSessions || moved <= released) && tx.written() <= maxUnblockedBytes
}

// forgetRelease drops what the timer has still to do for an issue that is blocked again.
func (tx *Tx) forgetRelease(c *blockChange) error {
	if c.was > 0 {
		return nil
	}
	pk := issueKey(c.issue)
	held, err := tx.Has(releaseTable, pk)
	if err != nil || !held {
		return err
	}
	return tx.Writer().DeleteValue(releaseTable, pk)
}

// unblocked tells of an issue that is not blocked any more, if it is ready now, and calls
// afterUnblock. Sessions that wait for the issue are released after the event: until then
// they don't keep it from being ready.
func (tx *Tx) unblocked(issue storage.ID, by []storage.ID) error {
	var ready bool
	var head storage.Header
	var body []byte
	found, err := issues.Record(tx, issueKey(issue), func(rec storage.Record) (err error) {
		if ready, err = tx.isReady(issue, rec, At(tx.now)); ready {
			head, body = rec.Header(), append([]byte(nil), rec.JSON()...)
		}
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("issue %s is not there", issue)
	}
	if err != nil {
		return err
	}
	if ready {
		if err := tx.Emit(eventIssueReady, head, appendReleasers(body, by), nil); err != nil {
			return err
		}
	}
	for _, do := range afterUnblock {
		if err := do(tx, issue); err != nil {
			return err
		}
	}
	return nil
}

// releasersField is the field of issue.ready's data that names the issues by which the
// issue was released. It is the last.
const releasersField = `,"releasedBy":[`

// appendReleasers adds releasedBy to an issue's JSON.
func appendReleasers(body []byte, by []storage.ID) []byte {
	body = append(body[:len(body)-1], releasersField...)
	for i, id := range by {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(id.AppendText(append(body, '"')), '"')
	}
	return append(body, `]}`...)
}

// releaseOp continues with issues that are not blocked any more.
var releaseOp = NewCommand[TimerIn, None]("ReleaseIssues", "Tell of further issues that are not blocked any more", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	if err := tx.ClearTimer(in.Kind, in.Subject); err != nil {
		return Reply{}, err
	}
	keys, err := tx.rowKeys(releaseTable, nil, maxUnblocked+1)
	if err != nil {
		return Reply{}, err
	}
	service := tx.Caller
	defer func() { tx.Caller = service }()
	for i, pk := range keys {
		if i == maxUnblocked || !tx.hasRoomToRelease(i) {
			return Reply{Outcome: NoContent}, tx.SetTimerAtOnce(in.Kind, in.Subject)
		}
		if err := tx.releaseHeld(pk); err != nil {
			return Reply{}, err
		}
	}
	return Reply{Outcome: NoContent}, nil
}, Prompt)

// releaseHeld does what follows for the issue of a row of releaseTable, in the name of the
// actor that released or blocked it. Nothing is left to do if that is not so any more, or the issue
// was deleted.
func (tx *Tx) releaseHeld(pk []byte) error {
	value, err := tx.Value(releaseTable, pk, nil)
	if err != nil {
		return err
	}
	var held heldRelease
	if err := json.Unmarshal(value, &held); err != nil {
		return fmt.Errorf("read a release: %w", err)
	}
	if err := tx.Writer().DeleteValue(releaseTable, pk); err != nil {
		return err
	}
	there, err := tx.Has(issueTable, pk)
	if err != nil || !there {
		return err
	}
	if blocked, err := tx.isBlocked(pk); err != nil || blocked != held.Blocked {
		return err
	}
	by := make([]storage.ID, 0, len(held.By))
	for _, text := range held.By {
		id, ok := storage.ParseID(text)
		if !ok {
			return fmt.Errorf("%w: release by %q", storage.ErrFormat, text)
		}
		by = append(by, id)
	}
	author := *tx.Caller
	author.ID, author.Type = held.Actor.ID, held.Actor.Type
	tx.Caller = &author
	if held.Blocked {
		return tx.emitBlocked(issueOfKey(pk))
	}
	return tx.unblocked(issueOfKey(pk), by)
}
