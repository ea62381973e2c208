package tracker

// ChannelByID reads one support channel, with the secrets of its config masked.
var ChannelByID = NewQuery[RecordIn, SupportChannel]("SupportChannelByID", "Get a support channel", Needs{Level: Admin}, channelByID)

func channelByID(v *View, in *RecordIn) (Reply, error) {
	return showRecord(v, &channels, in, "support channel")
}
