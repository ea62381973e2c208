package tracker

import (
	"fmt"
	"strings"

	"switchyard/storage"
)

// RouteKind is the kind of key that a route has.
type RouteKind string

// The kinds of routes.
const (
	// RouteSMS routes have the number that a text message was sent to.
	RouteSMS RouteKind = "sms"
	// RouteVCS routes have the repository.
	RouteVCS RouteKind = "vcs1"
)

// EnumValues implements Enumerated.
func (RouteKind) EnumValues() []string {
	return enumTexts([]RouteKind{RouteSMS, RouteVCS})
}

// RouteStatus says whether a route is in use.
type RouteStatus string

// The statuses of a route (Decision 47).
const (
	// RoutePending routes are claims: no calls are delivered by them.
	RoutePending RouteStatus = "pending"
	// RouteActive routes receive the calls for their key; each key has at most one.
	RouteActive RouteStatus = "active"
)

// EnumValues implements Enumerated.
func (RouteStatus) EnumValues() []string {
	return enumTexts([]RouteStatus{RoutePending, RouteActive})
}

// InboundRoute says which workspace receives a provider's calls for a number or a
// repository. Routes are stored in the directory: the active ones in a table with one
// row per key, the pending ones in another, since several workspaces may claim the same
// key.
type InboundRoute struct {
	Kind           RouteKind   `json:"kind"`
	Key            string      `json:"key"`
	OrganizationID WorkspaceID `json:"organizationId"`
	Status         RouteStatus `json:"status"`
	// CreatedAt is the time when the workspace first claimed the key.
	CreatedAt Timestamp `json:"createdAt"`
}

const (
	// DefaultInboundRoutes is InboundSettings.Routes where it is not set.
	DefaultInboundRoutes = 500
	// DefaultInboundClaims is InboundSettings.Claims where it is not set.
	DefaultInboundClaims = 100
	// MaxInboundRoutes is the most that the operator can set either of them to: the
	// routes of a workspace are listed in one answer and deleted in one batch.
	MaxInboundRoutes = 5000
)

var inboundRoutes = storage.Table[InboundRoute]{
	ID:   inboundRouteTable,
	Name: "inboundRoute",
	Key:  func(k storage.Key, r *InboundRoute) storage.Key { return routeKey(k, r.Kind, r.Key) },
	Indexes: []storage.Index[InboundRoute]{{
		ID:      inboundRouteByHolder,
		Name:    "holder",
		Entries: func(e *storage.Entries, r *InboundRoute) { e.Add(workspaceKey(e.Key(), r.OrganizationID)) },
	}},
}

var _ = declareTable(&inboundRoutes)

var inboundClaims = storage.Table[InboundRoute]{
	ID:   inboundClaimTable,
	Name: "inboundClaim",
	Key: func(k storage.Key, r *InboundRoute) storage.Key {
		return claimKey(k, r.Kind, r.Key, r.OrganizationID)
	},
	Indexes: []storage.Index[InboundRoute]{{
		ID:      inboundClaimByHolder,
		Name:    "holder",
		Entries: func(e *storage.Entries, r *InboundRoute) { e.Add(workspaceKey(e.Key(), r.OrganizationID)) },
	}},
}

var _ = declareTable(&inboundClaims)

func routeKey(k storage.Key, kind RouteKind, key string) storage.Key {
	return k.Str(string(kind)).Str(key)
}

func claimKey(k storage.Key, kind RouteKind, key string, workspace WorkspaceID) storage.Key {
	return workspaceKey(routeKey(k, kind, key), workspace)
}

// InboundRouteIn identifies a route.
type InboundRouteIn struct {
	Kind RouteKind `path:"kind"`
	// Key is a telephone number, or a repository as owner/name.
	Key string `path:"key" rules:"max=255" form:"routeKey"`
}

// Validate checks what the tags can't express, and normalizes the key.
func (in *InboundRouteIn) Validate(faults *Faults) {
	if faults.Has("path.kind") || faults.Has("path.key") {
		return
	}
	key, ok := cleanRouteKey(in.Kind, in.Key)
	switch {
	case ok:
		in.Key = key
	case in.Kind == RouteSMS:
		faults.Add("path.key", "Must be a telephone number such as +15550100: 3 to 20 digits, with or without a plus.")
	default:
		faults.Add("path.key", "Must be a repository as owner/name: letters, digits, hyphens, underscores and dots.")
	}
}

// cleanRouteKey returns the stored form of a key, or false if it is not valid.
// Repositories are case-insensitive.
func cleanRouteKey(kind RouteKind, key string) (string, bool) {
	switch kind {
	case RouteSMS:
		digits := strings.TrimPrefix(key, "+")
		return key, len(digits) >= 3 && len(digits) <= 20 && strings.Trim(digits, "0123456789") == ""
	case RouteVCS:
		owner, name, _ := strings.Cut(key, "/")
		return strings.ToLower(key), isRepoPart(owner) && isRepoPart(name)
	}
	return "", false
}

func isRepoPart(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 100
}

// routeStep is the input of the directory's steps for a route.
type routeStep struct {
	Workspace WorkspaceID `json:"workspace"`
	Kind      RouteKind   `json:"kind"`
	Key       string      `json:"key"`
}

