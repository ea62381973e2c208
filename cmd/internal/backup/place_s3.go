package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"switchyard/storage"
)

// S3 says how to reach buckets of S3, or of a service with its interface.
type S3 struct {
	Endpoint string // URL of the service; empty: that of AWS
	Region   string // empty: us-east-1
	// AccessKey, SecretKey and SessionToken sign requests.
	AccessKey, SecretKey, SessionToken string
	// Spool is the directory for files before they are sent; empty: that for temporary files.
	Spool string
	// KeepFree returns how many bytes stay free on the disk of the spool, of so many in all; nil: a
	// fifth of them, at most 256 MiB.
	KeepFree func(total uint64) uint64
}

// S3FromEnv fills in what is not set from the usual environment variables.
func S3FromEnv(s S3) S3 {
	first := func(values ...string) string {
		for _, v := range values {
			if v != "" {
				return v
			}
		}
		return ""
	}
	s.Endpoint = first(s.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	s.Region = first(s.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	s.AccessKey, s.SecretKey, s.SessionToken = os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")
	return s
}

// IsS3 reports whether the name of a place is a bucket of S3 rather than a directory.
func IsS3(place string) bool { return strings.HasPrefix(place, s3Scheme) }

// PlaceAt returns the place s3://BUCKET/PREFIX, or that which is a directory. Nothing is asked of
// it yet.
func PlaceAt(place string, s3 S3) (Place, error) {
	if place == "" { // such as a variable that is not set
		return nil, errors.New("the name of the directory or bucket is empty")
	}
	if !IsS3(place) {
		return InDir(place), nil
	}
	return newS3Place(place, s3)
}

const (
	s3Scheme    = "s3://"
	s3AWS       = "https://s3.amazonaws.com"
	s3Region    = "us-east-1"
	s3Retries   = 5
	s3Part      = 32 << 20 // bytes that are sent in one request, unless there would be too many
	s3Parts     = 10_000   // of one file, at most
	s3Silence   = 2 * time.Minute
	s3Uploading = 2       // requests at once for one file
	s3Skip      = 1 << 20 // bytes between two looks at a download that begins anew
)

// s3Place is the objects of a bucket whose names begin with a prefix.
type s3Place struct {
	name           string
	core           minio.Core
	bucket, prefix string // the prefix is empty, or ends with a slash
	spool          string
	keepFree       func(total uint64) uint64
	usage          func(dir string) (vfs.DiskUsage, error)
	part           uint64
	silence        time.Duration
	pause          func(ctx context.Context, try int) error // between two tries
}

func newS3Place(place string, s3 S3) (*s3Place, error) {
	bucket, prefix, _ := strings.Cut(strings.TrimPrefix(place, s3Scheme), "/")
	prefix = strings.Trim(prefix, "/")
	for _, part := range strings.Split(prefix, "/") {
		if prefix != "" && (part == "" || part == "." || part == "..") {
			return nil, fmt.Errorf("%s: the prefix can't have empty parts, nor . or .. as parts", place)
		}
	}
	if bucket == "" || strings.ContainsAny(place, "?#") {
		return nil, fmt.Errorf("%s: must be like s3://BUCKET/PREFIX", place)
	}
	if prefix != "" {
		prefix += "/"
	}
	if s3.Endpoint == "" {
		s3.Endpoint = s3AWS
	}
	if s3.Region == "" {
		s3.Region = s3Region
	}
	at, err := url.Parse(s3.Endpoint)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || strings.Trim(at.Path, "/") != "" || at.User != nil || at.RawQuery != "" {
		return nil, errors.New("--s3-endpoint must be like https://HOST:PORT")
	}
	if s3.AccessKey == "" || s3.SecretKey == "" {
		return nil, fmt.Errorf("%s needs credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", place)
	}
	client, err := minio.NewCore(at.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(s3.AccessKey, s3.SecretKey, s3.SessionToken),
		Secure: at.Scheme == "https", Region: s3.Region, MaxRetries: s3Retries,
	})
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", place, err)
	}
	p := &s3Place{name: place, core: *client, bucket: bucket, prefix: prefix, spool: s3.Spool, keepFree: s3.KeepFree,
		usage: vfs.Default.GetDiskUsage, part: s3Part, silence: s3Silence, pause: pause}
	if p.spool == "" {
		p.spool = os.TempDir()
	}
	if p.keepFree == nil {
		p.keepFree = func(total uint64) uint64 { return storage.Reserve(0, total) }
	}
	return p, nil
}

