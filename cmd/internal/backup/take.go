package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"switchyard/httpapi"
	"switchyard/storage"
)

// Taking says how to take a backup.
type Taking struct {
	Client *Client
	Dir    string
	Keep   int // number of backups that are kept in Dir; 0: all
	Now    func() time.Time
	// Progress is told of each step; it may be nil.
	Progress func(Progress)
}

// Progress is how far a backup is.
type Progress struct {
	Shard, Done, Shards int    // shards include the directory
	Bytes               int64  // of the images that came so far
	What                string // "copying", "unchanged", "verifying"; otherwise a failure that is tried again
}

// taken is what a backup is made of.
type taken struct {
	Taking
	cluster  string
	shards   int
	last     *Manifest // the newest backup of the same cluster in Dir; nil: none
	bytes    int64
	files    []File
	progress Progress
}

// Take copies a cluster into a directory. Nothing that it leaves after an error looks like a
// backup.
func Take(ctx context.Context, by Taking) (name string, m *Manifest, err error) {
	t := &taken{Taking: by}
	if err := os.MkdirAll(filepath.Join(t.Dir, "shards"), 0o700); err != nil {
		return "", nil, fmt.Errorf("make the directory of backups: %w", err)
	}
	lock, err := vfs.Default.Lock(filepath.Join(t.Dir, "lock"))
	if err != nil {
		return "", nil, fmt.Errorf("another backup writes to %s: %w", t.Dir, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := t.tidy(); err != nil {
		return "", nil, err
	}
	if t.cluster, t.shards, err = t.Client.topology(ctx); err != nil {
		return "", nil, err
	}
	t.findLast()
	m = &Manifest{Version: Version, ClusterID: t.cluster, Shards: t.shards, Moment: t.Now().UTC().Truncate(time.Millisecond), Complete: true}
	t.files = make([]File, t.shards+1)
	// The directory comes last: what it knows of a workspace is never older than the workspace.
	for n := range t.files {
		shard := (n + 1) % len(t.files)
		t.progress = Progress{Shard: shard, Done: n, Shards: len(t.files), Bytes: t.bytes, What: "copying"}
		t.tell()
		if t.files[shard], err = t.shard(ctx, shard); err != nil {
			return "", nil, fmt.Errorf("copy shard %d: %w", shard, err)
		}
	}
	t.progress = Progress{Done: len(t.files), Shards: len(t.files), Bytes: t.bytes, What: "verifying"}
	t.tell()
	for i := range t.files {
		if old := t.last.file(i); old != nil && *old == t.files[i] {
			continue // it was checked before it was used again
		}
		if err := checkFile(ctx, t.Dir, &t.files[i]); err != nil {
			return "", nil, err
		}
	}
	m.Files, m.Ended = t.files, t.Now().UTC().Truncate(time.Millisecond)
	name = manifestName(m.Moment)
	if err := t.finish(name, m); err != nil {
		return "", nil, err
	}
	if err := t.prune(name); err != nil {
		return name, m, fmt.Errorf("the backup is complete, but not everything old was removed: %w", err)
	}
	return name, m, nil
}

func (t *taken) tell() {
	if t.Progress != nil {
		t.Progress(t.progress)
	}
}

// findLast looks for the newest backup whose files can be used again. An unreadable one
// is passed over.
func (t *taken) findLast() {
	names, err := List(t.Dir)
	if err != nil || len(names) == 0 {
		return
	}
	m, err := readManifest(filepath.Join(t.Dir, names[len(names)-1]))
	if err == nil && m.ClusterID == t.cluster && m.Shards == t.shards {
		t.last = m
	}
}

// shard copies one shard, from the start again if the copy breaks off.
func (t *taken) shard(ctx context.Context, shard int) (File, error) {
	for try := 0; ; try++ {
		f, err := t.try(ctx, shard)
		if err == nil || ctx.Err() != nil || !again(err) || try+1 == tries {
			return f, err
		}
		t.progress.What = err.Error()
		t.tell()
		if waited := pause(ctx, try); waited != nil {
			return f, errors.Join(waited, err)
		}
		t.progress.What = "copying"
	}
}

func (t *taken) try(ctx context.Context, shard int) (f File, err error) {
	part, err := os.CreateTemp(filepath.Join(t.Dir, "shards"), partPrefix+"*")
	if err != nil {
		return f, fmt.Errorf("make a file: %w", err)
	}
	defer func() {
		if part != nil {
			err = errors.Join(err, part.Close(), os.Remove(part.Name()))
		}
	}()
	var unless uint64
	old := t.last.file(shard)
	if old != nil {
		// A file that is gone or damaged is fetched again.
		if checkFile(ctx, t.Dir, old) == nil {
			unless = old.Index
		}
	}
	sum := sha256.New()
	head, err := t.Client.fetch(ctx, t.cluster, shard, unless, &counted{io.MultiWriter(part, sum), t})
	if err != nil {
		return f, err
	}
	if head.Unchanged {
		if unless == 0 {
			return f, errors.New("the service sent no image")
		}
		t.progress.What = "unchanged"
		t.tell()
		return *old, nil
	}
	f = fileOf(head, hex.EncodeToString(sum.Sum(nil)))
	err = errors.Join(part.Sync(), part.Close())
	if err == nil {
		err = os.Rename(part.Name(), shardPath(t.Dir, f.SHA256))
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("write a file: %w", err), os.Remove(part.Name()))
	}
	part = nil
	t.bytes += f.Bytes
	return f, err
}

func fileOf(h *httpapi.ImageHead, sum string) File {
	return File{Shard: h.Shard, Index: h.Index, Epoch: h.Epoch, Rows: h.Rows, Fingerprint: h.Fingerprint, Bytes: h.Bytes, SHA256: sum}
}

// counted tells of the bytes that are written.
type counted struct {
	io.Writer
	t *taken
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.t.progress.Bytes += int64(n)
	c.t.tell()
	return n, err
}

// checkFile reads a file and compares its sums with the manifest's, and with its own.
func checkFile(ctx context.Context, dir string, f *File) error {
	in, err := os.Open(shardPath(dir, f.SHA256))
	if err != nil {
		return fmt.Errorf("read the file of shard %d: %w", f.Shard, err)
	}
	defer func() { _ = in.Close() }()
	sum := sha256.New()
	if err := storage.CheckStream(io.TeeReader(&interrupted{in, ctx}, sum), storage.Shard(f.Shard)); err != nil {
		return fmt.Errorf("the file of shard %d is damaged: %w", f.Shard, err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("the file of shard %d is damaged: its SHA-256 is %x", f.Shard, sum.Sum(nil))
	}
	return nil
}

// interrupted ends reading when ctx ends.
type interrupted struct {
	r   io.Reader
	ctx context.Context
}

func (i *interrupted) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, context.Cause(i.ctx)
	}
	return i.r.Read(p)
}

