package backup

import (
	"context"
	"errors"
	"fmt"
	"time"

	"switchyard/httpapi"
	"switchyard/storage"
)

// Taking says how to take a backup.
type Taking struct {
	Client *Client
	To     *Archive
	Keep   int // number of backups that are kept; 0: all
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
	last     *Manifest // the newest backup of the same cluster in the archive; nil: none
	bytes    int64
	files    []File
	progress Progress
}

// Take copies a cluster into an archive. Nothing that it leaves after an error looks like a
// backup.
func Take(ctx context.Context, by Taking) (name string, m *Manifest, err error) {
	t := &taken{Taking: by}
	unlock, err := t.To.place.Lock(ctx)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	topology, err := t.Client.topology(ctx)
	if err != nil {
		return "", nil, err
	}
	t.cluster, t.shards = topology.ClusterID, len(topology.Shards)-1
	t.findLast(ctx)
	m = &Manifest{ClusterID: t.cluster, Shards: t.shards, Moment: t.Now().UTC().Truncate(time.Millisecond), Complete: true}
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
	// The cluster may have raised its format since the backup began.
	if topology, err = t.Client.topology(ctx); err != nil {
		return "", nil, err
	}
	m.setFormat(storage.Format(topology.Format))
	t.progress = Progress{Done: len(t.files), Shards: len(t.files), Bytes: t.bytes, What: "verifying"}
	t.tell()
	for i := range t.files {
		if old := t.last.file(i); old != nil && *old == t.files[i] {
			// It was checked before it was used again.
			err = t.To.present(ctx, old)
		} else {
			err = t.To.check(ctx, &t.files[i])
		}
		if err != nil {
			return "", nil, err
		}
	}
	m.Files, m.Ended = t.files, t.Now().UTC().Truncate(time.Millisecond)
	if name, err = t.finish(ctx, m); err != nil {
		return "", nil, err
	}
	if err := t.allPresent(ctx, name, m); err != nil {
		return "", nil, err
	}
	if err := t.prune(ctx, name); err != nil {
		return name, m, &PruneError{err}
	}
	return name, m, nil
}

// PruneError is the error of a backup that is complete, after which not everything old was removed.
type PruneError struct{ err error }

func (e *PruneError) Error() string {
	return "the backup is complete, but not everything old was removed: " + e.err.Error()
}

func (e *PruneError) Unwrap() error { return e.err }

func (t *taken) tell() {
	if t.Progress != nil {
		t.Progress(t.progress)
	}
}

// findLast looks for the newest backup whose files can be used again. Those that can't be read are
// passed over, and those of the future: they would stay the newest for long.
func (t *taken) findLast(ctx context.Context) {
	names, err := t.To.List(ctx)
	if err != nil {
		return
	}
	names = untilNow(names, t.Now())
	for n := len(names) - 1; n >= max(0, len(names)-lookBack) && t.last == nil; n-- {
		m, err := t.To.Open(ctx, names[n])
		if err == nil && m.ClusterID == t.cluster && m.Shards == t.shards {
			t.last = m
		}
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
	out, err := t.To.create(shardDir)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, out.draft.Discard()) }()
	var unless uint64
	old := t.last.file(shard)
	if old != nil && t.usable(ctx, old) {
		unless = old.Index
	}
	head, err := t.Client.fetch(ctx, t.cluster, shard, unless, &counted{out, t})
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
	f = fileOf(head, out.hex())
	if f.Encrypted, err = out.finish(); err != nil {
		return f, err
	}
	t.bytes += f.Bytes
	err = out.draft.Keep(ctx, t.To.shardName(&f))
	return f, err
}

// usable reports whether a file can be used again: one that is gone or damaged is fetched again.
// Services keep their files from damage by themselves.
func (t *taken) usable(ctx context.Context, f *File) bool {
	if t.To.place.Dir() == "" {
		return t.To.present(ctx, f) == nil
	}
	return t.To.check(ctx, f) == nil
}

func fileOf(h *httpapi.ImageHead, sum string) File {
	return File{Shard: h.Shard, Index: h.Index, Epoch: h.Epoch, Rows: h.Rows, Fingerprint: h.Fingerprint, Bytes: h.Bytes, SHA256: sum}
}

// counted tells of the bytes that are written.
type counted struct {
	*output
	t *taken
}

func (c *counted) room(bytes int64) error { return c.draft.Room(bytes) }

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.output.Write(p)
	c.t.progress.Bytes += int64(n)
	c.t.tell()
	return n, err
}

// finish gives the backup its name: from here on it exists. It is read back once more.
func (t *taken) finish(ctx context.Context, m *Manifest) (name string, err error) {
	text, err := m.encode()
	if err != nil {
		return "", err
	}
	out, err := t.To.create(shardDir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.draft.Discard()) }()
	_, err = out.Write(text)
	if err == nil {
		_, err = out.finish()
	}
	name = t.To.manifestName(m.Moment)
	if err == nil {
		err = out.draft.Keep(ctx, name)
	}
	if err != nil {
		return "", fmt.Errorf("write the manifest: %w", err)
	}
	if _, err := t.To.Open(ctx, name); err != nil {
		return "", errors.Join(err, t.To.place.Remove(context.WithoutCancel(ctx), name))
	}
	return name, nil
}

// allPresent looks once more whether all files of a backup are there, if no lock has kept other backups
// from removing them. Without one of them there is no backup.
func (t *taken) allPresent(ctx context.Context, name string, m *Manifest) error {
	if t.To.place.Dir() != "" {
		return nil
	}
	for i := range m.Files {
		if err := t.To.present(ctx, &m.Files[i]); err != nil {
			return errors.Join(err, t.To.place.Remove(context.WithoutCancel(ctx), name))
		}
	}
	return nil
}