func (p *s3Place) String() string { return p.name }

// Dir implements Place: there is none.
func (p *s3Place) Dir() string { return "" }

// Lock implements Place: there is no lock. Two backups at once do not change each other's files.
func (p *s3Place) Lock(context.Context) (unlock func() error, err error) {
	return func() error { return nil }, nil
}

// failed says what failed, and turns the answer that there is no such object into fs.ErrNotExist.
func (p *s3Place) failed(ctx context.Context, what, name string, err error) error {
	var answer minio.ErrorResponse
	switch {
	case errors.As(err, &answer) && answer.Code == minio.NoSuchKey:
		err = fs.ErrNotExist
	case ctx.Err() != nil:
		err = errors.Join(context.Cause(ctx), err)
	}
	return fmt.Errorf("%s %s%s in %s: %w", what, p.prefix, name, p.bucket, err)
}

// List implements Place. A service that is not reached, maybe since its address is wrong, is asked once:
// a command begins with a list.
func (p *s3Place) List(ctx context.Context, prefix string) (all []Kept, err error) {
	err = p.insist(ctx, busy, func() (err error) {
		all, err = p.list(ctx, prefix)
		return err
	})
	return all, err
}

func (p *s3Place) list(ctx context.Context, prefix string) ([]Kept, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing after an error
	var all []Kept
	for object := range p.core.ListObjectsIter(ctx, p.bucket, minio.ListObjectsOptions{Prefix: p.prefix + prefix}) {
		if object.Err != nil {
			return nil, p.failed(ctx, "list", prefix, object.Err)
		}
		if name, ok := strings.CutPrefix(object.Key, p.prefix); ok && name != prefix && !strings.HasSuffix(name, "/") {
			all = append(all, Kept{Name: name, Changed: object.LastModified})
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return all, nil
}

func (p *s3Place) Size(ctx context.Context, name string) (int64, error) {
	var at minio.ObjectInfo
	err := p.insist(ctx, mayPass, func() (err error) {
		if at, err = p.core.StatObject(ctx, p.bucket, p.prefix+name, minio.StatObjectOptions{}); err != nil {
			return p.failed(ctx, "look for", name, err)
		}
		return nil
	})
	return at.Size, err
}

func (p *s3Place) Remove(ctx context.Context, name string) error {
	if err := p.core.RemoveObject(ctx, p.bucket, p.prefix+name, minio.RemoveObjectOptions{}); err != nil {
		return p.failed(ctx, "remove", name, err)
	}
	return nil
}

// partOf returns the size of the parts in which a file is sent: that of the place, or whole MiB of which
// s3Parts make up the file.
func (p *s3Place) partOf(size int64) uint64 {
	least := (uint64(size) + s3Parts - 1) / s3Parts
	return max(p.part, (least+1<<20-1)>>20<<20)
}

// send makes an object. The service shows it once all of it is there.
func (p *s3Place) send(ctx context.Context, name string, file io.Reader, size int64) error {
	watch := p.watch(ctx)
	defer watch.end()
	_, err := p.core.Client.PutObject(watch.ctx, p.bucket, p.prefix+name, file, size, minio.PutObjectOptions{
		ContentType: "application/octet-stream", PartSize: p.partOf(size), NumThreads: s3Uploading, Progress: watch,
	})
	if err != nil {
		return p.failed(watch.ctx, "write", name, err)
	}
	return nil
}

// s3Watch ends a transfer of which nothing is heard.
type s3Watch struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer
	silence time.Duration
}

func (p *s3Place) watch(ctx context.Context) *s3Watch {
	w := &s3Watch{silence: p.silence}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(p.silence, func() { w.cancel(&silentError{p.silence}) })
	return w
}

// silentError is the cause of a transfer's end of which nothing was heard.
type silentError struct{ time.Duration }

func (e *silentError) Error() string {
	return fmt.Sprintf("nothing was transferred for %s", e.Duration)
}

func (w *s3Watch) heard() { w.timer.Reset(w.silence) }

// Read is called with what was sent.
func (w *s3Watch) Read(b []byte) (int, error) {
	w.heard()
	return len(b), nil
}

func (w *s3Watch) end() {
	w.timer.Stop()
	w.cancel(nil)
}
