package tracker

import (
	"fmt"
	"strings"

	"switchyard/storage"
)

// RouteKind says by what a route finds its workspace.
type RouteKind string

// The kinds of routes.
const (
	// RouteSMS routes are told apart by the number that was written to.
	RouteSMS RouteKind = "sms"
	// RouteVCS routes are told apart by the repository.
	RouteVCS RouteKind = "vcs1"
)

// InboundRoute says which workspace takes what a provider sends about a number or a
// repository. It is kept in the directory, where each key has one workspace.
type InboundRoute struct {
	Kind           RouteKind   `json:"kind" enum:"sms,vcs1"`
	Key            string      `json:"key"`
	OrganizationID WorkspaceID `json:"organizationId"`
	CreatedAt      Timestamp   `json:"createdAt"`
}

// maxRoutes bounds the routes of one workspace.
const maxRoutes = 500

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

func routeKey(k storage.Key, kind RouteKind, key string) storage.Key {
	return k.Str(string(kind)).Str(key)
}

// InboundRouteIn names a route.
type InboundRouteIn struct {
	Kind RouteKind `path:"kind" enum:"sms,vcs1"`
	// Key is a telephone number, or a repository as owner/name.
	Key string `path:"key" rules:"max=255"`
}

// Validate looks at what the tags can't say, and brings the key into its one form.
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

// cleanRouteKey brings a key into the form that it is kept in; false when it is none.
// Repositories are the same in any case of letters.
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

// routeStep is the input of the directory's steps about a route.
type routeStep struct {
	Workspace WorkspaceID `json:"workspace"`
	Kind      RouteKind   `json:"kind"`
	Key       string      `json:"key"`
}

func (s *routeStep) about() storage.ID { return s.Workspace.raw() }

func (v *View) route(kind RouteKind, key string) (*storage.Row[InboundRoute], error) {
	row, err := inboundRoutes.Get(v, routeKey(nil, kind, key))
	if err != nil {
		return nil, fmt.Errorf("read a route: %w", err)
	}
	return row, nil
}

// routeOp finds the workspace that a route leads to.
var routeOp = NewQuery[routeStep, InboundRoute]("RouteInbound", "Find the workspace of a number or repository", Needs{}, func(v *View, in *routeStep) (Reply, error) {
	row, err := v.route(in.Kind, in.Key)
	if err != nil {
		return Reply{}, err
	}
	if row == nil {
		return Reply{}, noRoute(in.Kind)
	}
	return jsonReply(Done, &row.Value)
}, InDirectory)

func noRoute(kind RouteKind) *Error {
	what := "number"
	if kind == RouteVCS {
		what = "repository"
	}
	return &Error{
		Code: CodeNotFound, Message: "No workspace takes what is sent about this " + what + ".",
		Hint: "An admin of the workspace sets it with PUT /workspaces/{organizationId}/inbound-routes/" + string(kind) + "/{" + what + "}.",
	}
}

// dropRoutes removes the routes of a workspace that is on its way out.
func (tx *Tx) dropRoutes(workspace WorkspaceID) error {
	keys, err := tx.rowKeys(inboundRouteByHolder, workspaceKey(nil, workspace), maxRoutes+1)
	if err != nil {
		return fmt.Errorf("list routes: %w", err)
	}
	for _, pk := range keys {
		row, err := inboundRoutes.Get(tx, pk)
		if err != nil {
			return fmt.Errorf("read a route: %w", err)
		}
		if row == nil {
			return fmt.Errorf("%w: an index entry names a route that is not there", storage.ErrFormat)
		}
		if err := inboundRoutes.Delete(tx, row); err != nil {
			return fmt.Errorf("remove a route: %w", err)
		}
	}
	return nil
}

// checkRoutes proves that the directory knows the workspace of every route, and that
// its key is in the form by which it is looked up.
func checkRoutes(d *storage.View, say sayer) error {
	return inboundRoutes.Scan(d, nil, nil, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := inboundRoutes.Decode(rec)
		if err != nil {
			return true, nil // the table's own check reports it
		}
		r := &row.Value
		if key, ok := cleanRouteKey(r.Kind, r.Key); !ok || key != r.Key {
			say(inboundRoutes.Name, pk, "%s %q is no key that is ever looked up", r.Kind, r.Key)
		}
		known, err := d.Has(directoryTable, workspaceKey(nil, r.OrganizationID))
		if err == nil && !known {
			say(inboundRoutes.Name, pk, "the directory knows no such workspace")
		}
		return true, err
	})
}
