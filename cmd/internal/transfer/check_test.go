package transfer

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/internal/testkit"
)

// whole returns an export with so many issues.
func whole(issues int) string {
	var b strings.Builder
	b.WriteString(`{"n":0,"type":"workspace","version":1,"data":{"id":"w"}}` + "\n")
	for n := range issues {
		fmt.Fprintf(&b, `{"n":%d,"type":"issue","data":{"id":"%d"}}`+"\n", n+1, n)
	}
	return sealed(b.String(), issues)
}

// sealed returns the export of which the last line is still missing.
func sealed(lines string, issues int) string {
	counts := `{"workspace":1}`
	if issues > 0 {
		counts = fmt.Sprintf(`{"issue":%d,"workspace":1}`, issues)
	}
	return lines + fmt.Sprintf(`{"type":"end","counts":%s,"sha256":"%x"}`+"\n", counts, sha256.Sum256([]byte(lines)))
}

// newer returns an export with so many issues, of which one was changed since whole returned it.
func newer(issues, changed int) string {
	lines, _, _ := strings.Cut(whole(issues), `{"type":"end"`)
	return sealed(strings.Replace(lines, fmt.Sprintf(`"id":"%d"`, changed), `"id":"changed"`, 1), issues)
}

func TestCheck_FindsTheDamage(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 100} {
		text := whole(n)
		summary, err := Check(strings.NewReader(text))
		if err != nil || summary.Lines != int64(n)+1 || summary.Bytes != int64(len(text)) {
			t.Errorf("of %d issues: %+v, %v", n, summary, err)
		}
	}
	text := whole(3)
	before := func(mark string) string { head, _, _ := strings.Cut(text, mark); return head }
	swap := func(old, to string) string { return strings.Replace(text, old, to, 1) }
	for name, row := range map[string]struct {
		text string
		line int64
	}{
		"empty":              {"", 1},
		"no end":             {text[:strings.LastIndex(text, `{"type"`)], 5},
		"cut in a line":      {text[:len(text)-3], 5},
		"cut in the middle":  {before(`"n":2`), 3},
		"a changed value":    {swap(`"id":"1"`, `"id":"7"`), 5},
		"a line twice":       {swap(`{"n":2`, `{"n":1`), 3},
		"a missing line":     {swap(`{"n":1,"type":"issue","data":{"id":"0"}}`+"\n", ""), 2},
		"not JSON":           {swap(`{"n":2,`, `{"n":2;`), 3},
		"no data":            {swap(`"data":{"id":"0"}`, `"data":null`), 2},
		"another version":    {swap(`"version":1`, `"version":2`), 1},
		"a second workspace": {swap(`"n":1,"type":"issue"`, `"n":1,"type":"workspace"`), 2},
		"other counts":       {swap(`"issue":3`, `"issue":4`), 5},
		"more behind it":     {text + text, 6},
		"too long a line":    {strings.Repeat("x", maxLine+1), 1},
		"a list":             {"[]\n", 1},
	} {
		_, err := Check(strings.NewReader(row.text))
		var damaged *DamagedError
		if !errors.As(err, &damaged) || damaged.Line != row.line {
			t.Errorf("%s: %v, want line %d", name, err, row.line)
		}
	}
}

func FuzzCheck(f *testing.F) {
	testkit.Corpus(f)
	f.Add([]byte(whole(2)))
	f.Add([]byte(`{"type":"end","counts":{},"sha256":""}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := Check(bytes.NewReader(text)); err == nil && !bytes.HasSuffix(text, []byte("\"}\n")) {
			t.Errorf("%q is taken for a whole export", text)
		}
	})
}

func TestExport_LeavesNoFileOfHalfAnAnswer(t *testing.T) {
	t.Parallel()
	text := whole(1000)
	for _, sent := range []int{0, 100, len(text) - 1, len(text)} {
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/workspaces/w/export" || r.Header.Get("Authorization") != "Bearer mine" {
				w.WriteHeader(http.StatusForbidden)
			}
			_, _ = io.WriteString(w, text[:sent])
		}))
		t.Cleanup(service.Close)
		c, err := NewClient(service.URL, "mine")
		if err != nil {
			t.Fatal(err)
		}
		c.pause = 0
		dir := t.TempDir()
		file := filepath.Join(dir, "out")
		_, err = c.Export(t.Context(), Exporting{Workspace: "w", File: file})
		left, _ := os.ReadDir(dir)
		if sent < len(text) && (err == nil || len(left) > 0) || sent == len(text) && (err != nil || len(left) != 1) {
			t.Errorf("of %d bytes of %d: %v, and %d files", sent, len(text), err, len(left))
		}
	}
}

// An export gets its name by a rename, which would put it in the place of a device or a named pipe, and of a link
// rather than of the file that the link leads to.
func TestExport_ReplacesNothingButAFile(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, whole(3))
	}))
	t.Cleanup(service.Close)
	c, err := NewClient(service.URL, "mine")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	if err := errors.Join(os.WriteFile(at("file"), []byte("old"), 0o600), os.Mkdir(at("folder"), 0o700),
		os.Symlink(at("file"), at("link")), os.Symlink(at("nowhere"), at("dangling"))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"socket", "folder", "link", "dangling"} {
		before, err := os.Lstat(at(name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Export(t.Context(), Exporting{Workspace: "w", File: at(name)}); err == nil || !strings.Contains(err.Error(), at(name)+": ") {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := os.Lstat(at(name)); err != nil || now.Mode() != before.Mode() {
			t.Errorf("%s is replaced: %v, %v", name, now.Mode(), err)
		}
	}
	if _, err := c.Export(t.Context(), Exporting{Workspace: "w", File: ""}); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("without a name: %v", err)
	}
	if _, err := c.Export(t.Context(), Exporting{Workspace: "w", File: at("file")}); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(at("file")); err != nil || string(text) != whole(3) {
		t.Errorf("the file has %q, %v", text, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 5 {
		t.Errorf("the folder has %v", left)
	}
}
