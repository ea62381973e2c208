package tracker

import (
	"encoding/base64"
	"errors"
	"strings"

	"switchyard/storage"
)

// Timer kinds of closing by the rules of Decision 21, where one command would have
// closed too many issues at once.
const (
	timerCloseChildren = "close.children"
	timerCloseParent   = "close.parent"
)

// cascade is what is left to a timer, kept in its subject: the issue to go on at,
// behind which child, and on whose behalf.
type cascade struct {
	issue storage.ID
	after storage.ID // the child, as its primary key has it; zero for a parent
	actor EventActor
}

// subject writes a cascade down. Anything may be in an actor's id, so it is
// encoded.
func (c *cascade) subject() string {
	return strings.Join([]string{c.issue.String(), c.after.String(), string(c.actor.Type), base64.RawURLEncoding.EncodeToString([]byte(c.actor.ID))}, " ")
}

func parseCascade(subject string) (c cascade, err error) {
	parts := strings.Split(subject, " ")
	if len(parts) != 4 {
		return c, errors.New("the subject of a timer that closes issues has not four parts")
	}
	issue, ok := storage.ParseID(parts[0])
	after, ok2 := storage.ParseID(parts[1])
	actor, err := base64.RawURLEncoding.DecodeString(parts[3])
	if !ok || !ok2 || err != nil {
		return c, errors.New("the subject of a timer that closes issues can't be read")
	}
	return cascade{issue: issue, after: after, actor: EventActor{ID: string(actor), Type: ActorType(parts[2])}}, nil
}

func (tx *Tx) continueBelow(parent storage.ID, after []byte) error {
	c := cascade{issue: parent, actor: EventActor{ID: tx.Caller.ID, Type: tx.Caller.Type}}
	if after == nil {
		// None was closed yet. What is created from now on is not meant: an id made now
		// stands behind it and in front of all there are.
		next, err := tx.NewID()
		if err != nil {
			return err
		}
		after = issueKey(next)
	}
	copy(c.after[:], after)
	return tx.SetTimer(timerCloseChildren, c.subject(), tx.now)
}

func (tx *Tx) continueAbove(id storage.ID) error {
	c := cascade{issue: id, actor: EventActor{ID: tx.Caller.ID, Type: tx.Caller.Type}}
	return tx.SetTimer(timerCloseParent, c.subject(), tx.now)
}

// closeChildrenOp goes on closing the children of an issue, as long as the issue is
// closed: reopening it ends what its closing began. The order is that of their
// ids, so what was dealt with, and what came later, is left alone.
var closeChildrenOp = NewCommand[TimerIn, None]("CloseChildren", "Close further children of a closed issue", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	c, err := tx.resume(in)
	if err != nil {
		return Reply{}, err
	}
	row, err := issues.Get(tx, issueKey(c.issue))
	if err == nil && row != nil && row.Value.Status.Closed() {
		tx.rules().closings = []closing{{issue: c.issue, status: row.Value.Status, after: c.after[:], resumed: true}}
	}
	return Reply{Outcome: NoContent}, err
})

// closeParentOp looks at an issue again whose children may all be closed.
var closeParentOp = NewCommand[TimerIn, None]("CloseParent", "Close an issue whose children are closed", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	c, err := tx.resume(in)
	if err == nil {
		tx.rules().parents = []storage.ID{c.issue}
	}
	return Reply{Outcome: NoContent}, err
})

// resume takes a cascade from its timer and makes the one on whose behalf it runs
// the author of its changes. What it may change was decided when it began.
func (tx *Tx) resume(in *TimerIn) (cascade, error) {
	c, err := parseCascade(in.Subject)
	if err != nil {
		return c, err
	}
	author := *tx.Caller
	author.ID, author.Type = c.actor.ID, c.actor.Type
	tx.Caller = &author
	return c, tx.ClearTimer(in.Kind, in.Subject)
}
