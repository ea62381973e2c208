package tracker

import (
	"fmt"

	"switchyard/storage"
)

// InboundRouteList is the answer to ListInboundRoutes.
type InboundRouteList struct {
	Routes []InboundRoute `json:"routes"`
}

// ListInboundRoutes lists what a workspace takes: there are few of them.
var ListInboundRoutes = NewWorkflow[None, InboundRouteList]("ListInboundRoutes", "List the numbers and repositories of a workspace", Needs{Level: Admin}, listInboundRoutes)

func listInboundRoutes(f Flow, _ *None) (Reply, error) {
	return f.Query(storage.DirectoryID, listRoutesOp, &directoryStep{WorkspaceID(f.Request().Workspace.String())})
}

var listRoutesOp = NewQuery[directoryStep, InboundRouteList]("ListRoutes", "List a workspace's routes", Needs{}, func(v *View, in *directoryStep) (Reply, error) {
	list := InboundRouteList{Routes: []InboundRoute{}}
	keys, err := v.rowKeys(inboundRouteByHolder, workspaceKey(nil, in.Workspace), maxRoutes)
	if err != nil {
		return Reply{}, err
	}
	for _, pk := range keys {
		row, err := inboundRoutes.Get(v, pk)
		if err != nil {
			return Reply{}, fmt.Errorf("read a route: %w", err)
		}
		if row != nil {
			list.Routes = append(list.Routes, row.Value)
		}
	}
	return jsonReply(Done, &list)
}, InDirectory, OneMoment)
