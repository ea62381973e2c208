package backup_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/actors/tracker"
	"switchyard/cmd/internal/backup"
	"switchyard/cmd/internal/node"
	"switchyard/httpapi"
	"switchyard/internal/testkit/bucket"
)

// logging are the settings of a node that archives its logs every second.
func logging(to string) node.Backups {
	every := time.Second
	return node.Backups{To: to, Every: new(time.Hour), LogEvery: &every}
}

// serve starts a node on data that is there. The function that it returns stops it.
func serve(t *testing.T, data string, backups node.Backups) (*service, func()) {
	t.Helper()
	return run(t, node.Config{Data: data, Backups: backups, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
}

// moment reads a time of an answer; the zero one of null.
func moment(t *testing.T, at *tracker.Timestamp) (m time.Time) {
	t.Helper()
	if at != nil {
		var err error
		if m, err = time.Parse(time.RFC3339, string(*at)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// as returns the service of another node with the workspace and token of this one.
func (s *service) as(other *service) *service {
	return &service{t: s.t, url: other.url, workspace: s.workspace, token: s.token}
}

// titles returns the titles of the issues.
func (s *service) titles() (titles []string) {
	s.t.Helper()
	var page struct {
		Issues []struct {
			Title string `json:"title"`
		} `json:"issues"`
	}
	s.ask(http.MethodGet, "/workspaces/"+s.workspace+"/issues?limit=100", "", s.token, http.StatusOK, &page)
	for _, i := range page.Issues {
		titles = append(titles, i.Title)
	}
	slices.Sort(titles)
	return titles
}

// backups asks for the state of the backups until it is as wanted.
func (s *service) backups(what string, wanted func(b *httpapi.BackupStatus) bool) *httpapi.BackupStatus {
	s.t.Helper()
	var view httpapi.Topology
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); {
		s.get("/cluster", &view)
		if view.Backup != nil && view.Backup.Log != nil && wanted(view.Backup) {
			return view.Backup
		}
		pause := time.NewTimer(20 * time.Millisecond)
		<-pause.C
	}
	s.t.Fatalf("not %s: %+v, %+v", what, view.Backup, view.Backup.Log)
	return nil
}

// archived waits until all writes before now are in the archive.
func (s *service) archived() {
	s.t.Helper()
	now := time.Now()
	s.backups("archived", func(b *httpapi.BackupStatus) bool {
		return b.LastName != nil && moment(s.t, b.Log.ReachesAt).After(now)
	})
}

// restored restores a moment, and returns the service with that state, whose rows are proved.
func (s *service) restored(from *backup.Archive, at time.Time) *service {
	s.t.Helper()
	d, err := backup.Drill(s.t.Context(), backup.Drilling{From: from, At: at, Scratch: s.t.TempDir(), Now: time.Now})
	if err != nil || !d.Report.Clean() {
		s.t.Fatalf("the drill: %v, %+v", err, d)
	}
	data := filepath.Join(s.t.TempDir(), "data")
	if _, err := backup.Restore(s.t.Context(), backup.Restoring{From: from, At: at, Data: data, Now: time.Now}); err != nil {
		s.t.Fatal(err)
	}
	r, _ := serve(s.t, data, node.Backups{})
	return s.as(r)
}

// outOfReach wants a restore to be refused.
func outOfReach(t *testing.T, from *backup.Archive, name string, at time.Time, says string) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	_, err := backup.Restore(t.Context(), backup.Restoring{From: from, Backup: name, At: at, Data: data, Now: time.Now})
	if !errors.Is(err, backup.ErrOutOfReach) || !strings.Contains(err.Error(), says) {
		t.Errorf("a restore of %s is refused with %v", at, err)
	}
	if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the restore left its directory, %v", err)
	}
}

// Everything that was acknowledged before a moment is in its state, and nothing that was asked for
// after it. One node has one clock, so there is no margin.
func TestRestoreAt_AMomentUnderLoad(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "backups")
	s := startWith(t, 3, logging(dir), io.Discard)
	s.archived()
	began := time.Now()
	var lost struct {
		Workspace struct {
			ID string `json:"id"`
		} `json:"workspace"`
		Token struct {
			Token string `json:"token"`
		} `json:"token"`
	}
	s.post("/workspaces/onboard", `{"name": "Deleted by mistake", "slug": "mistake"}`, &lost)
	deleted := &service{t: t, url: s.url, workspace: lost.Workspace.ID, token: lost.Token.Token}
	deleted.write("Kept")
	type write struct {
		id         string
		began, end time.Time
	}
	var (
		mu     sync.Mutex
		writes []write
		load   sync.WaitGroup
		done   = make(chan struct{})
	)
	for range 4 {
		load.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				var issue struct {
					ID string `json:"id"`
				}
				w := write{began: time.Now()}
				if err := s.try(http.MethodPost, "/workspaces/"+s.workspace+"/issues", `{"title": "Under load"}`, s.token, http.StatusCreated, &issue); err != nil {
					t.Error(err)
					return
				}
				w.id, w.end = issue.ID, time.Now()
				mu.Lock()
				writes = append(writes, w)
				mu.Unlock()
			}
		})
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(writes)
	}
	for count() < 100 {
		<-time.After(time.Millisecond)
	}
	at := time.Now()
	s.ask(http.MethodDelete, "/workspaces/"+deleted.workspace, "", deleted.token, http.StatusOK, &struct{}{})
	for n := count(); count() < n+50; {
		<-time.After(time.Millisecond)
	}
	close(done)
	load.Wait()
	s.archived()

	r := s.restored(plain(dir), at)
	before, after := 0, 0
	for _, w := range writes {
		want := http.StatusOK
		switch {
		case !w.end.After(at):
			before++
		case w.began.After(at):
			want, after = http.StatusNotFound, after+1
		default:
			continue // under way at the moment
		}
		if err := r.try(http.MethodGet, "/workspaces/"+s.workspace+"/issues/"+w.id, "", s.token, want, &struct{}{}); err != nil {
			t.Errorf("of %s to %s, restored to %s: %v", w.began, w.end, at, err)
		}
	}
	if before < 100 || after < 40 {
		t.Errorf("%d writes before and %d after", before, after)
	}
	if titles := deleted.as(r).titles(); !slices.Equal(titles, []string{"Kept"}) {
		t.Errorf("the deleted workspace has %q", titles)
	}
	r.write("And on it goes")

	// Moments out of reach are refused.
	names, err := plain(dir).List(t.Context())
	if err != nil || len(names) != 1 {
		t.Fatalf("%q, %v", names, err)
	}
	for _, name := range []string{"", names[0]} {
		outOfReach(t, plain(dir), name, time.Now().Add(time.Hour), "the latest moment before it is")
		outOfReach(t, plain(dir), name, began.Add(-time.Hour), "the first one was at")
	}
	outOfReach(t, plain(t.TempDir()), "", at, "no complete backup")

	// A segment that is missing, or damaged.
	copied := copyOf(t, dir)
	segments, err := filepath.Glob(filepath.Join(copied, "log", "*.log"))
	if err != nil || len(segments) < 2 {
		t.Fatalf("%q, %v", segments, err)
	}
	shard := slices.MaxFunc(segments, func(a, b string) int { return int(sizeOf(t, a) - sizeOf(t, b)) })
	edit(t, shard, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	data := filepath.Join(t.TempDir(), "data")
	if _, err := backup.Restore(t.Context(), backup.Restoring{From: plain(copied), At: time.Now().Add(-time.Second), Data: data, Now: time.Now}); err == nil {
		t.Error("a damaged segment was restored")
	}
	if err := os.Remove(shard); err != nil {
		t.Fatal(err)
	}
	outOfReach(t, plain(copied), "", at.Add(time.Second), "")
}

