package tracker

// DeleteChannel removes a support channel with its secrets. Its tickets stay and keep
// its id.
var DeleteChannel = NewCommand[RecordIn, None]("DeleteSupportChannel", "Delete a support channel", Needs{Level: Admin}, deleteChannel, WithSpaceEffect(FreesSpace), Audits(auditChannel))

func deleteChannel(tx *Tx, in *RecordIn) (Reply, error) {
	reply, err := removeRecord(tx, &channels, in, "support channel")
	if err != nil {
		return Reply{}, err
	}
	kept, err := tx.channelSecretOf(ChannelID(in.ID))
	if err != nil {
		return Reply{}, err
	}
	return reply, tx.setChannelSecrets(ChannelID(in.ID), kept, nil)
}
