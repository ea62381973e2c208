package backup_test

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"switchyard/cmd/internal/backup"
	"switchyard/internal/testkit/bucket"
)

// Large files are sent in parts.
func TestS3_SendsInParts(t *testing.T) {
	t.Parallel()
	b := bucket.New(t)
	place, err := backup.PlaceAt("s3://"+bucket.Name+"/large", s3Settings(t, b))
	if err != nil {
		t.Fatal(err)
	}
	backup.SetS3(place, 5<<20, time.Minute)
	content := make([]byte, 11<<20)
	_, _ = rand.Read(content) // never fails
	draft, err := place.Draft("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := draft.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := draft.Keep(t.Context(), "file"); err != nil {
		t.Fatal(err)
	}
	if parts, open := b.Parts(); parts != 3 || open != 0 {
		t.Errorf("%d parts, %d uploads did not end", parts, open)
	}
	in, err := place.Open(t.Context(), "file")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(in)
	if err != nil || string(got) != string(content) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if size, err := place.Size(t.Context(), "file"); err != nil || size != int64(len(content)) {
		t.Errorf("%d bytes, %v", size, err)
	}
}

// The parts grow with the file: a service takes 10000 of them, each of 5 GiB at most.
func TestS3_SendsFilesOfAnySizeInParts(t *testing.T) {
	t.Parallel()
	place, err := backup.PlaceAt("s3://bucket/large", backup.S3{AccessKey: "key", SecretKey: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int64]uint64{
		1:                 32 << 20,
		10_000 * 32 << 20: 32 << 20,
		10_000*32<<20 + 1: 33 << 20,
		5 << 40:           525 << 20,
		10_000 * 5 << 30:  5 << 30,
	} {
		part := backup.PartOf(place, size)
		if part != want {
			t.Errorf("%d bytes are sent in parts of %d bytes, not %d", size, part, want)
		}
		if size < int64(part) {
			continue
		}
		if parts, _, _, err := minio.OptimalPartInfo(size, part); err != nil || parts > 10_000 {
			t.Errorf("%d bytes make %d parts of %d bytes, %v", size, parts, part, err)
		}
	}
}

// The image of a shard is on the disk before it is sent, and never fills it.
func TestS3_LeavesTheDiskItsReserve(t *testing.T) {
	t.Parallel()
	s, b := startService(t, 1), bucket.New(t)
	settings := s3Settings(t, b)
	place, err := backup.PlaceAt("s3://"+bucket.Name+"/some/where", settings)
	if err != nil {
		t.Fatal(err)
	}
	const total, reserve = 1 << 30, 1 << 30 / 5
	backup.SetS3Disk(place, func() uint64 { return reserve + 100 }, total)
	copies := 0
	_, _, err = backup.Take(t.Context(), backup.Taking{Client: client(t, s.url), To: backup.NewArchive(place, nil), Now: time.Now, Progress: func(p backup.Progress) {
		if p.What == "copying" {
			copies++
		}
	}})
	if err == nil || !strings.Contains(err.Error(), "no room in "+settings.Spool) || copies != 1 || b.Asked(http.MethodPut) != 0 {
		t.Errorf("%d copies were begun, %v", copies, err)
	}
	if left, err := os.ReadDir(settings.Spool); err != nil || len(left) > 0 {
		t.Errorf("%v was left, %v", left, err)
	}

	// Others fill the disk meanwhile.
	free := uint64(reserve + 100<<20)
	backup.SetS3Disk(place, func() uint64 { return free }, total)
	draft, err := place.Draft("")
	if err != nil {
		t.Fatal(err)
	}
	if err := draft.Room(101 << 20); err == nil {
		t.Error("there is room for more than the disk has")
	}
	if err := draft.Room(99 << 20); err != nil {
		t.Error(err)
	}
	written, block := 0, make([]byte, 1<<20)
	for err == nil && written < 99 {
		if written == 10 {
			free = reserve
		}
		if _, err = draft.Write(block); err == nil {
			written++
		}
	}
	if err == nil || !strings.Contains(err.Error(), "no room in ") || written != 63 {
		t.Errorf("%d MiB were written, %v", written, err)
	}
	if err := draft.Discard(); err != nil {
		t.Error(err)
	}
}

// A service that falls silent does not hold up a backup for ever.
func TestS3_EndsWhatHangs(t *testing.T) {
	t.Parallel()
	b := bucket.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel) // before the server waits for its requests
	place, err := backup.PlaceAt("s3://"+bucket.Name+"/large", s3Settings(t, b))
	if err != nil {
		t.Fatal(err)
	}
	backup.SetS3(place, 5<<20, 50*time.Millisecond)
	backup.HurryS3(place)
	b.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Length", "1000000")
			w.Header().Set("ETag", bucket.ETag(nil))
			w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
			_, _ = w.Write(make([]byte, 1000))
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-r.Context().Done():
		case <-ctx.Done():
		}
		return true
	})
	// On a busy machine the first bytes take too long already.
	in, err := place.Open(t.Context(), "file")
	if err == nil {
		_, err = io.ReadAll(in)
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
	if err == nil || !strings.Contains(err.Error(), "nothing was transferred") {
		t.Errorf("reading: %v", err)
	}
	draft, err := place.Draft("")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(draft, "content")
	if err := draft.Keep(t.Context(), "file"); err == nil || !strings.Contains(err.Error(), "nothing was transferred") {
		t.Errorf("writing: %v", err)
	}
}
