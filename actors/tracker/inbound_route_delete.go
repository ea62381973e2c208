package tracker

import (
	"fmt"

	"switchyard/storage"
)

// DeleteInboundRoute removes a workspace's route, active or pending. Another
// workspace's pending route of the key stays pending, until the operator confirms it
// or, with OpenRoutes, that workspace repeats its request.
var DeleteInboundRoute = NewWorkflow[InboundRouteIn, None]("DeleteInboundRoute", "Remove the route of a number or repository", Needs{Level: Admin}, deleteInboundRoute, WithSpaceEffect(FreesSpace), Audits(auditInboundRoute))

func deleteInboundRoute(f Flow, in *InboundRouteIn) (Reply, error) {
	req := f.Request()
	permit, err := permitOf(f)
	if err != nil {
		return Reply{}, err
	}
	kept, err := requireWritable(f)
	if err != nil {
		return Reply{}, err
	}
	if kept != nil {
		return *kept, nil
	}
	before, err := ownRoute(f, in)
	if err != nil {
		return Reply{}, err
	}
	reply, err := f.CommandAs(permit, req.Caller, storage.DirectoryID, deleteRouteOp, &routeStep{WorkspaceID(req.Workspace.String()), in.Kind, in.Key})
	if err != nil || reply.Replayed {
		return reply, err
	}
	return reply, auditRoute(f, permit, in, before)
}

var deleteRouteOp = NewCommand[routeStep, None]("DeleteRoute", "Remove a route", Needs{}, func(tx *Tx, in *routeStep) (Reply, error) {
	active, err := tx.route(in.Kind, in.Key)
	if err != nil {
		return Reply{}, err
	}
	claim, err := tx.pendingRoute(in.Kind, in.Key, in.Workspace)
	if err != nil {
		return Reply{}, err
	}
	switch {
	case active != nil && active.Value.OrganizationID == in.Workspace:
		err = inboundRoutes.Delete(tx, active)
	case claim != nil:
		err = inboundClaims.Delete(tx, claim)
	default:
		return Reply{}, NotFound("inbound route")
	}
	if err != nil {
		return Reply{}, fmt.Errorf("remove a route: %w", err)
	}
	return Reply{Outcome: NoContent}, nil
}, InDirectory, WithSpaceEffect(FreesSpace))
