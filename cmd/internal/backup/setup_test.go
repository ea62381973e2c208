package backup_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchyard/cmd/internal/backup"
	"switchyard/cmd/internal/node"
)

const rootToken = "root-token-of-the-tests"

// service is a node alone, with a workspace.
type service struct {
	t         *testing.T
	url       string
	workspace string
	token     string
	stop      func() // of a service whose test stops it
}

func startService(t *testing.T, shards int) *service {
	t.Helper()
	return startWith(t, shards, node.Backups{}, io.Discard)
}

// startWith starts a service that takes backups by itself, and logs to a writer.
func startWith(t *testing.T, shards int, backups node.Backups, log io.Writer) *service {
	t.Helper()
	s, _ := run(t, node.Config{
		Data: t.TempDir(), Shards: shards, Backups: backups,
		Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	return s.found()
}

// run starts a node alone. The function that it returns stops it.
func run(t *testing.T, cfg node.Config) (*service, func()) {
	t.Helper()
	cfg.HTTP, cfg.RootToken, cfg.OpenOnboarding, cfg.RequestTimeout, cfg.Version = "127.0.0.1:0", rootToken, true, 30*time.Second, "test"
	n, err := node.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		if err := n.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	if err := errors.Join(n.Join(t.Context()), n.WaitReady(t.Context())); err != nil {
		t.Fatal(err)
	}
	return &service{t: t, url: "http://" + n.HTTPAddr()}, stop
}

// found makes a workspace with an issue.
func (s *service) found() *service {
	s.t.Helper()
	var made struct {
		Workspace struct {
			ID string `json:"id"`
		} `json:"workspace"`
		Token struct {
			Token string `json:"token"`
		} `json:"token"`
	}
	s.post("/workspaces/onboard", `{"name": "Secret Society", "slug": "secret-society"}`, &made)
	s = &service{t: s.t, url: s.url, workspace: made.Workspace.ID, token: made.Token.Token}
	s.write("A title that nobody may read")
	return s
}

// write makes an issue.
func (s *service) write(title string) {
	s.t.Helper()
	s.post("/workspaces/"+s.workspace+"/issues", `{"title": "`+title+`"}`, &struct{}{})
}

func (s *service) post(path, body string, out any) {
	s.t.Helper()
	s.ask(http.MethodPost, path, body, s.token, http.StatusCreated, out)
}

// get asks as the operator.
func (s *service) get(path string, out any) {
	s.t.Helper()
	s.ask(http.MethodGet, path, "", rootToken, http.StatusOK, out)
}

func (s *service) ask(method, path, body, token string, status int, out any) {
	s.t.Helper()
	if err := s.try(method, path, body, token, status, out); err != nil {
		s.t.Fatal(err)
	}
}

func (s *service) try(method, path, body, token string, status int, out any) error {
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != status {
		err = fmt.Errorf("%s: %d %s", path, res.StatusCode, text)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, out)
}

// front is an address of the service behind which answer may answer first; it reports whether
// it did.
func (s *service) front(answer func(w http.ResponseWriter, r *http.Request) bool) string {
	s.t.Helper()
	target, err := url.Parse(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	pass := &httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answer(w, r) {
			pass.ServeHTTP(w, r)
		}
	}))
	s.t.Cleanup(front.Close)
	return front.URL
}

func client(t *testing.T, url string) *backup.Client {
	t.Helper()
	c, err := backup.NewClient(url, rootToken)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// take makes a backup, and returns its name and how many shards were unchanged.
func (s *service) take(dir string, keep int) (name string, unchanged int) {
	s.t.Helper()
	return s.takeTo(plain(dir), keep)
}

func (s *service) takeTo(to *backup.Archive, keep int) (name string, unchanged int) {
	s.t.Helper()
	name, m, err := backup.Take(s.t.Context(), backup.Taking{Client: client(s.t, s.url), To: to, Keep: keep, Now: time.Now, Progress: func(p backup.Progress) {
		if p.What == "unchanged" {
			unchanged++
		}
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	if !m.Complete || len(m.Files) != m.Shards+1 || m.Bytes() == 0 || m.Ended.Before(m.Moment) {
		s.t.Fatalf("%+v", m)
	}
	return name, unchanged
}

// plain returns an archive that is not encrypted.
func plain(dir string) *backup.Archive { return backup.NewArchive(backup.InDir(dir), nil) }

// tree returns the files below a directory with their content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir+"/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// copyOf copies a directory of backups.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "backups")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

func shardFile(dir string, f *backup.File) string {
	return filepath.Join(dir, "shards", f.SHA256+".shard")
}

func edit(t *testing.T, file string, change func([]byte) []byte) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, change(bytes.Clone(text)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
