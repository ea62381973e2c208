package tracker

// DeleteSCIMConnection ends a connection: its token is invalid once this is committed.
// The provisioned users and groups stay, for the next connection.
var DeleteSCIMConnection = NewCommand[RecordIn, None]("DeleteScimConnection", "Delete a SCIM connection", Needs{Level: Admin}, deleteSCIMConnection, WithSpaceEffect(FreesSpace), Audits(auditSCIMConnection))

func deleteSCIMConnection(tx *Tx, in *RecordIn) (Reply, error) {
	return removeRecord(tx, &scimConnections, in, "SCIM connection")
}
