package tracker

// ChannelList is the answer to ListChannels.
type ChannelList struct {
	Channels   []SupportChannel `json:"channels"`
	NextCursor string           `json:"nextCursor,omitempty"`
}

// ListChannels lists the workspace's support channels, newest first, with the secrets
// of their configs masked.
var ListChannels = NewQuery[PageIn, ChannelList]("ListSupportChannels", "List support channels", Needs{Level: Admin}, listChannels, FromSnapshot)

func listChannels(v *View, in *PageIn) (Reply, error) {
	return listRecords(v, in, "channels", &channels, nil)
}
