package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Version is the version of backups that this program writes, and the newest that it reads.
const Version = 1

// Manifest lists what belongs to a backup.
type Manifest struct {
	Version   int    `json:"version"`
	ClusterID string `json:"clusterId"`
	Shards    int    `json:"shards"` // of workspaces: the directory is not counted
	// Moment is when the backup began: writes acknowledged before are in it.
	Moment time.Time `json:"moment"`
	Ended  time.Time `json:"ended"`
	Files  []File    `json:"files"` // by shard
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
	Bytes       int64  `json:"bytes"`
	SHA256      string `json:"sha256"`
}

// Bytes is the size of all files.
func (m *Manifest) Bytes() (sum int64) {
	for _, f := range m.Files {
		sum += f.Bytes
	}
	return sum
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

const (
	manifestPrefix = "backup-"
	manifestSuffix = ".json"
	// momentLayout sorts by time.
	momentLayout = "20060102T150405.000Z"
	maxManifest  = 64 << 20
)

func manifestName(moment time.Time) string {
	return manifestPrefix + moment.UTC().Format(momentLayout) + manifestSuffix
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

// readManifest reads a manifest. It refuses one of a newer version, and one that is not byte
// for byte as it was written.
func readManifest(path string) (*Manifest, error) {
	at, err := os.Stat(path)
	if err == nil && at.Size() > maxManifest {
		err = errors.New("it is too large")
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	m := &Manifest{}
	err = json.Unmarshal(text, m)
	switch {
	case err == nil && m.Version > Version:
		return nil, fmt.Errorf("%s is a backup of version %d, and this program reads version %d: use the program that made it, or a newer one", path, m.Version, Version)
	case err == nil:
		var again []byte
		if again, err = m.encode(); err == nil && (!bytes.Equal(again, text) || !m.Complete || m.Version < 1) {
			err = errors.New("its sum is wrong")
		}
	}
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return nil, fmt.Errorf("the manifest %s is cut off or damaged: %w", path, err)
	}
	return m, nil
}

// check returns an error unless there is one file for every shard.
func (m *Manifest) check() error {
	if m.Shards < 1 || len(m.Files) != m.Shards+1 {
		return fmt.Errorf("%d files of %d shards", len(m.Files), m.Shards)
	}
	if m.ClusterID == "" {
		return errors.New("it has no cluster")
	}
	for n, f := range m.Files {
		raw, err := hex.DecodeString(f.SHA256)
		if f.Shard != n || err != nil || len(raw) != sha256.Size || f.SHA256 != hex.EncodeToString(raw) || f.Bytes < 1 || f.Index == 0 || f.Epoch == 0 {
			return fmt.Errorf("the file of shard %d can't be", n)
		}
	}
	return nil
}

// List returns the names of the backups in a directory, the oldest first.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list the backups: %w", err)
	}
	var names []string
	for _, e := range entries {
		moment, ok := strings.CutPrefix(e.Name(), manifestPrefix)
		if moment, ok2 := strings.CutSuffix(moment, manifestSuffix); ok && ok2 {
			if _, err := time.Parse(momentLayout, moment); err == nil {
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// Open reads the manifest of a backup; without a name that of the newest.
func Open(dir, name string) (*Manifest, error) {
	if name == "" {
		names, err := List(dir)
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("there is no complete backup in %s", dir)
		}
		name = names[len(names)-1]
	}
	if name != filepath.Base(name) {
		return nil, fmt.Errorf("%q is not the name of a backup in %s", name, dir)
	}
	m, err := readManifest(filepath.Join(dir, name))
	if err == nil && name != manifestName(m.Moment) {
		return nil, fmt.Errorf("the manifest %s is not of the moment in its name, but of %s", name, m.Moment.Format(time.RFC3339Nano))
	}
	return m, err
}

func shardPath(dir, sum string) string { return filepath.Join(dir, "shards", sum+".shard") }
