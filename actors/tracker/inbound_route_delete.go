package tracker

import (
	"fmt"

	"switchyard/storage"
)

// DeleteInboundRoute has a workspace take no more of what is sent about a number or
// a repository.
var DeleteInboundRoute = NewWorkflow[InboundRouteIn, None]("DeleteInboundRoute", "Stop taking what is sent about a number or repository", Needs{Level: Admin}, deleteInboundRoute)

func deleteInboundRoute(f Flow, in *InboundRouteIn) (Reply, error) {
	req := f.Request()
	permit, err := permitOf(f)
	if err != nil {
		return Reply{}, err
	}
	return f.CommandAs(permit, req.Caller, storage.DirectoryID, deleteRouteOp, &routeStep{WorkspaceID(req.Workspace.String()), in.Kind, in.Key})
}

var deleteRouteOp = NewCommand[routeStep, None]("DeleteRoute", "Remove a route", Needs{}, func(tx *Tx, in *routeStep) (Reply, error) {
	row, err := tx.route(in.Kind, in.Key)
	if err != nil {
		return Reply{}, err
	}
	if row == nil || row.Value.OrganizationID != in.Workspace {
		return Reply{}, NotFound("inbound route")
	}
	if err := inboundRoutes.Delete(tx, row); err != nil {
		return Reply{}, fmt.Errorf("remove a route: %w", err)
	}
	return Reply{Outcome: NoContent}, nil
}, InDirectory)
