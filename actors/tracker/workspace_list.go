package tracker

import (
	"fmt"

	"switchyard/storage"
)

// ListWorkspacesIn asks for a page of workspaces.
type ListWorkspacesIn struct {
	Limit  int    `query:"limit" default:"50" rules:"min=1,max=100"`
	Cursor string `query:"cursor" rules:"max=1024"`
}

// WorkspaceList is the answer to ListWorkspaces.
type WorkspaceList struct {
	Workspaces []Workspace `json:"workspaces"`
	NextCursor string      `json:"nextCursor,omitempty"`
}

// ListWorkspaces lists the workspaces that the caller is a member of, newest first; for
// the operator it lists all.
var ListWorkspaces = NewWorkflow[ListWorkspacesIn, WorkspaceList]("ListWorkspaces", "List workspaces", Needs{Level: Identified}, listWorkspaces, ForCallers("the permission read"))

func listWorkspaces(f Flow, in *ListWorkspacesIn) (Reply, error) {
	caller := &f.Request().Caller
	if !caller.Root && !caller.Permissions.Includes(PermRead) {
		return Reply{}, Forbidden("This token may not read workspaces.", "Use a token with the permission read.")
	}
	p, err := newPage(f.Request().Buf, pageSpec{name: "workspaces", limit: in.Limit, cursor: sent(in.Cursor), query: listQuery(cursorSubject(caller), "workspaces")})
	if err != nil {
		return Reply{}, err
	}
	after := p.after
	for {
		known, err := knownWorkspaces(f, after, in.Limit)
		if err != nil {
			return Reply{}, err
		}
		for _, id := range known.IDs {
			after = id.listKey()
			reply, err := f.Query(id.raw(), openWorkspaceOp, &openIn{caller.Principal})
			if isNotFound(err) {
				continue // being deleted, or the membership has ended and the directory doesn't know yet
			}
			if err != nil {
				return Reply{}, err
			}
			if !p.add(after, reply.Body) {
				return p.reply(), nil
			}
		}
		if !known.More {
			return p.reply(), nil
		}
	}
}

// cursorSubject returns an id that binds a cursor to the caller's list.
func cursorSubject(c *Caller) storage.ID {
	key := newAnswerKey(string(c.Type), c.ID)
	return storage.ID(key[:16])
}

func (id WorkspaceID) raw() storage.ID {
	raw, _ := storage.ParseID(id)
	return raw
}

// listKey returns a workspace's position in lists with the newest first.
func (id WorkspaceID) listKey() []byte { return workspaceKey(nil, id) }

// knownIn asks the directory for the workspaces of a user, or for all.
type knownIn struct {
	User  UserID `json:"user"`
	After []byte `json:"after"`
	Limit int    `json:"limit"`
}

type knownOut struct {
	IDs  []WorkspaceID `json:"ids"`
	More bool          `json:"more"`
}

// knownWorkspaces returns candidates for the page that begins after a position.
func knownWorkspaces(f Flow, after []byte, limit int) (knownOut, error) {
	caller := &f.Request().Caller
	if caller.Confined {
		if len(after) > 0 {
			return knownOut{}, nil
		}
		return knownOut{IDs: []WorkspaceID{WorkspaceID(caller.Home.String())}}, nil
	}
	in := knownIn{After: after, Limit: limit + 1}
	if !caller.Root {
		in.User = UserID(caller.ID)
	}
	return ask[knownOut](f, storage.DirectoryID, knownWorkspacesOp, &in)
}

var knownWorkspacesOp = NewQuery[knownIn, knownOut]("KnownWorkspaces", "List workspaces of the directory", Needs{}, func(v *View, in *knownIn) (Reply, error) {
	out := knownOut{IDs: []WorkspaceID{}}
	add := func(id WorkspaceID) bool {
		if out.More = len(out.IDs) == in.Limit; !out.More {
			out.IDs = append(out.IDs, id)
		}
		return !out.More
	}
	var err error
	if in.User == "" {
		err = directory.Scan(v, nil, in.After, func(_ []byte, rec storage.Record) (bool, error) {
			row, err := directory.Decode(rec)
			if err != nil {
				return false, err
			}
			return row.Value.State != slugActive || add(row.Value.Workspace), nil
		})
	} else {
		prefix := memberKey(nil, in.User)
		err = memberships.Scan(v, prefix, behind(prefix, in.After), func(_ []byte, rec storage.Record) (bool, error) {
			row, err := memberships.Decode(rec)
			if err != nil {
				return false, err
			}
			return row.Value.RemovedAt != nil || add(row.Value.Workspace), nil
		})
	}
	if err != nil {
		return Reply{}, fmt.Errorf("list workspaces: %w", err)
	}
	return jsonReply(Done, out)
}, InDirectory, FromSnapshot)
