package backup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"

	"github.com/minio/minio-go/v7"
)

// Open implements Place. A download that breaks off goes on where it was.
func (p *s3Place) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	r := &s3Reader{place: p, ctx: ctx, name: name, size: -1}
	if err := r.open(); err != nil {
		return nil, err
	}
	return r, nil
}

// s3Reader is the content of an object. It asks for the rest of it when a download breaks off: up to
// tries times, and again so often once another s3Part bytes have come.
type s3Reader struct {
	place *s3Place
	ctx   context.Context
	name  string
	size  int64  // of the object; -1: the service did not say
	etag  string // of the object; empty as above

	next   int64 // offset of the next byte
	skip   int64 // bytes that the service sends before it
	failed int   // downloads that failed since the byte at from came
	from   int64

	body  io.ReadCloser // nil: broken off
	watch *s3Watch
}

// open asks for the object from the next byte on, until the service sends it or has failed too often.
func (r *s3Reader) open() error {
	for {
		err := r.ask()
		if err == nil {
			return nil
		}
		if err := r.broken(err); err != nil {
			return err
		}
	}
}

func (r *s3Reader) ask() error {
	var options minio.GetObjectOptions
	switch {
	case r.next == 0:
	case r.next == r.size: // it broke off behind the last byte
		r.body, r.watch = http.NoBody, r.place.watch(r.ctx)
		return nil
	default:
		err := options.SetRange(r.next, 0)
		if err == nil && r.etag != "" {
			err = options.SetMatchETag(r.etag)
		}
		if err != nil {
			return fmt.Errorf("ask for the rest of %s: %w", r.name, err)
		}
	}
	watch := r.place.watch(r.ctx)
	body, is, head, err := r.place.core.GetObject(watch.ctx, r.place.bucket, r.place.prefix+r.name, options)
	if err != nil {
		err = r.place.failed(watch.ctx, "read", r.name, err)
		watch.end()
		return err
	}
	part := head.Get("Content-Range")
	switch {
	case r.next == 0:
		r.size, r.etag = is.Size, is.ETag
	case part == "": // the service knows no ranges, and sends all of it
		r.skip = r.next
	case !strings.HasPrefix(part, fmt.Sprintf("bytes %d-", r.next)):
		watch.end()
		return errors.Join(fmt.Errorf("read %s in %s: the service sends %q where the rest behind byte %d is due", r.name, r.place.bucket, part, r.next), body.Close())
	}
	r.body, r.watch = body, watch
	return nil
}

// broken waits before the next try. It returns the error if there is none.
func (r *s3Reader) broken(err error) error {
	if r.next-r.from >= s3Part {
		r.failed, r.from = 0, r.next
	}
	r.failed++
	switch {
	case r.ctx.Err() != nil || !mayPass(err):
		return err
	case r.failed == tries:
		return fmt.Errorf("%w (after %d tries)", err, tries)
	}
	if waited := r.place.pause(r.ctx, r.failed-1); waited != nil {
		return errors.Join(waited, err)
	}
	return nil
}

// Read implements io.Reader.
func (r *s3Reader) Read(b []byte) (int, error) {
	for {
		if r.body == nil {
			if err := r.open(); err != nil {
				return 0, err
			}
		}
		n, err := r.read(b)
		if err == nil || errors.Is(err, io.EOF) {
			return n, err
		}
		err = r.place.failed(r.watch.ctx, "read", r.name, err)
		_ = r.Close() // what was left of it is of no use
		if n > 0 {
			return n, nil // the rest is asked for next time
		}
		if err := r.broken(err); err != nil {
			return 0, err
		}
	}
}

// read returns io.EOF only behind the last byte.
func (r *s3Reader) read(b []byte) (int, error) {
	for r.skip > 0 {
		n, err := io.CopyN(io.Discard, r.body, min(r.skip, s3Skip))
		r.skip -= n
		r.watch.heard()
		if err != nil {
			return 0, fmt.Errorf("%w (%v)", io.ErrUnexpectedEOF, err) //nolint:errorlint // not io.EOF, which is the end
		}
	}
	n, err := r.body.Read(b)
	r.next += int64(n)
	r.watch.heard()
	if errors.Is(err, io.EOF) && r.next < r.size {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close implements io.Closer.
func (r *s3Reader) Close() error {
	if r.body == nil {
		return nil
	}
	defer r.watch.end()
	body := r.body
	r.body, r.skip = nil, 0
	return body.Close()
}

// busy reports whether a service has answered that a request may succeed when it is repeated.
func busy(err error) bool {
	var answer minio.ErrorResponse
	return errors.As(err, &answer) && (answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusRequestTimeout)
}

// mayPass reports whether a request that failed with this error may succeed when it is repeated: the
// service was busy or not reached, or the answer broke off.
func mayPass(err error) bool {
	var (
		answer      minio.ErrorResponse
		certificate *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &answer):
		return busy(err)
	case errors.Is(err, fs.ErrNotExist), errors.As(err, &certificate):
		return false
	}
	return true
}

// insist repeats a request that may succeed later. A transfer that fell silent is not repeated: it has
// taken its time.
func (p *s3Place) insist(ctx context.Context, again func(error) bool, request func() error) error {
	for try := 0; ; try++ {
		err := request()
		var silent *silentError
		if err == nil || ctx.Err() != nil || !again(err) || errors.As(err, &silent) || try+1 == tries {
			return err
		}
		if waited := p.pause(ctx, try); waited != nil {
			return errors.Join(waited, err)
		}
	}
}
