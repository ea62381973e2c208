package backup_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/cmd/internal/backup"
	"switchyard/cmd/internal/node"
	"switchyard/httpapi"
	"switchyard/internal/testkit"
	"switchyard/internal/testkit/bucket"
)

func s3Settings(t *testing.T, b *bucket.Service) backup.S3 {
	t.Helper()
	return backup.S3{Endpoint: b.URL, Region: bucket.Region, AccessKey: bucket.AccessKey, SecretKey: bucket.SecretKey, SessionToken: bucket.Session, Spool: t.TempDir()}
}

// inBucket returns an archive in the bucket.
func inBucket(t *testing.T, b *bucket.Service, key *backup.Key) *backup.Archive {
	t.Helper()
	place, err := backup.PlaceAt("s3://"+bucket.Name+"/some/where", s3Settings(t, b))
	if err != nil {
		t.Fatal(err)
	}
	return backup.NewArchive(place, key)
}

func TestS3_KeepsBackups(t *testing.T) {
	t.Parallel()
	s, b, key := startService(t, 4), bucket.New(t), newKey(t)
	to := inBucket(t, b, key)
	first, unchanged := s.takeTo(to, 0)
	if unchanged != 0 {
		t.Errorf("%d shards were unchanged in the first backup", unchanged)
	}
	if names := b.Names(""); len(names) != 5+1 || len(b.Names("some/where/shards/")) != 5 || !slices.Contains(names, "some/where/"+first) {
		t.Errorf("there are %q", names)
	}
	gets := b.Asked(http.MethodGet)
	s.write("Another one")
	second, unchanged := s.takeTo(to, 0)
	if unchanged < 3 {
		t.Errorf("%d of 5 shards were unchanged", unchanged)
	}
	if n := b.Asked(http.MethodGet) - gets; n > 13 {
		t.Errorf("%d GETs: what is unchanged is read again", n)
	}
	if _, err := backup.Drill(t.Context(), backup.Drilling{From: to, Backup: first, Now: time.Now}); err != nil {
		t.Error(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	if _, err := backup.Restore(t.Context(), backup.Restoring{From: to, Data: data, Now: time.Now}); err != nil {
		t.Error(err)
	}

	// Old backups go. Files that no backup has go when they are a day old and the backups that had them
	// have been removed for a day: without a lock another backup may need them.
	files := len(b.Names("some/where/shards/"))
	b.Edit("some/where/shards/other", func([]byte) []byte { return []byte("not ours") })
	s.write("A third one")
	third, _ := s.takeTo(to, 1)
	if names, err := to.List(t.Context()); err != nil || !slices.Equal(names, []string{third}) {
		t.Errorf("there are %q after %q and %q, %v", names, first, second, err)
	}
	if n := len(b.Names("some/where/shards/")); n <= files {
		t.Errorf("%d files are left of %d", n, files)
	}
	used := map[string]bool{}
	for _, title := range []string{"A fourth one", "A fifth one"} {
		b.Age(25 * time.Hour)
		s.write(title)
		name, _ := s.takeTo(to, 1)
		m, err := to.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Files {
			used[m.Files[i].SHA256] = true
		}
	}
	if n := len(b.Names("some/where/shards/")); n != len(used)+1 {
		t.Errorf("%d files are left, and the last backups have %d", n, len(used))
	}
	if _, err := backup.Drill(t.Context(), backup.Drilling{From: to, Now: time.Now}); err != nil {
		t.Error(err)
	}
}

func TestS3_RefusesWhatIsDamaged(t *testing.T) {
	t.Parallel()
	s, b, key := startService(t, 1), bucket.New(t), newKey(t)
	to := inBucket(t, b, key)
	name, _ := s.takeTo(to, 0)
	shard, manifest := b.Names("some/where/shards/")[0], "some/where/"+name
	for what, c := range map[string]struct {
		object string
		change func([]byte) []byte
		says   string
	}{
		"a missing file":     {shard, func([]byte) []byte { return nil }, "missing"},
		"a cut file":         {shard, func(b []byte) []byte { return b[:len(b)-1] }, "bytes of"},
		"a damaged file":     {shard, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, "damaged"},
		"no manifest":        {manifest, func([]byte) []byte { return nil }, "no complete backup"},
		"a damaged manifest": {manifest, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, "decrypt"},
	} {
		var before []byte
		b.Edit(c.object, func(was []byte) []byte { before = was; return c.change(slices.Clone(was)) })
		t.Log(what)
		refusesAll(t, to, c.says)
		b.Edit(c.object, func([]byte) []byte { return before })
	}
	refusesAll(t, inBucket(t, b, nil), "--key-file")
	refusesAll(t, inBucket(t, b, newKey(t)), "another key")

	// A file that is gone is copied again.
	b.Edit(shard, func([]byte) []byte { return nil })
	if _, unchanged := s.takeTo(to, 0); unchanged > 1 {
		t.Errorf("%d of 2 shards were unchanged", unchanged)
	}
	if _, err := backup.Drill(t.Context(), backup.Drilling{From: to, Now: time.Now}); err != nil {
		t.Error(err)
	}
}

// A request that the service refuses or breaks off makes no backup, and leaves nothing on the
// disk.
func TestS3_InterruptedLeavesTheLastGoodOne(t *testing.T) {
	t.Parallel()
	s, b := startService(t, 2), bucket.New(t)
	to := inBucket(t, b, nil)
	name, _ := s.takeTo(to, 0)
	for what, c := range map[string]struct {
		says string
		hit  func(w http.ResponseWriter, r *http.Request) bool
	}{
		"no writes": {"AccessDenied", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				bucket.Refuse(w, http.StatusForbidden, "AccessDenied", "AccessDenied.")
			}
			return r.Method == http.MethodPut
		}},
		"no manifest": {"AccessDenied", func(w http.ResponseWriter, r *http.Request) bool {
			hit := r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/backup-")
			if hit {
				bucket.Refuse(w, http.StatusForbidden, "AccessDenied", "AccessDenied.")
			}
			return hit
		}},
		"nothing that is written is there": {"missing", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				w.Header().Set("ETag", bucket.ETag(nil))
			}
			return r.Method == http.MethodPut
		}},
	} {
		s.write(what)
		b.Fail(c.hit)
		ctx, cancel := context.WithCancel(t.Context())
		_, _, err := backup.Take(ctx, backup.Taking{Client: client(t, s.url), To: to, Keep: 1, Now: time.Now, Progress: func(p backup.Progress) {
			if p.What != "copying" && p.What != "unchanged" && p.What != "verifying" {
				cancel() // it would try again
			}
		}})
		cancel()
		b.Fail(nil)
		if err == nil || !strings.Contains(err.Error(), c.says) && !strings.Contains(err.Error(), "not exist") || strings.Contains(err.Error(), bucket.SecretKey) || strings.Contains(err.Error(), bucket.Session) {
			t.Errorf("%s: %v", what, err)
		}
		if names, err := to.List(t.Context()); err != nil || !slices.Equal(names, []string{name}) {
			t.Errorf("%s: there are %q, %v", what, names, err)
		}
		if _, err := backup.Drill(t.Context(), backup.Drilling{From: to, Now: time.Now}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.takeTo(to, 0)
}

// syncedLog is a log that several goroutines write to.
type syncedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *syncedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *syncedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A node takes backups into a bucket by itself, tries again after a failure, and logs no
// credential.
func TestS3_ScheduleOfANode(t *testing.T) {
	t.Parallel()
	b, file, log := bucket.New(t), filepath.Join(t.TempDir(), "key"), &syncedLog{}
	if err := backup.NewKey(file); err != nil {
		t.Fatal(err)
	}
	b.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			bucket.Refuse(w, http.StatusForbidden, "AccessDenied", "Not before the test allows it.")
		}
		return r.Method == http.MethodPut
	})
	s := startWith(t, 1, node.Backups{To: "s3://" + bucket.Name + "/some/where", Every: new(2 * time.Second), Keep: 2, KeyFile: file, S3: s3Settings(t, b)}, log)
	status := func() (status httpapi.BackupStatus) {
		var topology httpapi.Topology
		s.get("/cluster", &topology)
		if topology.Backup == nil {
			t.Fatal("no backups are scheduled")
		}
		return *topology.Backup
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	testkit.Await(ctx, t, "uploads are refused", func() bool { return b.Asked(http.MethodPut) > 0 })
	b.Fail(nil)
	testkit.Await(ctx, t, "there is a backup", func() bool { return status().LastName != nil })
	if now := status(); now.To != "s3://bucket/some/where" || now.EverySeconds != 2 || now.LastAt == nil || now.AgeSeconds == nil || *now.AgeSeconds > 600 {
		t.Errorf("%+v", now)
	}
	key, err := backup.ReadKey(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Drill(t.Context(), backup.Drilling{From: inBucket(t, b, key), Now: time.Now}); err != nil {
		t.Error(err)
	}
	for _, secret := range []string{bucket.SecretKey, bucket.Session, rootToken, "AGE-SECRET-KEY"} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
	if !strings.Contains(log.String(), "a backup is complete") {
		t.Errorf("the log has %q", log)
	}
}

func TestS3_Settings(t *testing.T) {
	t.Parallel()
	b := bucket.New(t)
	good := s3Settings(t, b)
	with := func(change func(*backup.S3)) backup.S3 {
		s3 := good
		change(&s3)
		return s3
	}
	for name, c := range map[string]struct {
		place string
		s3    backup.S3
		says  string
	}{
		"no bucket":       {"s3://", good, "s3://BUCKET/PREFIX"},
		"no bucket again": {"s3:///prefix", good, "s3://BUCKET/PREFIX"},
		"no place":        {"", good, "is empty"},
		"a query":         {"s3://bucket/p?x=1", good, "s3://BUCKET/PREFIX"},
		"a path above":    {"s3://bucket/a/../b", good, ". or .."},
		"an empty part":   {"s3://bucket/a//b", good, "empty parts"},
		"no key":          {"s3://bucket", with(func(s *backup.S3) { s.AccessKey = "" }), "AWS_ACCESS_KEY_ID"},
		"no secret":       {"s3://bucket", with(func(s *backup.S3) { s.SecretKey = "" }), "AWS_SECRET_ACCESS_KEY"},
		"no scheme":       {"s3://bucket", with(func(s *backup.S3) { s.Endpoint = "localhost:9000" }), "--s3-endpoint"},
		"another scheme":  {"s3://bucket", with(func(s *backup.S3) { s.Endpoint = "ftp://localhost" }), "--s3-endpoint"},
		"a path":          {"s3://bucket", with(func(s *backup.S3) { s.Endpoint = "http://localhost/x" }), "--s3-endpoint"},
		"a user":          {"s3://bucket", with(func(s *backup.S3) { s.Endpoint = "http://u:hidden@localhost" }), "--s3-endpoint"},
	} {
		if _, err := backup.PlaceAt(c.place, c.s3); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	for name, c := range map[string]struct {
		place string
		s3    backup.S3
		says  string
	}{
		"another secret":  {"s3://bucket/x", with(func(s *backup.S3) { s.SecretKey += "x" }), "signature is wrong"},
		"another key":     {"s3://bucket/x", with(func(s *backup.S3) { s.AccessKey += "x" }), "the credential is"},
		"another region":  {"s3://bucket/x", with(func(s *backup.S3) { s.Region = "" }), "the credential is"},
		"another session": {"s3://bucket/x", with(func(s *backup.S3) { s.SessionToken = "" }), "another session"},
		"another bucket":  {"s3://absent/x", good, "no such bucket"},
	} {
		place, err := backup.PlaceAt(c.place, c.s3)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := backup.NewArchive(place, nil).List(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), bucket.SecretKey) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
	if names, err := inBucket(t, b, nil).List(t.Context()); err != nil || len(names) > 0 {
		t.Errorf("an empty bucket: %q, %v", names, err)
	}
	if left, err := os.ReadDir(good.Spool); err != nil || len(left) > 0 {
		t.Errorf("%v was left, %v", left, err)
	}
}