func sizeOf(t *testing.T, file string) int64 {
	t.Helper()
	at, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return at.Size()
}

// Entries that no archive has are told of, and end with the next backup.
func TestRestoreAt_NotAcrossAGap(t *testing.T) {
	t.Parallel()
	dir, data := filepath.Join(t.TempDir(), "backups"), filepath.Join(t.TempDir(), "data")
	first, stop := serve(t, data, logging(dir))
	s := first.found()
	s.archived()
	before := time.Now()
	s.write("Before the gap")
	s.archived()
	stop()
	// Without an archive, logs are truncated when a node stops, but for the entries since the stop before.
	off := time.Duration(0)
	noise := make([]byte, 2000)
	for range 2 {
		second, stop := serve(t, data, node.Backups{To: dir, Every: new(time.Hour), LogEvery: &off})
		s = s.as(second)
		for range 60 {
			_, _ = rand.Read(noise) // never fails
			s.post("/workspaces/"+s.workspace+"/issues", fmt.Sprintf(`{"title": "In the gap", "description": "%x"}`, noise), &struct{}{})
		}
		stop()
	}
	third, stop := serve(t, data, logging(dir))
	s = s.as(third)
	s.backups("a gap", func(b *httpapi.BackupStatus) bool { return len(b.Log.Gaps) > 0 })
	s.write("After the gap")
	s.archived()
	after := time.Now()
	stop()
	outOfReach(t, plain(dir), "", after.Add(-time.Millisecond), "the latest moment before it is")
	if titles := s.restored(plain(dir), before).titles(); len(titles) != 1 {
		t.Errorf("before the gap there are %q", titles)
	}

	backups := logging(dir)
	backups.Every = new(time.Second)
	fourth, _ := serve(t, data, backups)
	s = s.as(fourth)
	s.backups("without a gap", func(b *httpapi.BackupStatus) bool { return moment(s.t, b.LastAt).After(after) && len(b.Log.Gaps) == 0 })
	s.write("After the backup")
	at := time.Now()
	s.archived()
	if titles := s.restored(plain(dir), at).titles(); len(titles) < 60 || !slices.Contains(titles, "After the backup") || !slices.Contains(titles, "After the gap") {
		t.Errorf("after the gap there are %q", titles)
	}
	// Backups that were complete later are of no use for the moment before the gap.
	if titles := s.restored(plain(dir), before).titles(); len(titles) != 1 {
		t.Errorf("before the gap there are %q, with later backups", titles)
	}
}

