package backup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"switchyard/httpapi"
	"switchyard/storage"
)

// Taking says how to take a backup.
type Taking struct {
	Client *Client
	To     *Archive
	Keep   int // number of backups that are kept; 0: all
	Now    func() time.Time
	// Progress is told of each step, by one goroutine at a time; it may be nil.
	Progress func(Progress)
}

const (
	// fetchedAtOnce is how many shards of workspaces are fetched at once into a directory: one is made by
	// its node while the other is sent. A node refuses more than two.
	fetchedAtOnce = 2
	// copiedAtOnce has another one be read back meanwhile.
	copiedAtOnce = fetchedAtOnce + 1
)

// Progress is how far a backup is.
type Progress struct {
	Shard, Done, Shards int    // shards include the directory
	Bytes               int64  // of the images that came so far
	What                string // "copying", "unchanged", "verifying"; otherwise a failure that is tried again
}

// taken is what a backup is made of.
type taken struct {
	Taking
	cluster string
	shards  int
	last    *Manifest // the newest backup of the same cluster in the archive; nil: none
	files   []File
	fetches chan struct{} // has a place for each shard that is fetched

	mu       sync.Mutex
	progress Progress
}

// Take copies a cluster into an archive. Nothing that it leaves after an error looks like a
// backup.
func Take(ctx context.Context, by Taking) (name string, m *Manifest, err error) {
	t := &taken{Taking: by, fetches: make(chan struct{}, fetchedAtOnce)}
	unlock, err := t.To.place.Lock(ctx)
	if err != nil {
		return "", nil, err
	}
	t.tidy(ctx)
	defer func() {
		if err != nil && name == "" {
			t.tidy(context.WithoutCancel(ctx))
		}
		err = errors.Join(err, unlock())
	}()
	topology, err := t.Client.topology(ctx)
	if err != nil {
		return "", nil, err
	}
	t.cluster, t.shards = topology.ClusterID, len(topology.Shards)-1
	t.findLast(ctx)
	m = &Manifest{ClusterID: t.cluster, Shards: t.shards, Moment: t.Now().UTC().Truncate(time.Millisecond), Complete: true}
	t.files = make([]File, t.shards+1)
	t.progress.Shards = len(t.files)
	if err := t.copyAll(ctx); err != nil {
		return "", nil, err
	}
	// The cluster may have raised its format since the backup began.
	if topology, err = t.Client.topology(ctx); err != nil {
		return "", nil, err
	}
	m.setFormat(storage.Format(topology.Format))
	t.tell(0, 0, verifying)
	// Each was read when it was written, or before it was used again.
	if err := t.To.allPresent(ctx, t.files); err != nil {
		return "", nil, err
	}
	if err := context.Cause(ctx); err != nil {
		return "", nil, err
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

// copyAll copies all shards and reads back what was written. The directory comes last: what it
// knows of a workspace is never older than the workspace.
func (t *taken) copyAll(ctx context.Context) error {
	all, shared := errgroup.WithContext(ctx)
	all.SetLimit(1)
	if t.To.place.Dir() != "" { // other places need room for each shard on the disk of this machine
		all.SetLimit(copiedAtOnce)
	}
	for shard := 1; shard <= t.shards; shard++ {
		all.Go(func() error { return t.copy(shared, shard) })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	return t.copy(ctx, 0)
}

func (t *taken) copy(ctx context.Context, shard int) (err error) {
	t.tell(shard, 0, copying)
	if t.files[shard], err = t.shard(ctx, shard); err != nil {
		return fmt.Errorf("copy shard %d: %w", shard, err)
	}
	if old := t.last.file(shard); old == nil || *old != t.files[shard] {
		t.tell(shard, 0, verifying)
		if err := t.To.check(ctx, &t.files[shard]); err != nil {
			return err
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress.Done++
	return nil
}

// The words of a shard's Progress.
const (
	copying   = "copying"
	unchanged = "unchanged"
	verifying = "verifying"
)

// tell says what happens to a shard, of which further bytes came.
func (t *taken) tell(shard int, bytes int64, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress.Shard, t.progress.What = shard, what
	t.progress.Bytes += bytes
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

// shard fetches one shard, from the start again if the copy breaks off.
func (t *taken) shard(ctx context.Context, shard int) (File, error) {
	select {
	case t.fetches <- struct{}{}:
		defer func() { <-t.fetches }()
	case <-ctx.Done():
		return File{}, context.Cause(ctx)
	}
	for try := 0; ; try++ {
		f, err := t.try(ctx, shard)
		if err == nil || ctx.Err() != nil || !again(err) || try+1 == tries {
			return f, err
		}
		t.tell(shard, 0, err.Error())
		if waited := pause(ctx, try); waited != nil {
			return f, errors.Join(waited, err)
		}
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
	counted := &counted{output: out, shard: shard, t: t}
	head, err := t.Client.fetch(ctx, t.cluster, shard, unless, counted)
	if err == nil && head.Unchanged && unless != 0 && !old.isOf(head) {
		unless = 0
		head, err = t.Client.fetch(ctx, t.cluster, shard, unless, counted)
	}
	if err != nil {
		counted.forget()
		return f, err
	}
	if head.Unchanged {
		if unless == 0 {
			return f, errors.New("the service sent no image")
		}
		t.tell(shard, 0, unchanged)
		return *old, nil
	}
	f = fileOf(head, out.hex())
	if f.Encrypted, err = out.finish(); err != nil {
		return f, err
	}
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

// isOf reports whether a file is the image that a node means which sends none, since the shard has not
// changed. The same index does not say so when data was put back to an earlier state: the file may be of the
// history that was left.
func (f *File) isOf(h *httpapi.ImageHead) bool {
	return f.Index == h.Index && f.Epoch == h.Epoch && f.Rows == h.Rows && f.Fingerprint == h.Fingerprint
}

// counted tells of the bytes that are written.
type counted struct {
	*output
	shard int
	bytes int64
	t     *taken
}

func (c *counted) room(bytes int64) error { return c.draft.Room(bytes) }

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.output.Write(p)
	c.bytes += int64(n)
	c.t.tell(c.shard, int64(n), copying)
	return n, err
}

// forget takes back what was told of bytes that are discarded.
func (c *counted) forget() {
	if c.bytes > 0 {
		c.t.tell(c.shard, -c.bytes, copying)
	}
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
	if err := t.To.allPresent(ctx, m.Files); err != nil {
		return errors.Join(err, t.To.place.Remove(context.WithoutCancel(ctx), name))
	}
	return nil
}
