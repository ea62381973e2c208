package tracker

import (
	"fmt"

	json "github.com/goccy/go-json"

	"switchyard/storage"
)

// ReviewInboundRoutesIn asks for a page of the routes of all workspaces.
type ReviewInboundRoutesIn struct {
	Status RouteStatus `query:"status" default:"pending"`
	Limit  int         `query:"limit" default:"50" rules:"min=1,max=100"`
	Cursor string      `query:"cursor" rules:"max=1024"`
}

// InboundRoutePage is the answer to ReviewInboundRoutes.
type InboundRoutePage struct {
	Routes     []InboundRoute `json:"routes"`
	NextCursor string         `json:"nextCursor,omitempty"`
}

// ReviewInboundRoutes lists the pending or active routes of all workspaces for the
// operator, by kind and key.
var ReviewInboundRoutes = NewWorkflow[ReviewInboundRoutesIn, InboundRoutePage]("ReviewInboundRoutes", "List the numbers and repositories of all workspaces", Needs{Level: Operator}, func(f Flow, in *ReviewInboundRoutesIn) (Reply, error) {
	return f.Query(storage.DirectoryID, reviewRoutesOp, in)
})

var reviewRoutesOp = NewQuery[ReviewInboundRoutesIn, InboundRoutePage]("ReviewRoutes", "List the routes of all workspaces", Needs{}, func(v *View, in *ReviewInboundRoutesIn) (Reply, error) {
	table := &inboundClaims
	if in.Status == RouteActive {
		table = &inboundRoutes
	}
	p, err := newPage(v.Buf, pageSpec{name: "routes", limit: in.Limit, cursor: sent(in.Cursor), query: listQuery(storage.DirectoryID, "routes", Some(string(in.Status)))})
	if err != nil {
		return Reply{}, err
	}
	err = table.Scan(v, nil, p.after, func(pk []byte, rec storage.Record) (bool, error) {
		row, err := table.Decode(rec)
		if err != nil {
			return false, err
		}
		r := row.Value
		r.Status = in.Status // older versions stored no status
		shown, err := json.Marshal(&r)
		return err == nil && p.add(pk, shown), err
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list routes: %w", err)
	}
	return p.reply(), nil
}, InDirectory, FromSnapshot)
