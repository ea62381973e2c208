package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"switchyard/storage"
)

// Archive is a place with backups, and the key that encrypts them.
type Archive struct {
	place Place
	key   *Key // nil: they are not encrypted
}

// NewArchive returns the archive in a place. Without a key it is not encrypted.
func NewArchive(place Place, key *Key) *Archive { return &Archive{place, key} }

// String is how the operator names the place.
func (a *Archive) String() string { return a.place.String() }

const (
	manifestPrefix = "backup-"
	manifestSuffix = ".json"
	shardSuffix    = ".shard"
	sealedSuffix   = ".age"
	// momentLayout sorts by time.
	momentLayout = "20060102T150405.000Z"
)

// manifestName returns the name of the backup of a moment.
func (a *Archive) manifestName(moment time.Time) string {
	name := manifestPrefix + moment.UTC().Format(momentLayout) + manifestSuffix
	if a.key != nil {
		name += sealedSuffix
	}
	return name
}

// momentOf returns the moment in the name of a backup.
func momentOf(name string) (moment time.Time, sealed, ok bool) {
	name, sealed = strings.CutSuffix(name, sealedSuffix)
	text, ok := strings.CutPrefix(name, manifestPrefix)
	text, ok2 := strings.CutSuffix(text, manifestSuffix)
	moment, err := time.Parse(momentLayout, text)
	return moment, sealed, ok && ok2 && err == nil
}

