package transfer

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// fakeImport takes the lines of a file as the service does.
type fakeImport struct {
	taken [][]byte // without the last line
	end   []byte   // the last line; nil while the import runs
	// silent is set if the service tells no checksum, as older versions.
	silent bool
}

func (f *fakeImport) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	for line := range bytes.Lines(body) {
		n, end := 0, bytes.HasPrefix(line, []byte(`{"type":"end"`))
		if !end {
			_, _ = fmt.Sscanf(string(line), `{"n":%d`, &n)
		}
		switch {
		case end && f.end == nil:
			f.end = line
		case end && !bytes.Equal(f.end, line) || !end && f.end != nil && n >= len(f.taken):
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"message":"Another file."}`)
			return
		case end || n < len(f.taken):
		default:
			f.taken = append(f.taken, line)
		}
	}
	state := "running"
	if f.end != nil {
		state = done
	}
	told := ""
	if !f.silent {
		told = fmt.Sprintf(`,"sha256":"%x"`, sha256.Sum256(bytes.Join(f.taken, nil)))
	}
	_, _ = fmt.Fprintf(w, `{"import":{"organizationId":"w","state":%q,"next":%d%s}}`, state, len(f.taken), told)
}

// taking imports a file, and returns the error.
func (f *fakeImport) taking(t *testing.T, file, workspace string) error {
	t.Helper()
	service := httptest.NewServer(f)
	defer service.Close()
	c, err := NewClient(service.URL, "mine")
	if err != nil {
		t.Fatal(err)
	}
	_, summary, err := c.Import(t.Context(), strings.NewReader(file), workspace, nil)
	if err == nil && summary.Lines != int64(len(f.taken)) {
		t.Errorf("%d lines of %d are taken", len(f.taken), summary.Lines)
	}
	return err
}

// The exports of a workspace begin with the same line. A newer one that was not taken must not count
// as taken: the operator may delete the workspace that it is of.
func TestImport_FailsForANewerExport(t *testing.T) {
	t.Parallel()
	for _, workspace := range []string{"", "w"} {
		for _, older := range []int{1, 2, 3 * chunkLines} {
			f := &fakeImport{}
			for range 2 { // the second finds the import done
				if err := f.taking(t, whole(older), workspace); err != nil {
					t.Fatalf("an import of %d issues: %v", older, err)
				}
			}
			for _, other := range []string{newer(older, older-1), whole(older - 1), whole(older + 1), whole(older + 2*chunkLines)} {
				if err := f.taking(t, other, workspace); !isOtherFile(err) {
					t.Errorf("after a file of %d issues another one ends with %v", older, err)
				}
			}
		}
	}
}

// A service of an older version tells only how many lines it has. Those of another file are found by
// their number or, where another node has the workspace, by the last line.
func TestImport_FailsWithoutAChecksum(t *testing.T) {
	t.Parallel()
	f := &fakeImport{silent: true}
	for range 2 {
		if err := f.taking(t, whole(5), ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, issues := range []int{4, 6} {
		if err := f.taking(t, whole(issues), ""); !isOtherFile(err) {
			t.Errorf("a file of %d issues ends with %v", issues, err)
		}
	}
	err := f.taking(t, newer(5, 4), "")
	if refused, ok := errors.AsType[*RefusedError](err); !ok || refused.Status != http.StatusConflict {
		t.Errorf("a newer file with as many lines ends with %v", err)
	}
}

// An import goes on only with the lines with which it began, and takes no line of another file.
func TestImport_GoesOnWithTheSameLines(t *testing.T) {
	t.Parallel()
	const half = 3 // lines: the workspace and two issues
	for name, row := range map[string]struct {
		file  string
		other bool
	}{
		"the file":                 {file: whole(5)},
		"a file that begins so":    {file: newer(5, 4)},
		"a file with another line": {file: newer(5, 1), other: true},
		"a shorter one":            {file: whole(1), other: true},
	} {
		f := &fakeImport{}
		for line := range strings.Lines(whole(5)) {
			if len(f.taken) < half {
				f.taken = append(f.taken, []byte(line))
			}
		}
		err := f.taking(t, row.file, "w")
		if isOtherFile(err) != row.other || !row.other && err != nil || row.other && len(f.taken) != half {
			t.Errorf("%s: %v, and %d lines are taken", name, err, len(f.taken))
		}
	}
}

func isOtherFile(err error) bool {
	_, ok := errors.AsType[*OtherFileError](err)
	return ok
}