// The images of a backup that a machine with a slow clock has taken are later than it says: they are no
// state of a moment before.
func TestRestoreAt_NotFromALaterImage(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "backups")
	s := startWith(t, 1, logging(dir), io.Discard)
	s.archived()
	s.write("An hour later than the backup says")
	s.archived()
	slow := func() time.Time { return time.Now().Add(-time.Hour) }
	name, _, err := backup.Take(t.Context(), backup.Taking{Client: client(t, s.url), To: plain(dir), Now: slow})
	if err != nil {
		t.Fatal(err)
	}
	s.write("Later still")
	at := time.Now()
	s.archived()
	for _, name := range []string{"", name} {
		outOfReach(t, plain(dir), name, time.Now().Add(-30*time.Minute), "was behind")
	}
	if titles := s.restored(plain(dir), at).titles(); len(titles) != 3 {
		t.Errorf("there are %q", titles)
	}
}

// In a bucket, encrypted.
func TestS3_RestoresAMoment(t *testing.T) {
	t.Parallel()
	b, keyFile := bucket.New(t), filepath.Join(t.TempDir(), "key")
	if err := backup.NewKey(keyFile); err != nil {
		t.Fatal(err)
	}
	key, err := backup.ReadKey(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	settings := logging("s3://" + bucket.Name + "/some/where")
	settings.KeyFile, settings.S3 = keyFile, s3Settings(t, b)
	s := startWith(t, 2, settings, io.Discard)
	s.archived()
	s.write("Before")
	at := time.Now()
	s.write("After")
	s.archived()
	for _, name := range b.Names("some/where/") {
		if strings.Contains(name, "/log/") || strings.Contains(name, "/marks/") {
			if !strings.HasSuffix(name, ".age") {
				t.Errorf("%s is not encrypted", name)
			}
		}
	}
	from := inBucket(t, b, key)
	if titles := s.restored(from, at).titles(); !slices.Equal(titles, []string{"A title that nobody may read", "Before"}) {
		t.Errorf("there are %q", titles)
	}
	if titles := s.restored(from, time.Now().Add(-time.Second)).titles(); len(titles) < 2 {
		t.Errorf("there are %q", titles)
	}
	// The log of a shard is gone.
	logs := b.Names("some/where/log/")
	if len(logs) == 0 {
		t.Fatal("no logs are in the bucket")
	}
	for _, name := range append(logs, b.Names("some/where/marks/")...) {
		b.Edit(name, func([]byte) []byte { return nil })
	}
	outOfReach(t, from, "", at, "can be restored without --at")
}