// List returns the names of the backups, the oldest first.
func (a *Archive) List(ctx context.Context) ([]string, error) {
	files, err := a.place.List(ctx, "")
	if err != nil {
		return nil, fmt.Errorf("list the backups in %s: %w", a, err)
	}
	var names []string
	for _, file := range files {
		if _, _, ok := momentOf(file.Name); ok {
			names = append(names, file.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Open reads the manifest of a backup.
func (a *Archive) Open(ctx context.Context, name string) (*Manifest, error) {
	_, sealed, ok := momentOf(name)
	switch {
	case !ok:
		return nil, fmt.Errorf("%q is not the name of a backup in %s", name, a)
	case sealed && a.key == nil:
		return nil, fmt.Errorf("%s in %s is encrypted: give its key with --key-file", name, a)
	case !sealed && a.key != nil:
		return nil, fmt.Errorf("%s in %s is not encrypted, and a key is given: what it says is not proved by the key", name, a)
	}
	return a.manifest(ctx, name)
}

// manifest reads a manifest. It refuses one of a newer version, and one that is not byte for
// byte as it was written.
func (a *Archive) manifest(ctx context.Context, name string) (*Manifest, error) {
	return a.manifestAt(ctx, name, name)
}

// manifestAt reads the manifest of a backup from a file.
func (a *Archive) manifestAt(ctx context.Context, file, name string) (*Manifest, error) {
	text, err := a.read(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("read the manifest %s in %s: %w", name, a, err)
	}
	m, err := parseManifest(text)
	if err == nil {
		err = m.check(a.key != nil)
	}
	switch {
	case errors.Is(err, errNewer):
		return nil, fmt.Errorf("%s in %s %w: use the program that made it, or a newer one", name, a, err)
	case err != nil:
		return nil, fmt.Errorf("the manifest %s in %s is cut off or damaged: %w", name, a, err)
	case name != a.manifestName(m.Moment):
		return nil, fmt.Errorf("the manifest %s in %s is not of the moment in its name, but of %s", name, a, m.Moment.Format(time.RFC3339Nano))
	}
	return m, nil
}

// read returns the content of a manifest.
func (a *Archive) read(ctx context.Context, name string) (_ []byte, err error) {
	size, err := a.place.Size(ctx, name)
	if err == nil && size > maxManifest {
		err = errors.New("it is too large")
	}
	if err != nil {
		return nil, err
	}
	in, err := a.place.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	r, err := a.unsealed(in)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, maxManifest+1))
}

func (a *Archive) unsealed(in io.Reader) (io.Reader, error) {
	if a.key == nil {
		return in, nil
	}
	return a.key.open(in)
}

// shardName returns the name of the file of a shard.
func (a *Archive) shardName(f *File) string {
	if a.key != nil {
		return shardDir + a.key.name(f.SHA256) + shardSuffix + sealedSuffix
	}
	return shardDir + f.SHA256 + shardSuffix
}

// present looks whether a file is there, and has its size.
func (a *Archive) present(ctx context.Context, f *File) error {
	size, err := a.place.Size(ctx, a.shardName(f))
	if due := f.stored(); err == nil && size != due {
		err = fmt.Errorf("it has %d bytes of %d", size, due)
	}
	if err != nil {
		return fmt.Errorf("the file of shard %d is missing or damaged: %w", f.Shard, err)
	}
	return nil
}

// looksAtOnce is how many files allPresent looks for at once. A bucket takes tens of milliseconds for each, and a
// cluster has a file for each of its shards.
const looksAtOnce = 8

// allPresent is present for some files.
func (a *Archive) allPresent(ctx context.Context, files []File) error {
	all, shared := errgroup.WithContext(ctx)
	all.SetLimit(looksAtOnce)
	for i := range files {
		all.Go(func() error { return a.present(shared, &files[i]) })
	}
	return all.Wait()
}

// copy writes the content of a file to out, and compares its sum with the manifest's.
func (a *Archive) copy(ctx context.Context, f *File, out io.Writer) error {
	var failed error
	err := a.each(ctx, f, func(in io.Reader) error {
		_, err := io.Copy(&failing{out, &failed}, in)
		return err
	})
	if failed != nil && !errors.Is(failed, storage.ErrStream) {
		return fmt.Errorf("copy the file of shard %d: %w", f.Shard, failed) // the file is not at fault
	}
	return err
}

// failing notes the error of a writer.
type failing struct {
	io.Writer
	err *error
}

func (f *failing) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	*f.err = err
	return n, err
}

// check reads a file and compares its sums with the manifest's, and with its own.
func (a *Archive) check(ctx context.Context, f *File) error {
	return a.each(ctx, f, func(in io.Reader) error { return storage.CheckStream(in, storage.Shard(f.Shard)) })
}

// each has the content of a file read to its end.
func (a *Archive) each(ctx context.Context, f *File, read func(io.Reader) error) (err error) {
	in, err := a.place.Open(ctx, a.shardName(f))
	if err != nil {
		return fmt.Errorf("read the file of shard %d: %w", f.Shard, err)
	}
	defer func() { _ = in.Close() }()
	from := &source{r: in, ctx: ctx}
	content, err := a.unsealed(from)
	sum := sha256.New()
	if err == nil {
		err = read(io.TeeReader(content, sum))
	}
	if from.failed != nil {
		return fmt.Errorf("read the file of shard %d: %w", f.Shard, from.failed)
	}
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != f.SHA256 {
		err = fmt.Errorf("its SHA-256 is %x", sum.Sum(nil))
	}
	if err != nil {
		return fmt.Errorf("the file of shard %d is damaged: %w", f.Shard, err)
	}
	return nil
}

// source is a file that is read until ctx ends. It notes why it could not be read: that is no damage.
type source struct {
	r      io.Reader
	ctx    context.Context
	failed error
}

func (s *source) Read(p []byte) (n int, err error) {
	if err = context.Cause(s.ctx); err == nil {
		n, err = s.r.Read(p)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed = err
	}
	return n, err
}

// create begins a file in a folder.
func (a *Archive) create(folder string) (*output, error) {
	draft, err := a.place.Draft(folder)
	if err != nil {
		return nil, err
	}
	o := &output{draft: draft, sum: sha256.New()}
	if a.key != nil {
		if o.seal, err = a.key.seal(&counter{draft, &o.stored}); err != nil {
			return nil, errors.Join(err, draft.Discard())
		}
	}
	return o, nil
}

// output is a file being written.
type output struct {
	draft  Draft
	seal   io.WriteCloser // encrypts; nil: nothing does
	sum    hash.Hash      // of the content
	stored int64          // bytes that were encrypted
}

// Write takes the next bytes of the content.
func (o *output) Write(p []byte) (int, error) {
	_, _ = o.sum.Write(p) // never fails
	if o.seal != nil {
		return o.seal.Write(p)
	}
	return o.draft.Write(p)
}

func (o *output) hex() string { return hex.EncodeToString(o.sum.Sum(nil)) }

// finish ends the content, and returns the size of the encrypted file; 0 if it is not encrypted.
func (o *output) finish() (int64, error) {
	if o.seal == nil {
		return 0, nil
	}
	if err := o.seal.Close(); err != nil {
		return 0, fmt.Errorf("encrypt: %w", err)
	}
	return o.stored, nil
}

// counter counts what is written.
type counter struct {
	io.Writer
	n *int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	*c.n += int64(n)
	return n, err
}
