package tracker

import (
	"cmp"
	"fmt"

	"switchyard/storage"
)

// PutInboundRouteOut is the answer to PutInboundRoute.
type PutInboundRouteOut struct {
	Route InboundRoute `json:"route"`
}

// PutInboundRoute claims the calls for a number or a repository for a workspace. The
// service's own secret signs these calls, so a claim proves nothing: it stays pending
// until the operator repeats the request, which also moves an active route from one
// workspace to another (Decision 47).
var PutInboundRoute = NewWorkflow[InboundRouteIn, PutInboundRouteOut]("PutInboundRoute", "Route a number or repository to the workspace", Needs{Level: Admin}, putInboundRoute, Audits(auditInboundRoute))

func putInboundRoute(f Flow, in *InboundRouteIn) (Reply, error) {
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
	reply, err := f.CommandAs(permit, req.Caller, storage.DirectoryID, putRouteOp, &putRouteIn{
		routeStep: routeStep{WorkspaceID(req.Workspace.String()), in.Kind, in.Key},
		Open:      f.Inbound().OpenRoutes,
		Routes:    cmp.Or(f.Inbound().Routes, DefaultInboundRoutes),
		Claims:    cmp.Or(f.Inbound().Claims, DefaultInboundClaims),
	})
	if err != nil || reply.Replayed {
		return reply, err
	}
	return reply, auditRoute(f, permit, in, before)
}

// putRouteIn is the input of putRouteOp, with the settings of the node that got the
// request: Open is InboundSettings.OpenRoutes, which makes a claim of a key without an
// active route active at once; Routes and Claims are the limits of InboundSettings.
type putRouteIn struct {
	routeStep
	Open   bool `json:"open"`
	Routes int  `json:"routes"`
	Claims int  `json:"claims"`
}

var putRouteOp = NewCommand[putRouteIn, PutInboundRouteOut]("PutRoute", "Set the workspace of a number or repository", Needs{}, func(tx *Tx, in *putRouteIn) (Reply, error) {
	entry, err := tx.entry(in.Workspace)
	if err != nil {
		return Reply{}, err
	}
	// A workspace that is being deleted must not get new routes.
	if entry == nil || entry.Value.State == slugDeleting {
		return Reply{}, NotFound("workspace")
	}
	active, err := tx.route(in.Kind, in.Key)
	if err != nil {
		return Reply{}, err
	}
	if active != nil && active.Value.OrganizationID == in.Workspace {
		return jsonReply(Done, &PutInboundRouteOut{activeRoute(active)})
	}
	claim, err := tx.pendingRoute(in.Kind, in.Key, in.Workspace)
	if err != nil {
		return Reply{}, err
	}
	// The answer to a claim must not reveal whether another workspace has the key: it
	// is pending in either case, unless the operator asks or OpenRoutes is set.
	confirmed := tx.Caller.Root || in.Open && active == nil
	if claim != nil && !confirmed {
		return jsonReply(Done, &PutInboundRouteOut{claim.Value})
	}
	r := InboundRoute{Kind: in.Kind, Key: in.Key, OrganizationID: in.Workspace, Status: RoutePending, CreatedAt: At(tx.now)}
	if claim != nil {
		r.CreatedAt = claim.Value.CreatedAt
	} else if err := tx.roomForRoute(in.Workspace, in.Routes); err != nil {
		return Reply{}, err
	}
	if confirmed {
		err = tx.activateRoute(active, claim, &r)
	} else {
		err = tx.claimRoute(&r, in.Claims)
	}
	if err != nil {
		return Reply{}, err
	}
	return jsonReply(Done, &PutInboundRouteOut{r})
}, InDirectory)

// roomForRoute returns a Conflict if a workspace already has most routes, active and
// pending.
func (tx *Tx) roomForRoute(workspace WorkspaceID, most int) error {
	active, pending, err := tx.routesOf(workspace, most)
	if err != nil {
		return err
	}
	if n := len(active) + len(pending); n >= most {
		return Conflict("The workspace has "+Counted(n, "inbound route", "inbound routes")+", the most there can be.", "Delete some of them first. The operator sets the limit with --inbound-routes-per-workspace.")
	}
	return nil
}

// activateRoute makes a route active. It replaces the workspace's claim and another
// workspace's active route; both may be nil.
func (tx *Tx) activateRoute(active, claim *storage.Row[InboundRoute], r *InboundRoute) error {
	r.Status = RouteActive
	if claim != nil {
		if err := inboundClaims.Delete(tx, claim); err != nil {
			return fmt.Errorf("remove a pending route: %w", err)
		}
	}
	var err error
	if active != nil {
		_, err = inboundRoutes.Update(tx, active, r)
	} else {
		_, err = inboundRoutes.Insert(tx, r)
	}
	if err != nil {
		return fmt.Errorf("set a route: %w", err)
	}
	return nil
}

// claimRoute adds a pending route. If its key already has most of them, it removes the
// oldest: the operator can activate a route without a claim.
func (tx *Tx) claimRoute(r *InboundRoute, most int) error {
	var oldest *storage.Row[InboundRoute]
	n := 0
	err := inboundClaims.Scan(tx, routeKey(nil, r.Kind, r.Key), nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := inboundClaims.Decode(rec)
		if err != nil {
			return false, err
		}
		if n++; oldest == nil || row.Value.CreatedAt < oldest.Value.CreatedAt {
			oldest = row
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("read pending routes: %w", err)
	}
	if n >= most {
		if err := inboundClaims.Delete(tx, oldest); err != nil {
			return fmt.Errorf("remove a pending route: %w", err)
		}
	}
	if _, err := inboundClaims.Insert(tx, r); err != nil {
		return fmt.Errorf("add a pending route: %w", err)
	}
	return nil
}