func (s *routeStep) about() storage.ID { return s.Workspace.raw() }

// route returns the active route of a key, or nil.
func (v *View) route(kind RouteKind, key string) (*storage.Row[InboundRoute], error) {
	row, err := inboundRoutes.Get(v, routeKey(nil, kind, key))
	if err != nil {
		return nil, fmt.Errorf("read a route: %w", err)
	}
	return row, nil
}

// pendingRoute returns a workspace's pending route of a key, or nil.
func (v *View) pendingRoute(kind RouteKind, key string, workspace WorkspaceID) (*storage.Row[InboundRoute], error) {
	row, err := inboundClaims.Get(v, claimKey(nil, kind, key, workspace))
	if err != nil {
		return nil, fmt.Errorf("read a pending route: %w", err)
	}
	return row, nil
}

// routesOf returns the routes of a workspace, at most limit of each kind. Active routes
// that older versions stored have no status.
func (v *View) routesOf(workspace WorkspaceID, limit int) (active, pending []*storage.Row[InboundRoute], err error) {
	for _, of := range []struct {
		table *storage.Table[InboundRoute]
		index storage.TableID
		rows  *[]*storage.Row[InboundRoute]
	}{{&inboundRoutes, inboundRouteByHolder, &active}, {&inboundClaims, inboundClaimByHolder, &pending}} {
		keys, err := v.rowKeys(of.index, workspaceKey(nil, workspace), limit)
		if err != nil {
			return nil, nil, err
		}
		for _, pk := range keys {
			row, err := of.table.Get(v, pk)
			if err != nil {
				return nil, nil, fmt.Errorf("read a route: %w", err)
			}
			if row == nil {
				return nil, nil, fmt.Errorf("%w: an index entry names a route that is not there", storage.ErrFormat)
			}
			*of.rows = append(*of.rows, row)
		}
	}
	return active, pending, nil
}

// activeRoute returns an active route in the form that clients see.
func activeRoute(row *storage.Row[InboundRoute]) InboundRoute {
	r := row.Value
	r.Status = RouteActive // older versions stored no status
	return r
}

// routeOp returns the active route of a key.
var routeOp = NewQuery[routeStep, InboundRoute]("RouteInbound", "Find the workspace of a number or repository", Needs{}, func(v *View, in *routeStep) (Reply, error) {
	row, err := v.route(in.Kind, in.Key)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, NotFound("inbound route")
	}
	r := activeRoute(row)
	return jsonReply(Done, &r)
}, InDirectory)

// receiveRouted runs a step in the workspace of a key's active route. Without such a
// route the call is accepted and dropped: the answer does not reveal which keys are in
// use. unfit, if not nil, is the error for a body that the step can't use.
func receiveRouted(f Flow, kind RouteKind, key string, step *Op, in any, unfit error) (Reply, error) {
	route, err := ask[InboundRoute](f, storage.DirectoryID, routeOp, &routeStep{Kind: kind, Key: key})
	if err == nil {
		if unfit != nil {
			return Reply{}, unfit
		}
		var reply Reply
		workspace := route.OrganizationID.raw()
		if reply, err = f.CommandAs(permitSigned(workspace), inboundCaller(string(kind)), workspace, step, in); err == nil {
			return reply, nil
		}
	}
	if isNotFound(err) { // also if the workspace is being deleted
		return accepted(InboundAnswer{})
	}
	return Reply{}, err
}

// dropRoutes removes the routes of a workspace that is being deleted.
func (tx *Tx) dropRoutes(workspace WorkspaceID) error {
	active, pending, err := tx.routesOf(workspace, MaxInboundRoutes+1)
	if err != nil {
		return err
	}
	for _, row := range active {
		if err := inboundRoutes.Delete(tx, row); err != nil {
			return fmt.Errorf("remove a route: %w", err)
		}
	}
	for _, row := range pending {
		if err := inboundClaims.Delete(tx, row); err != nil {
			return fmt.Errorf("remove a pending route: %w", err)
		}
	}
	return nil
}

// checkRoutes checks that the directory knows the workspace of every route, that its
// key is in the stored form, and that no workspace has a key both pending and active.
func checkRoutes(d *storage.View, report reporter) error {
	for _, table := range []*storage.Table[InboundRoute]{&inboundRoutes, &inboundClaims} {
		err := table.Scan(d, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
			row, err := table.Decode(rec)
			if err != nil {
				return true, nil // the table's own check reports it
			}
			r := &row.Value
			if key, ok := cleanRouteKey(r.Kind, r.Key); !ok || key != r.Key {
				report(table.Name, pk, "%s %q is not a key that is ever looked up", r.Kind, r.Key)
			}
			known, err := d.Has(directoryTable, workspaceKey(nil, r.OrganizationID))
			if err == nil && !known {
				report(table.Name, pk, "the directory knows no such workspace")
			}
			if err != nil || table.ID == inboundRouteTable {
				return true, err
			}
			active, err := inboundRoutes.Get(d, routeKey(nil, r.Kind, r.Key))
			if err == nil && active != nil && active.Value.OrganizationID == r.OrganizationID {
				report(table.Name, pk, "the workspace has an active route of this key")
			}
			return true, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
