package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"switchyard/storage"
)

// Versions of backups. Those of the first one have no Format.
const (
	versionFirst = 1
	// Version is the newest version that this program reads.
	Version = 2
)

// maxManifest bounds a manifest in bytes.
const maxManifest = 64 << 20

// Manifest lists what belongs to a backup.
type Manifest struct {
	Version   int    `json:"version"`
	ClusterID string `json:"clusterId"`
	Shards    int    `json:"shards"` // of workspaces: the directory is not counted
	// Moment is when the backup began: writes acknowledged before are in it.
	Moment time.Time `json:"moment"`
	Ended  time.Time `json:"ended"`
	// Format is the one that the cluster wrote when the backup ended. Absent: the first one.
	Format storage.Format `json:"format,omitempty"`
	Files  []File         `json:"files"` // by shard
	// Sum is the SHA-256 of the manifest with an empty Sum.
	Sum      string `json:"sum"`
	Complete bool   `json:"complete"`
}

// File is the image of a shard.
type File struct {
	Shard       int    `json:"shard"`
	Index       uint64 `json:"index"`
	Epoch       uint64 `json:"epoch"`
	Rows        int64  `json:"rows"`
	Fingerprint string `json:"fingerprint"`
	Bytes       int64  `json:"bytes"` // of the image
	// Encrypted is the size of the encrypted file in bytes; 0: it is not encrypted.
	Encrypted int64  `json:"encrypted,omitempty"`
	SHA256    string `json:"sha256"` // of the image
}

// stored is the size of the file in bytes.
func (f *File) stored() int64 {
	if f.Encrypted > 0 {
		return f.Encrypted
	}
	return f.Bytes
}

// Bytes is the size of all files.
func (m *Manifest) Bytes() (sum int64) {
	for i := range m.Files {
		sum += m.Files[i].stored()
	}
	return sum
}

// entries is the sum of the images' indexes. Of two backups of a cluster the one with more entries is of
// the later state, whatever the clocks said.
func (m *Manifest) entries() (sum uint64) {
	for i := range m.Files {
		sum += m.Files[i].Index
	}
	return sum
}

// format returns the format of the rows.
func (m *Manifest) format() storage.Format { return max(m.Format, storage.FormatFirst) }

// setFormat sets the format of the rows, and the version of the manifest. Programs that know no
// formats read those of the first one.
func (m *Manifest) setFormat(f storage.Format) {
	if m.Version = versionFirst; f > storage.FormatFirst {
		m.Version, m.Format = Version, f
	}
}

// file returns the entry of a shard, or nil.
func (m *Manifest) file(shard int) *File {
	if m != nil {
		for i := range m.Files {
			if m.Files[i].Shard == shard {
				return &m.Files[i]
			}
		}
	}
	return nil
}

// encode returns the text of a manifest, with its sum.
func (m Manifest) encode() ([]byte, error) {
	m.Sum = ""
	text, err := m.text()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	m.Sum = hex.EncodeToString(sum[:])
	return m.text()
}

func (m *Manifest) text() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode a manifest: %w", err)
	}
	return append(text, '\n'), nil
}

// errNewer refuses a manifest of a newer version.
var errNewer = errors.New("is a backup")

// parseManifest returns the manifest of a text that encode has written.
func parseManifest(text []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	if m.Version > Version {
		return nil, fmt.Errorf("%w of version %d, and this program reads version %d", errNewer, m.Version, Version)
	}
	again, err := m.encode()
	if err != nil {
		return nil, err
	}
	if f := m.format(); f > storage.FormatNewest || f < storage.FormatOldest {
		return nil, fmt.Errorf("%w of data in format %d, and this program reads formats %d to %d", errNewer, f, storage.FormatOldest, storage.FormatNewest)
	}
	if !bytes.Equal(again, text) || !m.Complete || m.Version < 1 {
		return nil, errors.New("its sum is wrong")
	}
	return m, nil
}

// check returns an error unless there is one file for every shard.
func (m *Manifest) check(encrypted bool) error {
	if m.Shards < 1 || len(m.Files) != m.Shards+1 {
		return fmt.Errorf("%d files of %d shards", len(m.Files), m.Shards)
	}
	if m.ClusterID == "" {
		return errors.New("it has no cluster")
	}
	for n, f := range m.Files {
		raw, err := hex.DecodeString(f.SHA256)
		if f.Shard != n || err != nil || len(raw) != sha256.Size || f.SHA256 != hex.EncodeToString(raw) || f.Bytes < 1 || f.Index == 0 || f.Epoch == 0 ||
			encrypted && f.Encrypted <= f.Bytes || !encrypted && f.Encrypted != 0 {
			return fmt.Errorf("the file of shard %d can't be", n)
		}
	}
	return nil
}
