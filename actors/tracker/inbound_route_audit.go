package tracker

import (
	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// A route is a row of the directory. The entry about a change of it is written to the audit
// of the workspace that asked for the change, in a step of its own.

// routeState is the status of a workspace's own route; empty for none.
type routeState struct {
	Status string `json:"status"`
}

// ownRoute returns the state of the route that a request names.
func ownRoute(f Flow, in *InboundRouteIn) (routeState, error) {
	return ask[routeState](f, storage.DirectoryID, ownRouteOp, &routeStep{WorkspaceID(f.Request().Workspace.String()), in.Kind, in.Key})
}

var ownRouteOp = NewQuery[routeStep, routeState]("OwnRoute", "Read the state of a workspace's route", Needs{}, func(v *View, in *routeStep) (Reply, error) {
	active, err := v.route(in.Kind, in.Key)
	if err != nil {
		return Reply{}, err
	}
	if active != nil && active.Value.OrganizationID == in.Workspace {
		return jsonReply(Done, routeState{"active"})
	}
	claim, err := v.pendingRoute(in.Kind, in.Key, in.Workspace)
	if err != nil || claim == nil {
		return jsonReply(Done, routeState{})
	}
	return jsonReply(Done, routeState{"pending"})
}, InDirectory)

// auditRoute records that the state of a route has changed, if it has.
func auditRoute(f Flow, permit Permit, in *InboundRouteIn, before routeState) error {
	after, err := ownRoute(f, in)
	if err != nil || after == before {
		return err
	}
	value := func(s routeState) json.RawMessage {
		if s.Status == "" {
			return json.RawMessage("null")
		}
		return json.RawMessage(`"` + s.Status + `"`)
	}
	act := Act{Kind: auditInboundRoute, Act: actUpdated, Target: string(in.Kind) + "/" + in.Key, Changes: map[string]FromTo{"status": {value(before), value(after)}}}
	switch "" {
	case before.Status:
		act.Act = actCreated
	case after.Status:
		act.Act = actDeleted
	}
	req := f.Request()
	req.Idempotency = nil // the answer is kept with the change
	_, err = f.CommandAs(permit, req.Caller, req.Workspace, recordActOp, &act)
	return err
}
