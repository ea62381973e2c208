package httpapi

import (
	"strconv"

	"switchyard/actors/tracker"
)

// BackupMedia is the content type of a shard's image: lines of JSON, of which the last is an
// ImageHead, and then the image's bytes.
const BackupMedia = "application/vnd.switchyard.image"

// BackupShardIn asks for the image of a shard.
type BackupShardIn struct {
	Shard string `path:"shard" rules:"min=1,max=255"`
	// Unless is an index. If the node has made an image there and the shard is still there, the answer has no
	// image.
	Unless tracker.Opt[int64] `query:"unless" rules:"min=1"`
}

// Number returns the number of the shard; false if the text is not a number in its shortest
// form.
func (in *BackupShardIn) Number() (int, bool) { return shardNumber(in.Shard) }

// ImageHead is a line of JSON in front of the image of a shard. While the image is being made,
// lines come that say Copying and nothing else.
type ImageHead struct {
	Copying bool `json:"copying,omitempty"`
	// Error says why there is no image.
	Error string `json:"error,omitempty"`

	Version   int    `json:"version,omitempty"`
	ClusterID string `json:"clusterId,omitempty"`
	Shard     int    `json:"shard"`
	Index     uint64 `json:"index,omitempty"` // of the last entry in the image
	Epoch     uint64 `json:"epoch,omitempty"` // of the owner that made it
	// Unchanged is set if the shard is at the index of the request, and no image follows: Index, Epoch, Rows and
	// Fingerprint are those of the image that the node has made there. Nodes of an older version send none of
	// these, and know no more than the index.
	Unchanged bool `json:"unchanged,omitempty"`
	// Rows and Fingerprint are those of the image, without the row that has the position.
	Rows        int64  `json:"rows,omitempty"`
	Fingerprint string `json:"fingerprint,omitempty"`
	Bytes       int64  `json:"bytes,omitempty"` // of the image, which follows this line
}

// ImageVersion is the version of the form of images.
const ImageVersion = 1

// opBackupShard sends the image of a shard. The node that owns the shard makes it.
var opBackupShard = tracker.NewQuery[BackupShardIn, tracker.None]("BackupShard", "Copy a shard for a backup", tracker.Needs{Level: tracker.Operator}, func(*tracker.View, *BackupShardIn) (tracker.Reply, error) {
	return tracker.Reply{}, nil
}, tracker.Audits("shard"), tracker.AnswersFile(BackupMedia), tracker.AnswersLines, tracker.Answers(tracker.Done))

func shardNumber(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err == nil && strconv.FormatUint(n, 10) == text
}

// shardPlace returns the id by which Placement finds the owner of the shard that a request
// names: that of the key range in which the service keeps its own rows in each shard. The zero
// id, for the directory, is as good for a shard that there is not.
func (x *exchange) shardPlace() (id [16]byte) {
	if n, ok := shardNumber(string(x.params[0])); ok {
		id[13], id[14], id[15] = 1, byte(n>>8), byte(n)
	}
	return id
}
