package tracker

import (
	"fmt"

	"switchyard/storage"
)

// SharedIssueIn identifies a share by its token.
type SharedIssueIn struct {
	Token string `path:"token"`
}

// SharedIssueView is the answer to SharedIssue.
type SharedIssueView struct {
	Issue SharedIssueFields `json:"issue"`
}

// SharedIssueFields are the fields of an issue that a share shows.
type SharedIssueFields struct {
	Title       string        `json:"title"`
	Identifier  *string       `json:"identifier"`
	Status      IssueStatus   `json:"status"`
	Priority    IssuePriority `json:"priority"`
	Description *string       `json:"description"`
	CreatedAt   Timestamp     `json:"createdAt"`
}

// SharedIssue returns the issue of a share. The token alone gives access, also to
// restricted issues. The answer is the same for anything that is wrong with the
// token or its workspace (Decision 27).
var SharedIssue = NewQuery[SharedIssueIn, SharedIssueView]("SharedIssue", "Read a shared issue", Needs{Level: Public}, sharedIssue, FromSnapshot, WithSecret, Missing("share"))

func sharedIssue(v *View, in *SharedIssueIn) (Reply, error) {
	t, err := v.issueOfShare(in.Token)
	if err != nil {
		return Reply{}, err
	}
	if t == nil {
		return Reply{}, NotFound("share")
	}
	return jsonReply(Done, SharedIssueView{SharedIssueFields{
		Title: t.Title, Identifier: t.Identifier, Status: t.Status, Priority: t.Priority, Description: t.Description, CreatedAt: t.CreatedAt,
	}})
}

// issueOfShare returns the issue that a token shares, or nil.
func (v *View) issueOfShare(token string) (*Issue, error) {
	if len(token) != shareTokenLen {
		return nil, nil
	}
	pk, err := shares.Lookup(v, shareByToken, shareHash(token))
	if err != nil || pk == nil {
		return nil, err
	}
	share, err := shares.Get(v, pk)
	if err != nil {
		return nil, fmt.Errorf("read a share: %w", err)
	}
	if share == nil || !share.Value.is(token) || share.Value.expired(At(v.now)) {
		return nil, nil
	}
	// A workspace whose deletion has begun must not be read, even if its rows still
	// exist.
	if there, err := workspaces.Record(v, nil, func(storage.Record) error { return nil }); err != nil || !there {
		return nil, err
	}
	row, err := issues.Get(v, pk)
	if err != nil || row == nil {
		return nil, err
	}
	return &row.Value, nil
}
