package tracker

import "fmt"

// DeleteOAuthClient removes an OAuth client. Its access tokens are invalid once this is
// committed; their rows are removed when they expire.
var DeleteOAuthClient = NewCommand[RecordIn, None]("DeleteOAuthClient", "Delete an OAuth client", Needs{Level: Admin}, deleteOAuthClient, WithSpaceEffect(FreesSpace), Audits(auditOAuthClient))

func deleteOAuthClient(tx *Tx, in *RecordIn) (Reply, error) {
	secret, err := recordIn(&tx.View, &oauthSecrets, in.ID, "OAuth client")
	if err != nil {
		return Reply{}, err
	}
	if err := oauthSecrets.Delete(tx, secret); err != nil {
		return Reply{}, fmt.Errorf("delete an OAuth client's secret: %w", err)
	}
	return removeRecord(tx, &oauthClients, in, "OAuth client")
}
