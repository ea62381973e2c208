package transfer

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// uncut stands for an answer that is not cut off.
	uncut = 1 << 30
	// unended stands for an answer that is cut off behind its last line.
	unended = uncut - 1
)

// cutting is a service that cuts off exports.
type cutting struct {
	issues int
	cuts   []int // the bytes that each answer has before it is cut off; -1: 503
	clean  bool  // the end of an answer that is cut off looks like that of a whole one
	old    bool  // of a version that makes no checksum of all lines
	spaces int   // in front of the first line of an answer that goes on
	// changes says which answers come after a change of the workspace.
	changes func(asked int) bool
	asked   []string // the queries
}

func (s *cutting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := len(s.asked)
	s.asked = append(s.asked, r.URL.RawQuery)
	text := whole(s.issues)
	if s.changes != nil && s.changes(n) {
		text = newer(s.issues, 0)
	}
	if after := r.FormValue("after"); after != "" {
		text = behind(text, after, strings.Repeat(" ", s.spaces), r.FormValue("whole") == "true" && !s.old)
	}
	if n >= len(s.cuts) || s.cuts[n] == uncut {
		_, _ = io.WriteString(w, text)
		return
	}
	if s.cuts[n] < 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if s.cuts[n] != unended {
		text = text[:min(s.cuts[n], len(text)-1)]
	}
	_, _ = io.WriteString(w, text)
	if !s.clean {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// behind returns the answer to a request for the lines behind one of them, which come behind some spaces.
func behind(text, after, spaces string, whole bool) string {
	n, _ := strconv.Atoi(after)
	all := strings.SplitAfter(text, "\n")
	lines := all[:len(all)-2] // without the last, and the nothing behind it
	rest := strings.Join(lines[n+1:], "")
	counts := "{}"
	if len(lines) > n+1 {
		rest = spaces + rest
		counts = fmt.Sprintf(`{"issue":%d}`, len(lines)-n-1)
	}
	end := fmt.Sprintf(`{"type":"end","counts":%s,"sha256":"%x"`, counts, sha256.Sum256([]byte(rest)))
	if len(lines) <= n+1 {
		end = spaces + end
	}
	if whole {
		end += fmt.Sprintf(`,"wholeSha256":"%x"`, sha256.Sum256([]byte(strings.Join(lines, ""))))
	}
	return rest + end + "}\n"
}

// export exports from the service, and returns the content of the file and the number of lines behind which the
// export went on each time.
func (s *cutting) export(t *testing.T) (text string, again []int64, err error) {
	t.Helper()
	service := httptest.NewServer(s)
	defer service.Close()
	c, err := NewClient(service.URL, "mine")
	if err != nil {
		t.Fatal(err)
	}
	c.pause = 0
	dir := t.TempDir()
	file := filepath.Join(dir, "out")
	summary, err := c.Export(t.Context(), Exporting{Workspace: "w", File: file, Again: func(_ error, lines int64, _ time.Duration) { again = append(again, lines) }})
	left, failed := os.ReadDir(dir)
	if err != nil {
		if len(left) > 0 || failed != nil {
			t.Errorf("it left %v, %v", left, failed)
		}
		return "", again, err
	}
	written, failed := os.ReadFile(file)
	if failed != nil || summary.Lines != int64(s.issues)+1 || summary.Bytes != int64(len(written)) || len(left) != 1 {
		t.Errorf("%+v of %d bytes, beside %d files, %v", summary, len(written), len(left)-1, failed)
	}
	return string(written), again, nil
}

func TestExport_GoesOnWhereItWasCutOff(t *testing.T) {
	t.Parallel()
	for what, s := range map[string]*cutting{
		"in lines":               {issues: 1000, cuts: []int{5000, 7000, 100}},
		"with ends":              {issues: 1000, cuts: []int{5000, 7000, 100}, clean: true},
		"in the first line":      {issues: 10, cuts: []int{5, 5}},
		"behind spaces":          {issues: 1000, cuts: []int{5000, 7000, 1 << 20}, spaces: 300},
		"in the last line":       {issues: 10, cuts: []int{1 << 20, 1 << 20, 5}},
		"by a node that stopped": {issues: 1000, cuts: []int{5000, -1, -1, 100, -1}},
	} {
		text, again, err := s.export(t)
		if err != nil || text != whole(s.issues) || len(again) != len(s.cuts) {
			t.Errorf("%s: %v, went on behind %d, with %q", what, err, again, s.asked)
		}
	}
}

// An answer whose last line has come is whole, however its connection ends.
func TestExport_IsCutOffBehindItsLastLine(t *testing.T) {
	t.Parallel()
	for _, s := range []*cutting{{issues: 1000, cuts: []int{unended}}, {issues: 1000, cuts: []int{5000, unended}}} {
		text, again, err := s.export(t)
		if err != nil || text != whole(s.issues) || len(again) != len(s.cuts)-1 {
			t.Errorf("%v, %d bytes instead of %d, went on behind %d, with %q", err, len(text), len(whole(s.issues)), again, s.asked)
		}
	}
}

// The lines before and after a cut are never of different moments.
func TestExport_BeginsAnewAfterAChange(t *testing.T) {
	t.Parallel()
	once := &cutting{issues: 1000, cuts: []int{5000}, changes: func(asked int) bool { return asked > 0 }}
	if text, again, err := once.export(t); err != nil || text != newer(1000, 0) || len(again) != 2 || again[1] != 0 {
		t.Errorf("%v, went on behind %d, with %q", err, again, once.asked)
	}
	old := &cutting{issues: 1000, cuts: []int{5000}, old: true}
	if text, again, err := old.export(t); err != nil || text != whole(1000) || len(again) != 2 || again[1] != 0 {
		t.Errorf("%v, went on behind %d, with %q", err, again, old.asked)
	}
	ever := &cutting{issues: 1000, cuts: []int{5000, uncut, 5000, uncut, 5000, uncut}, changes: func(asked int) bool { return asked%2 > 0 }}
	if _, again, err := ever.export(t); !errors.Is(err, errChanged) || len(again) != 5 {
		t.Errorf("%v, went on behind %d, with %q", err, again, ever.asked)
	}
}

// What can't get better, or does not, ends.
func TestExport_GivesUp(t *testing.T) {
	t.Parallel()
	s := &cutting{issues: 1000, cuts: make([]int, 100)}
	s.cuts[0] = 5000
	var cut *cutError
	if _, again, err := s.export(t); !errors.As(err, &cut) || len(again) != exportTries {
		t.Errorf("%v after %d tries", err, len(again))
	}
	s = &cutting{issues: 1000, cuts: []int{-1}}
	if _, again, err := s.export(t); err == nil || len(again) > 0 {
		t.Errorf("%v: it went on behind %d before it had begun", err, again)
	}
}
