package backup_test

import (
	"crypto/rand"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/cmd/internal/backup"
	"switchyard/internal/testkit/bucket"
)

// hurried returns a place in the bucket that tries again at once.
func hurried(t *testing.T, b *bucket.Service) backup.Place {
	t.Helper()
	place, err := backup.PlaceAt("s3://"+bucket.Name+"/some/where", s3Settings(t, b))
	if err != nil {
		t.Fatal(err)
	}
	backup.HurryS3(place)
	return place
}

// object puts random content into the bucket.
func object(t *testing.T, b *bucket.Service, size int) []byte {
	t.Helper()
	content := make([]byte, size)
	_, _ = rand.Read(content) // never fails
	b.Edit("some/where/file", func([]byte) []byte { return content })
	return content
}

func readFile(t *testing.T, place backup.Place) ([]byte, error) {
	t.Helper()
	in, err := place.Open(t.Context(), "file")
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(in)
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	return content, err
}

// A download that breaks off goes on where it was, as long as it comes forward.
func TestS3_GoesOnWithADownloadThatBreaksOff(t *testing.T) {
	t.Parallel()
	const size = 1_000_000
	for what, c := range map[string]struct {
		fault func(w http.ResponseWriter, r *http.Request, n int, content []byte) bool // of the nth GET
		gets  int
	}{
		"it breaks off thrice": {func(w http.ResponseWriter, r *http.Request, n int, content []byte) bool {
			if n <= 3 {
				bucket.Cut(w, r, content, size/5)
			}
			return false
		}, 4},
		"it breaks off before the first byte": {func(w http.ResponseWriter, r *http.Request, n int, content []byte) bool {
			if n <= 7 {
				bucket.Cut(w, r, content, 0)
			}
			return false
		}, 8},
		"the service is busy meanwhile": {func(w http.ResponseWriter, r *http.Request, n int, content []byte) bool {
			switch {
			case n == 1:
				bucket.Cut(w, r, content, size/2)
			case n <= 7: // the client library tries five times
				bucket.Refuse(w, http.StatusServiceUnavailable, "SlowDown", "Slow down.")
				return true
			}
			return false
		}, 8},
		"the service knows no ranges": {func(w http.ResponseWriter, r *http.Request, n int, content []byte) bool {
			r.Header.Del("Range")
			if n <= 3 {
				bucket.Cut(w, r, content, n*size/4)
			}
			return false
		}, 4},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := bucket.New(t)
			content, n := object(t, b, size), 0
			b.Fail(func(w http.ResponseWriter, r *http.Request) bool {
				n++
				return c.fault(w, r, n, content)
			})
			got, err := readFile(t, hurried(t, b))
			if err != nil || string(got) != string(content) {
				t.Errorf("%d bytes came, %v", len(got), err)
			}
			if gets := b.Asked(http.MethodGet); gets != c.gets {
				t.Errorf("%d GETs, not %d", gets, c.gets)
			}
		})
	}
}

// The number of tries is bounded, and an object that is another one meanwhile is refused.
func TestS3_GivesADownloadUp(t *testing.T) {
	t.Parallel()
	b := bucket.New(t)
	content, place := object(t, b, 1000), hurried(t, b)
	b.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		bucket.Cut(w, r, content, 0)
		return true
	})
	if _, err := readFile(t, place); err == nil || !strings.Contains(err.Error(), "after 8 tries") || b.Asked(http.MethodGet) != 8 {
		t.Errorf("%d GETs, %v", b.Asked(http.MethodGet), err)
	}
	cut := false
	b.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if !cut {
			cut = true
			bucket.Cut(w, r, []byte("what it was before, which is longer than the cut"), 9)
		}
		return false
	})
	if got, err := readFile(t, place); err == nil || !strings.Contains(err.Error(), "another one") {
		t.Errorf("of two objects %d bytes came, %v", len(got), err)
	}
}

// A list, and the look for a file, wait for a service that is busy.
func TestS3_AsksABusyServiceAgain(t *testing.T) {
	t.Parallel()
	b := bucket.New(t)
	object(t, b, 1000)
	place := hurried(t, b)
	refusals := 0
	refuse := func(status int) func(http.ResponseWriter, *http.Request) bool {
		refusals = 0
		return func(w http.ResponseWriter, _ *http.Request) bool {
			if refusals++; refusals <= 6 { // the client library tries five times
				bucket.Refuse(w, status, "Refused", "Refused.")
			}
			return refusals <= 6
		}
	}
	b.Fail(refuse(http.StatusServiceUnavailable))
	if all, err := place.List(t.Context(), ""); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	b.Fail(refuse(http.StatusServiceUnavailable))
	if size, err := place.Size(t.Context(), "file"); err != nil || size != 1000 {
		t.Errorf("%d bytes, %v", size, err)
	}
	before := b.Asked(http.MethodGet)
	b.Fail(refuse(http.StatusForbidden))
	if _, err := place.List(t.Context(), ""); err == nil || b.Asked(http.MethodGet) != before+1 {
		t.Errorf("%d GETs, %v", b.Asked(http.MethodGet)-before, err)
	}
}

// Backups are taken and restored over connections that break off. A file that can't be read is not
// called damaged.
func TestS3_BrokenDownloadsAreNoDamage(t *testing.T) {
	t.Parallel()
	s, b := startService(t, 1), bucket.New(t)
	to := backup.NewArchive(hurried(t, b), nil)
	// cutOnce has the first download of each image break off, and returns their number.
	cutOnce := func() *atomic.Int32 {
		seen, cuts := map[string]bool{}, &atomic.Int32{}
		b.Fail(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".shard") && !seen[r.URL.Path] {
				seen[r.URL.Path] = true
				cuts.Add(1)
				bucket.Cut(w, r, make([]byte, 1000), 0)
			}
			return false
		})
		return cuts
	}
	cuts := cutOnce()
	if s.takeTo(to, 0); cuts.Load() != 2 {
		t.Errorf("%d downloads broke off", cuts.Load())
	}
	cuts = cutOnce()
	if _, err := backup.Drill(t.Context(), backup.Drilling{From: to, Now: time.Now}); err != nil || cuts.Load() != 2 {
		t.Errorf("%d downloads broke off, %v", cuts.Load(), err)
	}
	b.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".shard") {
			bucket.Cut(w, r, make([]byte, 10), 0)
		}
		return false
	})
	_, err := backup.Restore(t.Context(), backup.Restoring{From: to, Data: filepath.Join(t.TempDir(), "data"), Now: time.Now})
	if err == nil || strings.Contains(err.Error(), "damaged") || !strings.Contains(err.Error(), "after 8 tries") {
		t.Error(err)
	}
}
