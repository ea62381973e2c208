package tracker

// OAuthClientByID reads one OAuth client.
var OAuthClientByID = NewQuery[RecordIn, OAuthClient]("OAuthClientByID", "Get an OAuth client", Needs{Level: Admin}, oauthClientByID)

func oauthClientByID(v *View, in *RecordIn) (Reply, error) {
	return showRecord(v, &oauthClients, in, "OAuth client")
}
