package tracker

import (
	"fmt"
	"time"

	"switchyard/storage"
)

// SCIMConnection is a connection in the form that lists show.
type SCIMConnection struct {
	ConnectionID SCIMConnectionID `json:"connectionId"`
	Status       string           `json:"status" enum:"active,expired"`
	Scopes       []string         `json:"scopes"`
	CreatedAt    Timestamp        `json:"createdAt"`
	ExpiresAt    Timestamp        `json:"expiresAt"`
}

// SCIMConnectionList is the answer to ListSCIMConnections.
type SCIMConnectionList struct {
	Connections []SCIMConnection `json:"connections"`
}

// ListSCIMConnections lists the workspace's SCIM connections, newest first. There are
// few, so the list has no pages.
var ListSCIMConnections = NewQuery[None, SCIMConnectionList]("ListScimConnections", "List SCIM connections", Needs{Level: Admin}, listSCIMConnections, FromSnapshot)

func listSCIMConnections(v *View, _ *None) (Reply, error) {
	list := SCIMConnectionList{Connections: []SCIMConnection{}}
	err := scimConnections.Scan(v, nil, nil, func(_ []byte, rec storage.Record) (bool, error) {
		row, err := scimConnections.Decode(rec)
		if err != nil {
			return false, err
		}
		list.Connections = append(list.Connections, row.Value.shown(v.now))
		return true, nil
	})
	if err != nil {
		return Reply{}, fmt.Errorf("list SCIM connections: %w", err)
	}
	return jsonReply(Done, list)
}

// shown returns a connection in the form that clients see.
func (c *scimConnection) shown(now time.Time) SCIMConnection {
	shown := SCIMConnection{ConnectionID: c.ID, Status: "active", Scopes: c.Scopes, CreatedAt: c.CreatedAt, ExpiresAt: c.ExpiresAt}
	if !now.Before(c.ExpiresAt.Time()) {
		shown.Status = "expired"
	}
	return shown
}
