package httpapi

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const linesPath = "/w/" + workspaceID + "/lines"

// fakeLines sends blocks of lines, and then an error or io.EOF.
type fakeLines struct {
	blocks []string
	err    error
	closed sync.WaitGroup
	over   atomic.Bool // closed
}

func (f *fakeLines) Next() ([]byte, error) {
	if len(f.blocks) == 0 {
		return nil, f.err
	}
	next := f.blocks[0]
	f.blocks = f.blocks[1:]
	return []byte(next), nil
}

func (f *fakeLines) Close() {
	f.over.Store(true)
	f.closed.Done()
}

func newFakeLines(err error) *fakeLines {
	f := &fakeLines{blocks: []string{"one\ntwo\n", strings.Repeat("x", 300<<10) + "\n", "three\n"}, err: err}
	f.closed.Add(1)
	return f
}

func getLines(t *testing.T, addr string) (status int, header http.Header, body []byte, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+linesPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, res.Header, body, err
}

func TestLines_ComeWholeOrAreCutOff(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		failure := io.EOF
		if cut {
			failure = errors.New("the disk is gone")
		}
		a := newAtlas("b")
		entry, owner := a.join(t, "a"), a.join(t, "b")
		for _, b := range []*bundle{owner, entry} {
			f := newFakeLines(failure)
			owner.engine.lines = f
			want := strings.Join(f.blocks, "")
			status, header, body, err := getLines(t, b.addr)
			if status != http.StatusOK || header.Get("Content-Type") != "application/x-ndjson" {
				t.Errorf("the answer is %d with %v", status, header)
			}
			if string(body) != want || (err != nil) != cut {
				t.Errorf("%d bytes of %d came, and then %v", len(body), len(want), err)
			}
			if !cut && !f.over.Load() {
				t.Error("the answer is whole, and its source is not closed yet: the next request may find no room")
			}
			f.closed.Wait()
		}
	}
}
