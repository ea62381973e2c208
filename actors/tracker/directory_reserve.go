package tracker

import (
	"fmt"

	"switchyard/storage"
)

// reserveSlugIn is a slug to reserve for a new workspace.
type reserveSlugIn struct {
	Workspace WorkspaceID `json:"workspace"`
	Slug      string      `json:"slug"`
	Owner     UserID      `json:"owner"`
	Answer    string      `json:"answer"`
	// Brought is set if the operator moves or imports the workspace: --workspaces-per-user bounds those that
	// users make. A node of an older version does not know it.
	Brought bool `json:"brought,omitempty"`
}

func (in *reserveSlugIn) about() storage.ID { return in.Workspace.raw() }

// reserveSlugOp is the first step of a creation. With an idempotency key its answer is
// kept as usual, so a repeated creation continues with the first one's workspace and
// owner.
var reserveSlugOp = NewCommand[reserveSlugIn, directoryEntry]("ReserveSlug", "Reserve a slug", Needs{}, func(tx *Tx, in *reserveSlugIn) (Reply, error) {
	own, err := tx.entry(in.Workspace)
	if err != nil {
		return Reply{}, err
	}
	if own != nil {
		// Another request makes the workspace with this id, or has just made it. A repeat learns that.
		return Reply{}, errBeingMade()
	}
	taken, err := tx.entryBySlug(in.Slug)
	if err != nil {
		return Reply{}, err
	}
	if taken != nil {
		return Reply{}, Conflict("The slug "+in.Slug+" is taken.", "Choose another slug: it is unique across the service.")
	}
	if !in.Brought {
		if err := tx.mayOwnAnother(in.Owner); err != nil {
			return Reply{}, err
		}
	}
	e := directoryEntry{
		Workspace: in.Workspace, Slug: in.Slug, State: slugReserved, Owner: in.Owner,
		CreatedAt: At(tx.now), Answer: in.Answer,
	}
	body, err := directory.Insert(tx, &e)
	if err != nil {
		return Reply{}, fmt.Errorf("reserve a slug: %w", err)
	}
	// The timer completes or releases the reservation if the next steps fail.
	return Reply{Body: body}, tx.SetTimer(timerResolve, string(in.Workspace), tx.now.Add(resolveAfter))
}, InDirectory)

// reserveSlug has the directory reserve a slug for a workspace that the operator brings here. The workspace has to be founded
// within foundWithin of the entry's time.
func reserveSlug(f Flow, permit Permit, in *reserveSlugIn) (directoryEntry, error) {
	in.Brought = true
	reply, err := f.Command(permit, storage.DirectoryID, reserveSlugOp, in)
	return readReply[directoryEntry](reserveSlugOp.Name, reply, err)
}

// errBeingMade is the answer to a request that is to make a workspace under an id for which the
// directory has an entry already.
func errBeingMade() *Error {
	return NotApplied("The workspace is being made by another request.")
}

// mayOwnAnother returns CONFLICT if a user owns as many workspaces as the operator
// allows.
func (tx *Tx) mayOwnAnother(owner UserID) error {
	most := tx.operator.workspacesPerUser()
	if most == 0 {
		return nil
	}
	n := 0
	err := tx.Rows(directoryByOwner, memberKey(nil, owner), nil, func(_, _ []byte) (bool, error) {
		n++
		return n < most, nil
	})
	if err != nil {
		return fmt.Errorf("count a user's workspaces: %w", err)
	}
	if n < most {
		return nil
	}
	return Conflict("The user has made "+Counted(most, "workspace", "workspaces")+", the most there can be (--workspaces-per-user).", "Delete one, or have the operator make the workspace for another user.")
}

// activateSlugOp is the last step of a creation, after the workspace was founded. It
// fails if the directory has no entry for the workspace.
var activateSlugOp = NewCommand[directoryStep, None]("ActivateSlug", "Confirm a reserved slug", Needs{}, func(tx *Tx, in *directoryStep) (Reply, error) {
	row, err := tx.entry(in.Workspace)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, errWorkspaceGone()
	}
	if row.Value.State == slugReserved {
		if err := tx.setEntryState(row, slugActive); err != nil {
			return Reply{}, err
		}
		if err := tx.putMembership(in.Workspace, memberChanged{User: row.Value.Owner, Present: true, Version: firstOwnerVersion}); err != nil {
			return Reply{}, err
		}
	}
	return Reply{Outcome: NoContent}, tx.ClearTimer(timerResolve, string(in.Workspace))
}, InDirectory)

// releaseSlugIn names a reservation by the time when it was made: another one for the same workspace
// may have taken its place. A node of an older version names no time.
type releaseSlugIn struct {
	directoryStep
	Reserved *Timestamp `json:"reserved,omitempty"`
}

// releaseSlugOp removes a reservation whose workspace was never founded.
var releaseSlugOp = NewCommand[releaseSlugIn, None]("ReleaseSlug", "Release a reserved slug", Needs{}, func(tx *Tx, in *releaseSlugIn) (Reply, error) {
	row, err := tx.entry(in.Workspace)
	if err != nil {
		return Reply{}, err
	}
	if row != nil && row.Value.State == slugReserved {
		if in.Reserved != nil && *in.Reserved != row.Value.CreatedAt {
			return Reply{Outcome: NoContent}, nil
		}
		if err := tx.dropAnswer(row.Value.Answer); err != nil {
			return Reply{}, err
		}
		if err := directory.Delete(tx, row); err != nil {
			return Reply{}, fmt.Errorf("release a slug: %w", err)
		}
	}
	return Reply{Outcome: NoContent}, tx.ClearTimer(timerResolve, string(in.Workspace))
}, InDirectory)

// resolveSlugOp completes a reservation that was not activated in time. The workspace's
// own shard shows if it was founded; it can't be founded any more by then.
var resolveSlugOp = NewWorkflow[TimerIn, None]("ResolveSlug", "Settle a reserved slug", Needs{}, func(f Flow, in *TimerIn) (Reply, error) {
	step := directoryStep{Workspace: WorkspaceID(in.Subject)}
	permit, err := permitOf(f)
	if err != nil {
		return Reply{}, err
	}
	held, err := ask[reservation](f, storage.DirectoryID, reservationOp, &step)
	if err != nil {
		return Reply{}, err
	}
	there, err := ask[existence](f, step.id(), existsOp, &None{})
	if err != nil {
		return Reply{}, err
	}
	if there.Exists {
		return f.Command(permit, storage.DirectoryID, activateSlugOp, &step)
	}
	return f.Command(permit, storage.DirectoryID, releaseSlugOp, &releaseSlugIn{step, held.Reserved})
})
