package tracker

// DeleteSCIMConnection ends a connection: its token is good for nothing once this is
// committed. What it provisioned stays, for the next one.
var DeleteSCIMConnection = NewCommand[RecordIn, None]("DeleteScimConnection", "Delete a SCIM connection", Needs{Level: Admin}, deleteSCIMConnection, WithRoom(Frees))

func deleteSCIMConnection(tx *Tx, in *RecordIn) (Reply, error) {
	return removeRecord(tx, &scimConnections, in, "SCIM connection")
}
