package backup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/cmd/internal/backup"
	"switchyard/cmd/internal/transfer"
	"switchyard/httpapi"
)

func TestTake_SharesTheFilesOfUnchangedShards(t *testing.T) {
	t.Parallel()
	s := startService(t, 3)
	dir := filepath.Join(t.TempDir(), "backups")
	first, unchanged := s.take(dir, 0)
	if unchanged != 0 {
		t.Errorf("%d shards were unchanged in the first backup", unchanged)
	}
	before := tree(t, dir)
	second, _ := s.take(dir, 0)
	s.write("Another one")
	third, unchanged := s.take(dir, 0)
	// Only the shard of one workspace has changed, and the directory, to which the service may
	// write by itself.
	if unchanged < 2 || unchanged > 3 {
		t.Errorf("%d of 4 shards were unchanged", unchanged)
	}
	after := tree(t, dir)
	for name, text := range before {
		if after[name] != text {
			t.Errorf("%s has changed", name)
		}
	}
	names, err := plain(dir).List(t.Context())
	if err != nil || !slices.Equal(names, []string{first, second, third}) {
		t.Errorf("there are %q, %v", names, err)
	}
	for _, name := range names {
		if _, err := backup.Drill(t.Context(), backup.Drilling{From: plain(dir), Backup: name, Now: time.Now}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A file that is damaged is not used again.
	m, err := plain(dir).Open(t.Context(), third)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Files {
		edit(t, shardFile(dir, &m.Files[i]), func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
	}
	fourth, unchanged := s.take(dir, 1)
	if unchanged != 0 {
		t.Errorf("%d damaged files were used again", unchanged)
	}
	if _, err := backup.Drill(t.Context(), backup.Drilling{From: plain(dir), Now: time.Now}); err != nil {
		t.Error(err)
	}
	// Older backups go with what only they have.
	if names, err := plain(dir).List(t.Context()); err != nil || !slices.Equal(names, []string{fourth}) {
		t.Errorf("there are %q, %v", names, err)
	}
	if files := tree(t, dir); len(files) != 4+2 {
		t.Errorf("there are %q", slices.Collect(maps.Keys(files)))
	}
}

// A backup that breaks off leaves those before it as they were, and the next one succeeds.
func TestTake_InterruptedLeavesTheLastGoodOne(t *testing.T) {
	t.Parallel()
	s := startService(t, 3)
	dir := filepath.Join(t.TempDir(), "backups")
	name, _ := s.take(dir, 0)
	before := tree(t, dir)
	same := func(what string) {
		t.Helper()
		now := tree(t, dir)
		for file, text := range before {
			if now[file] != text {
				t.Errorf("%s: %s has changed", what, file)
			}
		}
		if names, err := plain(dir).List(t.Context()); err != nil || !slices.Equal(names, []string{name}) {
			t.Errorf("%s: there are %q, %v", what, names, err)
		}
		for file := range now {
			if strings.Contains(file, ".part") {
				t.Errorf("%s: %s was left", what, file)
			}
		}
	}
	for done := range 5 { // after so many shards
		s.write(fmt.Sprint("Change ", done))
		ctx, cancel := context.WithCancelCause(t.Context())
		asked := errors.New("asked to stop")
		_, _, err := backup.Take(ctx, backup.Taking{Client: client(t, s.url), To: plain(dir), Keep: 1, Now: time.Now, Progress: func(p backup.Progress) {
			if p.Done >= done { // two may be done at once
				cancel(asked)
			}
		}})
		if !errors.Is(err, asked) {
			t.Errorf("stopped after %d shards: %v", done, err)
		}
		same(fmt.Sprint("stopped after ", done))
	}
	// A process that is killed can't tidy up.
	for _, part := range []string{".part-manifest", "shards/.part-1234"} {
		if err := os.WriteFile(filepath.Join(dir, part), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.take(dir, 1)
	for file := range tree(t, dir) {
		if strings.Contains(file, ".part") {
			t.Errorf("%s was left", file)
		}
	}
	if _, err := backup.Drill(t.Context(), backup.Drilling{From: plain(dir), Now: time.Now}); err != nil {
		t.Error(err)
	}
}

func TestTake_OneAtATime(t *testing.T) {
	t.Parallel()
	s := startService(t, 1)
	dir := filepath.Join(t.TempDir(), "backups")
	tried := false
	_, _, err := backup.Take(t.Context(), backup.Taking{Client: client(t, s.url), To: plain(dir), Now: time.Now, Progress: func(backup.Progress) {
		if tried {
			return
		}
		tried = true
		if _, _, err := backup.Take(t.Context(), backup.Taking{Client: client(t, s.url), To: plain(dir), Now: time.Now}); err == nil || !strings.Contains(err.Error(), "another backup writes to") {
			t.Errorf("a second one at once: %v", err)
		}
	}})
	if err != nil || !tried {
		t.Error(err)
	}
}

// A directory that can't be written to is not taken for one that another backup writes to.
func TestTake_LockThatCannotBeMade(t *testing.T) {
	t.Parallel()
	s := startService(t, 1)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, _, err := backup.Take(t.Context(), backup.Taking{Client: client(t, s.url), To: plain(dir), Now: time.Now})
	if err == nil || strings.Contains(err.Error(), "another backup") || !strings.Contains(err.Error(), "is a directory") {
		t.Error(err)
	}
}

// Answers of a service are checked: a wrong one never makes a backup.
func TestTake_DoesNotBelieveTheService(t *testing.T) {
	t.Parallel()
	s := startService(t, 2)
	for name, c := range map[string]struct{ head, says string }{
		"nothing":              {"", "cut off"},
		"no line":              {"{}", "cut off"},
		"not JSON":             {"<html>\n", "cut off"},
		"an endless line":      {strings.Repeat("x", 1<<20), "cut off"},
		"an error":             {`{"error":"the disk is full"}` + "\n", "the disk is full"},
		"copying, and no more": {`{"copying":true}` + "\n", "cut off"},
		"another version":      {`{"version":2}` + "\n", "version 2"},
		"another cluster":      {`{"version":1,"clusterId":"other","shard":1,"bytes":1}` + "\nx", "of cluster other"},
		"another shard":        {`{"version":1,"clusterId":"CLUSTER","shard":0,"bytes":1}` + "\nx", "about shard 0"},
		"unchanged, unasked":   {`{"version":1,"clusterId":"CLUSTER","shard":1,"unchanged":true}` + "\n", "sent no image"},
		"fewer bytes":          {`{"version":1,"clusterId":"CLUSTER","shard":1,"index":5,"epoch":2,"bytes":9}` + "\n12345678", "8 bytes came of 9"},
		"more bytes":           {`{"version":1,"clusterId":"CLUSTER","shard":1,"index":5,"epoch":2,"bytes":7}` + "\n12345678", "8 bytes came of 7"},
		"no image":             {`{"version":1,"clusterId":"CLUSTER","shard":1,"index":5,"epoch":2,"bytes":8}` + "\n12345678", "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := filepath.Join(t.TempDir(), "good")
			s := &service{t: t, url: s.url}
			name, _ := s.take(good, 0)
			m, err := plain(good).Open(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			url := s.front(func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/cluster/backup/shards/1" {
					return false
				}
				_, _ = w.Write([]byte(strings.ReplaceAll(c.head, "CLUSTER", m.ClusterID)))
				return true
			})
			dir := filepath.Join(t.TempDir(), "backups")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, _, err = backup.Take(ctx, backup.Taking{Client: client(t, url), To: plain(dir), Now: time.Now, Progress: func(p backup.Progress) {
				if p.What != "copying" && p.What != "verifying" {
					cancel() // it would try again
				}
			}})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if names, err := plain(dir).List(t.Context()); err != nil || len(names) > 0 {
				t.Errorf("there are %q, %v", names, err)
			}
		})
	}
}

// A copy that breaks off is made again.
func TestTake_CopiesAgainWhatWasCut(t *testing.T) {
	t.Parallel()
	s := startService(t, 2)
	cuts := 0
	url := s.front(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/cluster/backup/shards/2" || cuts == 1 {
			return false
		}
		cuts++
		_, _ = w.Write([]byte(`{"copying":true}` + "\n"))
		return true
	})
	dir := filepath.Join(t.TempDir(), "backups")
	if _, _, err := backup.Take(t.Context(), backup.Taking{Client: client(t, url), To: plain(dir), Now: time.Now}); err != nil || cuts != 1 {
		t.Errorf("%d cuts, %v", cuts, err)
	}
	if _, err := backup.Drill(t.Context(), backup.Drilling{From: plain(dir), Now: time.Now}); err != nil {
		t.Error(err)
	}
	// A refused request is not repeated.
	c, err := backup.NewClient(s.url, "not-the-token-of-the-operator")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = backup.Take(t.Context(), backup.Taking{Client: c, To: plain(dir), Now: time.Now})
	if refused, ok := errors.AsType[*transfer.RefusedError](err); !ok || refused.Status != http.StatusUnauthorized {
		t.Error(err)
	}
}

// A copy of a shard has the content of its workspaces, so every copy is in the cluster's audit.
func TestTake_IsInTheAudit(t *testing.T) {
	t.Parallel()
	s := startService(t, 2)
	dir := filepath.Join(t.TempDir(), "backups")
	copied := func() (shards []string) {
		t.Helper()
		var page struct {
			Entries []struct {
				Action string
				Actor  struct{ ID, Type string }
				Target struct{ ID, Type string }
			}
		}
		s.get("/cluster/audit?action=shard.*", &page)
		for _, e := range page.Entries {
			if e.Action != "shard.copied" || e.Actor.ID != "root" || e.Target.Type != "shard" {
				t.Errorf("%+v", e)
			}
			shards = append(shards, e.Target.ID)
		}
		return shards
	}
	expect := func(when string, want ...string) {
		t.Helper()
		got := copied()
		slices.Sort(got[min(1, len(got)):]) // several shards are copied at once
		if !slices.Equal(got, want) {
			t.Errorf("%s: the audit has %q, want %q", when, got, want)
		}
	}
	expect("at first")
	s.take(dir, 0)
	expect("after a backup", "0", "1", "2") // newest first
	// The service may write by itself, such as to its search index.
	unchanged, before := 0, 0
	for try := 0; unchanged < 3 && try < 5; try++ {
		before = len(copied())
		_, unchanged = s.take(dir, 0)
	}
	if after := len(copied()); unchanged != 3 || after != before {
		t.Errorf("%d of 3 shards are unchanged, and %d entries became %d: the audit changes the directory again and again", unchanged, before, after)
	}
	s.write("A change")
	s.take(dir, 0)
	if got := copied(); len(got) != before+2 || got[0] != "0" {
		t.Errorf("after a change: the audit has %q", got)
	}
	before += 2
	c, err := backup.NewClient(s.url, s.token)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := backup.Take(t.Context(), backup.Taking{Client: c, To: plain(dir), Now: time.Now}); err == nil || !strings.Contains(err.Error(), "403") {
		t.Error(err)
	}
	if got := copied(); len(got) != before {
		t.Errorf("after a refusal: the audit has %q", got)
	}
}

// A shard that changes just when it is asked for is not copied past the audit.
func TestTake_IsInTheAuditAlsoWhenAShardChanges(t *testing.T) {
	t.Parallel()
	s := startService(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	var failed error
	writer.Go(func() {
		for ctx.Err() == nil && failed == nil {
			failed = s.try(http.MethodPost, "/workspaces/"+s.workspace+"/issues", `{"title": "A change"}`, s.token, http.StatusCreated, &struct{}{})
		}
	})
	sent, unless := 0, ""
	for range 60 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/cluster/backup/shards/1"+unless, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+rootToken)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var head httpapi.ImageHead
		err = json.NewDecoder(res.Body).Decode(&head)
		if err := errors.Join(err, res.Body.Close()); err != nil || head.Error != "" {
			t.Fatalf("%v, %+v", err, head)
		}
		if head.Bytes > 0 {
			sent++
			unless = fmt.Sprint("?unless=", head.Index)
		}
	}
	cancel()
	writer.Wait()
	if failed != nil {
		t.Fatal(failed)
	}
	var page struct{ Entries []struct{} }
	s.get("/cluster/audit?action=shard.copied&limit=100", &page)
	if len(page.Entries) < sent {
		t.Errorf("%d images were sent, and the audit has %d", sent, len(page.Entries))
	}
}
