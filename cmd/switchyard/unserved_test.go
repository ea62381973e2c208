package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The commands about backups and workspaces say what to do about a node that does not answer and about a token that
// is not accepted, and have the exit codes of the cluster's commands.
func TestUnserved_CommandsSayWhatToDo(t *testing.T) {
	t.Parallel()
	refusing := func(status int, body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(silent.Close)
	unknown := refusing(http.StatusUnauthorized, `{"code":"UNAUTHORIZED","message":"No.","hint":"Send."}`)
	forbidden := refusing(http.StatusForbidden, `{"code":"FORBIDDEN","message":"Not you.","hint":"Ask."}`)
	missing := refusing(http.StatusNotFound, `{"code":"NOT_FOUND","message":"No workspace.","hint":"Look."}`)
	token := write(t, "a-token-of-this-test")
	take := func(url string) error {
		return backupTakeCmd{To: filepath.Join(t.TempDir(), "backups"), URL: url, TokenFile: token}.Run()
	}
	export := func(url string) error {
		return workspaceExportCmd{workspaceFlags{url, token}, filepath.Join(t.TempDir(), "export"), "w"}.Run()
	}
	move := func(url string) error {
		return workspaceMoveCmd{Workspace: "w", From: url, To: url, TokenFile: token}.Run()
	}
	for _, row := range []struct {
		name string
		run  func(url string) error
		url  string
		code int
		says []string
	}{
		{"backup, nobody listens", take, nobody, exitUnreachable, []string{"nothing listens at " + nobody, "is the node running?", "--url"}},
		{"export, nobody listens", export, nobody, exitUnreachable, []string{nobody, "is the node running?", "--url"}},
		{"move, nobody listens", move, nobody, exitUnreachable, []string{nobody, "is the node running?", "--from"}},
		{"backup, no answer comes", take, silent.URL, exitUnreachable, []string{"can't reach " + silent.URL, "is the node running?", "--url"}},
		{"export, no answer comes", export, silent.URL, exitUnreachable, []string{"can't reach " + silent.URL, "--url"}},
		{"backup, another token", take, unknown, exitCredential, []string{"does not accept the token", "operator's token"}},
		{"export, another token", export, unknown, exitCredential, []string{"does not accept the token", "owner or admin"}},
		{"move, another token", move, unknown, exitCredential, []string{"does not accept the token", "operator's token"}},
		{"backup, a token of a workspace", take, forbidden, exitCredential, []string{"Not you."}},
		{"export, no workspace", export, missing, exitFailed, []string{"No workspace.", "Look."}},
	} {
		err := row.run(row.url)
		if err == nil || exitCode(err) != row.code {
			t.Errorf("%s: code %d, %v", row.name, exitCode(err), err)
			continue
		}
		for _, part := range row.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: the error lacks %q: %v", row.name, part, err)
			}
		}
	}
}

// A bucket that nobody serves is no matter of the node.
func TestUnserved_NotTheBucket(t *testing.T) {
	t.Parallel()
	bucket := &url.Error{Op: "Put", URL: "http://127.0.0.1:9000/backups", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	err := asked{"back up", "--url", operatorsToken}.failed(t.Context(), fmt.Errorf("send a file: %w", bucket))
	if exitCode(err) != exitFailed || strings.Contains(err.Error(), "--url") {
		t.Errorf("code %d, %v", exitCode(err), err)
	}
}

// A backup without a token ends as the commands of the cluster do.
func TestUnserved_BackupWithoutAToken(t *testing.T) {
	t.Setenv("SWITCHYARD_ROOT_TOKEN", "")
	err := backupTakeCmd{To: t.TempDir(), URL: "http://127.0.0.1:1"}.Run()
	if err == nil || exitCode(err) != exitCredential || !strings.Contains(err.Error(), "--token-file") {
		t.Errorf("%v", err)
	}
}