const partPrefix = ".part-"

// finish gives the backup its name: from here on it exists.
func (t *taken) finish(name string, m *Manifest) error {
	text, err := m.encode()
	if err != nil {
		return err
	}
	if err := syncDir(filepath.Join(t.Dir, "shards")); err != nil {
		return err
	}
	part := filepath.Join(t.Dir, partPrefix+"manifest")
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	_, err = out.Write(text)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return fmt.Errorf("write the manifest: %w", errors.Join(err, os.Remove(part)))
	}
	if _, err := readManifest(part); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, filepath.Join(t.Dir, name)); err != nil {
		return fmt.Errorf("name the manifest: %w", err)
	}
	return syncDir(t.Dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err == nil {
		err = errors.Join(d.Sync(), d.Close())
	}
	if err != nil {
		return fmt.Errorf("make %s durable: %w", dir, err)
	}
	return nil
}

// prune removes backups beyond those that are kept, the oldest first, and then the files that
// no backup has.
func (t *taken) prune(newest string) error {
	names, err := List(t.Dir)
	if err != nil {
		return err
	}
	for t.Keep > 0 && len(names) > t.Keep && names[0] != newest {
		if err := os.Remove(filepath.Join(t.Dir, names[0])); err != nil {
			return fmt.Errorf("remove an old backup: %w", err)
		}
		names = names[1:]
	}
	used := map[string]bool{}
	for _, name := range names {
		m, err := readManifest(filepath.Join(t.Dir, name))
		if err != nil {
			return nil // nobody knows which files it has
		}
		for _, f := range m.Files {
			used[f.SHA256+".shard"] = true
		}
	}
	return t.remove(func(name string) bool { return strings.HasSuffix(name, ".shard") && !used[name] })
}

// tidy removes parts of files that an interrupted backup has left.
func (t *taken) tidy() error {
	return t.remove(func(name string) bool { return strings.HasPrefix(name, partPrefix) })
}

func (t *taken) remove(which func(name string) bool) error {
	entries, err := os.ReadDir(filepath.Join(t.Dir, "shards"))
	if err != nil {
		return fmt.Errorf("list the files: %w", err)
	}
	for _, e := range entries {
		if which(e.Name()) {
			if err := os.Remove(filepath.Join(t.Dir, "shards", e.Name())); err != nil {
				return fmt.Errorf("remove a file: %w", err)
			}
		}
	}
	return nil
}
