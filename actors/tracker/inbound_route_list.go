package tracker

import (
	"cmp"
	"slices"

	"switchyard/storage"
)

// InboundRouteList is the answer to ListInboundRoutes.
type InboundRouteList struct {
	Routes []InboundRoute `json:"routes"`
}

// ListInboundRoutes lists a workspace's routes, pending and active, by kind and key.
// There are few, so the list has no pages.
var ListInboundRoutes = NewWorkflow[None, InboundRouteList]("ListInboundRoutes", "List the numbers and repositories of a workspace", Needs{Level: Admin}, listInboundRoutes)

func listInboundRoutes(f Flow, _ *None) (Reply, error) {
	return f.Query(storage.DirectoryID, listRoutesOp, &directoryStep{WorkspaceID(f.Request().Workspace.String())})
}

var listRoutesOp = NewQuery[directoryStep, InboundRouteList]("ListRoutes", "List a workspace's routes", Needs{}, func(v *View, in *directoryStep) (Reply, error) {
	active, pending, err := v.routesOf(in.Workspace, MaxInboundRoutes)
	if err != nil {
		return Reply{}, err
	}
	list := InboundRouteList{Routes: make([]InboundRoute, 0, len(active)+len(pending))}
	for _, row := range active {
		list.Routes = append(list.Routes, activeRoute(row))
	}
	for _, row := range pending {
		list.Routes = append(list.Routes, row.Value)
	}
	slices.SortFunc(list.Routes, func(a, b InboundRoute) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
	})
	return jsonReply(Done, &list)
}, InDirectory, FromSnapshot)
