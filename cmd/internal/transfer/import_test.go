package transfer

import (
	"bytes"
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
	_, _ = fmt.Fprintf(w, `{"import":{"organizationId":"w","state":%q,"next":%d}}`, state, len(f.taken))
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
			for _, newer := range []string{newerThan(older), whole(older - 1), whole(older + 1), whole(older + 2*chunkLines)} {
				if err := f.taking(t, newer, workspace); err == nil {
					t.Errorf("after a file of %d issues another one counts as taken", older)
				}
			}
		}
	}
}
