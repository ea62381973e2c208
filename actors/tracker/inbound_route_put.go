package tracker

import (
	"fmt"

	"switchyard/storage"
)

// PutInboundRoute has a workspace take what is sent about a number or a repository.
// One that another workspace has is CONFLICT.
var PutInboundRoute = NewWorkflow[InboundRouteIn, InboundRoute]("PutInboundRoute", "Take what is sent about a number or repository", Needs{Level: Admin}, putInboundRoute)

func putInboundRoute(f Flow, in *InboundRouteIn) (Reply, error) {
	req := f.Request()
	permit, err := permitOf(f)
	if err != nil {
		return Reply{}, err
	}
	return f.CommandAs(permit, req.Caller, storage.DirectoryID, putRouteOp, &routeStep{WorkspaceID(req.Workspace.String()), in.Kind, in.Key})
}

var putRouteOp = NewCommand[routeStep, InboundRoute]("PutRoute", "Set the workspace of a number or repository", Needs{}, func(tx *Tx, in *routeStep) (Reply, error) {
	entry, err := tx.entry(in.Workspace)
	if err != nil {
		return Reply{}, err
	}
	// One that is on its way out takes its routes along; none may come after.
	if entry == nil || entry.Value.State == slugDeleting {
		return Reply{}, NotFound("workspace")
	}
	row, err := tx.route(in.Kind, in.Key)
	if err != nil {
		return Reply{}, err
	}
	if row != nil && row.Value.OrganizationID != in.Workspace {
		return Reply{}, Conflict("Another workspace takes what is sent about it.", "Have it removed there first: each number and repository has one workspace.")
	}
	if row != nil {
		return jsonReply(Done, &row.Value)
	}
	held, err := tx.rowKeys(inboundRouteByHolder, workspaceKey(nil, in.Workspace), maxRoutes)
	if err != nil {
		return Reply{}, err
	}
	if len(held) >= maxRoutes {
		return Reply{}, Conflict(fmt.Sprintf("The workspace has %d inbound routes, the most there can be.", len(held)), "Delete some of them first.")
	}
	r := InboundRoute{Kind: in.Kind, Key: in.Key, OrganizationID: in.Workspace, CreatedAt: At(tx.now)}
	body, err := inboundRoutes.Insert(tx, &r)
	if err != nil {
		return Reply{}, fmt.Errorf("set a route: %w", err)
	}
	return Reply{Body: body}, nil
}, InDirectory)
