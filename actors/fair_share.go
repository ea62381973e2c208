package actors

// leastShare is how much of a common limit each workspace may hold as long as there is
// anything left.
const leastShare = 16

// fairShare returns how much of what all workspaces share one of them may hold: no more
// than is left free, so that its share shrinks while the common limit fills up. Some
// workspaces alone can never fill it, and one with few requests always gets in. own is
// the workspace's own limit, and free what is left of the common limit.
func fairShare(own int, free int64) int {
	return int(min(int64(own), max(leastShare, free)))
}
