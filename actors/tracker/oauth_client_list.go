package tracker

// OAuthClientList is the answer to ListOAuthClients.
type OAuthClientList struct {
	Clients    []OAuthClient `json:"clients"`
	NextCursor string        `json:"nextCursor,omitempty"`
}

// ListOAuthClients lists the workspace's OAuth clients, newest first.
var ListOAuthClients = NewQuery[PageIn, OAuthClientList]("ListOAuthClients", "List OAuth clients", Needs{Level: Admin}, listOAuthClients, FromSnapshot)

func listOAuthClients(v *View, in *PageIn) (Reply, error) {
	return listRecords(v, in, "clients", &oauthClients, nil)
}
