package tracker

import (
	"encoding/base64"
	"errors"
	"strings"

	"switchyard/storage"
)

// Timer kinds of the rules of Decision 21, for the issues beyond the limit of one
// command.
const (
	timerCloseChildren = "close.children"
	timerCloseParent   = "close.parent"
)

// cascade is the remaining work of a rule, encoded in its timer's subject: the issue to
// continue at, the last child that was closed, and the actor.
type cascade struct {
	issue storage.ID
	after storage.ID // the child in the form of its primary key; zero for a parent
	actor EventActor
}

// subject encodes a cascade. An actor's id may contain any character, so it is in
// Base64.
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
		// No child is closed yet. Children created from now on must not be: the key of
		// an id made now sorts after theirs and before those of all existing children.
		next, err := tx.NewID()
		if err != nil {
			return err
		}
		after = issueKey(next)
	}
	copy(c.after[:], after)
	return tx.SetTimerAtOnce(timerCloseChildren, c.subject())
}

func (tx *Tx) continueAbove(id storage.ID) error {
	c := cascade{issue: id, actor: EventActor{ID: tx.Caller.ID, Type: tx.Caller.Type}}
	return tx.SetTimerAtOnce(timerCloseParent, c.subject())
}

// closeChildrenOp continues to close the children of an issue, unless the issue was
// reopened. It works in the order of their keys, so children that were dealt with, or
// created later, are left alone.
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

// closeParentOp checks again whether the children of an issue are all closed.
var closeParentOp = NewCommand[TimerIn, None]("CloseParent", "Close an issue whose children are closed", Needs{}, func(tx *Tx, in *TimerIn) (Reply, error) {
	c, err := tx.resume(in)
	if err == nil {
		tx.rules().parents = []storage.ID{c.issue}
	}
	return Reply{Outcome: NoContent}, err
})

// resume decodes a cascade from its timer, clears the timer, and makes the original
// actor the author of the changes. Its rights were checked when the cascade began.
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
