package tracker

import (
	"errors"

	"switchyard/storage"
)

// CreateWorkspace creates a workspace that the calling user owns. If the operator
// calls, the owner is a new user.
var CreateWorkspace = NewWorkflow[NewWorkspaceIn, Workspace]("CreateWorkspace", "Create a workspace", Needs{Level: Identified}, createWorkspace, Answers(Created), Audits(auditWorkspace),
	ForCallers("a user's token that the user created, with the permission write, or the operator's token"))

// PointToOnboarding returns the error of a creation that was not admitted. To a caller without a valid credential it
// names the request that needs none.
func PointToOnboarding(err error) error {
	var told *Error
	if !errors.As(err, &told) || told.Code != CodeUnauthorized {
		return err
	}
	refusal := *told
	refusal.Hint += " Without a token, send the same body to POST /workspaces/onboard: the answer has one."
	return &refusal
}

func createWorkspace(f Flow, in *NewWorkspaceIn) (Reply, error) {
	rights, err := checkCreation(f)
	if err != nil {
		return Reply{}, err
	}
	return newWorkspace(f, in, foundOp, rights)
}

// creationRights are the result of the check of rights to create a workspace: the
// permit, and the future owner. Only checkCreation makes them.
type creationRights struct {
	permitted bool
	owner     UserID // empty for a new user
}

// permit returns the permit for the workspace that is about to be created.
func (r creationRights) permit(id WorkspaceID) Permit {
	if !r.permitted {
		return Permit{}
	}
	return permitCreation(id.raw())
}

// checkCreation checks the rights to create a workspace. Onboarding was admitted by its own
// rule, for everybody or for the operator.
func checkCreation(f Flow) (creationRights, error) {
	req := f.Request()
	caller, admitted := &req.Caller, req.admitted
	switch {
	case req.permit.basis == basisService:
		return creationRights{permitted: true}, nil
	case admitted == nil:
		return creationRights{}, errNoRights("a workspace's creation")
	case admitted.Onboarding, caller.Root:
		return creationRights{permitted: true}, nil
	case caller.Type != ActorUser:
		return creationRights{}, Forbidden("Only people make workspaces.", "Use a token with actorType user, or the root token.")
	case caller.Confined:
		return creationRights{}, Forbidden("This token is good for its own workspace only.", "Use a token the user made, or the root token.")
	case !caller.Permissions.Includes(PermWrite):
		return creationRights{}, Forbidden("This token may not write.", "Use a token with the permission write.")
	}
	return creationRights{permitted: true, owner: UserID(caller.ID)}, nil
}

// newWorkspace runs the steps of a creation. found is the step that makes the
// workspace.
func newWorkspace(f Flow, in *NewWorkspaceIn, found *Op, rights creationRights) (Reply, error) {
	req := f.Request()
	owner := rights.owner
	if owner == "" {
		owner = UserID(f.NewID().String())
	}
	reserve := reserveSlugIn{Workspace: WorkspaceID(f.NewID().String()), Slug: in.Slug, Owner: owner, Answer: answerName(req)}
	reserved, err := f.CommandAs(rights.permit(reserve.Workspace), req.Caller, storage.DirectoryID, reserveSlugOp, &reserve)
	// A repeat gets the first request's entry, with the same workspace and owner.
	entry, err := readReply[directoryEntry](reserveSlugOp.Name, reserved, err)
	if err != nil {
		return Reply{}, err
	}
	step := directoryStep{entry.Workspace}
	creation := foundIn{Name: in.Name, Slug: in.Slug, Key: in.key(), Owner: entry.Owner, Reserved: entry.CreatedAt}
	if reserved.Replayed {
		held, err := ask[reservation](f, storage.DirectoryID, reservationOp, &step)
		if err != nil {
			return Reply{}, err
		}
		if !held.Exists {
			return Reply{}, errWorkspaceGone()
		}
		creation.Again = held.Founded
	}
	permit := rights.permit(entry.Workspace)
	reply, err := f.CommandAs(permit, asOwner(req.Caller), step.id(), found, &creation)
	if err != nil {
		return Reply{}, notFounded(f, permit, &reserved, &entry, err)
	}
	if _, err := f.Command(permit, storage.DirectoryID, activateSlugOp, &step); err != nil {
		return Reply{}, err
	}
	return reply, nil
}

// asOwner returns a caller with the rights of the owner of the new workspace.
func asOwner(c Caller) Caller {
	c.Role, c.Level, c.Hidden, c.Teams = RoleOwner, Admin, nil, nil
	return c
}

// notFounded handles the failure of a creation's second step.
func notFounded(f Flow, permit Permit, reserved *Reply, entry *directoryEntry, failure error) error {
	step := directoryStep{entry.Workspace}
	switch {
	case reserved.Replayed:
		// The workspace may have been deleted after its entry was read.
		held, err := ask[reservation](f, storage.DirectoryID, reservationOp, &step)
		if err == nil && !held.Exists {
			return errWorkspaceGone()
		}
	case f.Request().Idempotency == nil && notApplied(failure):
		// Without a key no other request can continue this reservation. If the release
		// fails, too, the timer releases it.
		_, _ = f.Command(permit, storage.DirectoryID, releaseSlugOp, &releaseSlugIn{step, &entry.CreatedAt})
	}
	return failure
}

// notApplied reports whether an error means that the step certainly changed nothing.
func notApplied(err error) bool {
	var refusal *Error
	if !errors.As(err, &refusal) {
		return false
	}
	outcome, ok := refusal.Details.(OutcomeDetails)
	return refusal.Code != CodeUnavailable || ok && outcome.Outcome == "not_applied"
}

// errWorkspaceGone is the answer to a repeated creation whose workspace has been
// deleted since.
func errWorkspaceGone() *Error {
	return Conflict("The workspace made with this Idempotency-Key is gone.", "Use a new key to make another one.")
}

// reservation is the directory's knowledge of a workspace. Founded is also set while the
// workspace is being deleted.
type reservation struct {
	Exists   bool       `json:"exists"`
	Founded  bool       `json:"founded"`
	Reserved *Timestamp `json:"reserved,omitempty"` // when the entry was made
}

// reservationOp reports whether the directory has an entry for a workspace, and whether the
// workspace was founded.
var reservationOp = NewQuery[directoryStep, reservation]("DirectoryHolds", "Tell whether the directory knows a workspace", Needs{}, func(v *View, in *directoryStep) (Reply, error) {
	row, err := v.entry(in.Workspace)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return jsonReply(Done, reservation{})
	}
	return jsonReply(Done, reservation{true, row.Value.State != slugReserved, &row.Value.CreatedAt})
}, InDirectory)
