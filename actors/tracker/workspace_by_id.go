package tracker

import "switchyard/storage"

// WorkspaceByID reads the workspace of the path.
var WorkspaceByID = NewQuery[None, Workspace]("WorkspaceByID", "Get a workspace", Needs{Level: Read}, workspaceByID)

func workspaceByID(v *View, _ *None) (reply Reply, err error) {
	there, err := workspaces.Record(v, nil, func(rec storage.Record) error {
		reply.Body = v.Buf[:0]
		reply.Body = append(reply.Body, rec.JSON()...)
		return nil
	})
	if err == nil && !there {
		err = NotFound("workspace")
	}
	return reply, err
}
