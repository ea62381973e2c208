package tracker

import (
	"errors"

	"switchyard/storage"
)

// WorkspaceBySlugIn identifies a workspace by its slug.
type WorkspaceBySlugIn struct {
	Slug string `path:"slug"`
}

// WorkspaceBySlug reads the workspace that has a slug.
var WorkspaceBySlug = NewWorkflow[WorkspaceBySlugIn, Workspace]("WorkspaceBySlug", "Get a workspace by its slug", Needs{Level: Identified}, func(f Flow, in *WorkspaceBySlugIn) (Reply, error) {
	if !isSlug(in.Slug) {
		return Reply{}, NotFound("workspace")
	}
	step, err := ask[directoryStep](f, storage.DirectoryID, slugHolderOp, in)
	if err != nil {
		return Reply{}, err
	}
	return f.Query(step.id(), openWorkspaceOp, &openIn{f.Request().Caller.Principal})
}, ForCallers("the permission read"))

// slugHolderOp returns the workspace that has a slug.
var slugHolderOp = NewQuery[WorkspaceBySlugIn, directoryStep]("SlugHolder", "Find a workspace by its slug", Needs{}, func(v *View, in *WorkspaceBySlugIn) (Reply, error) {
	row, err := v.entryBySlug(in.Slug)
	if err != nil {
		return Reply{}, err
	}
	if row == nil || row.Value.State != slugActive {
		return Reply{}, NotFound("workspace")
	}
	return jsonReply(Done, directoryStep{row.Value.Workspace})
}, InDirectory)

// openIn is the principal that wants to read a workspace.
type openIn struct {
	Principal Principal `json:"principal"`
}

// openWorkspaceOp reads a workspace for a principal whose request did not name it in
// the path, so that its rights have not been checked yet.
var openWorkspaceOp = NewQuery[openIn, Workspace]("OpenWorkspace", "Get a workspace if it may be seen", Needs{}, func(v *View, in *openIn) (Reply, error) {
	if err := admit(v, &in.Principal, Needs{Level: Read}); err != nil {
		return Reply{}, err
	}
	return workspaceByID(v, nil)
})

// admit checks the rights of a principal in the workspace that v reads.
func admit(v *View, p *Principal, n Needs) error {
	caller, err := ResolveCaller(v.Reader(), *p)
	if err != nil {
		return err
	}
	if !caller.Allows(n) {
		return errLacksRight(n)
	}
	return nil
}

func isNotFound(err error) bool {
	var refusal *Error
	return errors.As(err, &refusal) && refusal.Code == CodeNotFound
}
