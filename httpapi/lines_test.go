package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"switchyard/actors/tracker"
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

func getLines(t *testing.T, addr, accept string) (status int, header http.Header, body []byte, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+linesPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept-Encoding", accept)
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
			status, header, body, err := getLines(t, b.addr, "identity")
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

// Lines are compressed for clients that take it, whichever node they ask, and an answer that was cut
// off is noticed.
func TestLines_AreCompressed(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		failure := io.EOF
		if cut {
			failure = errors.New("the disk is gone")
		}
		a := newAtlas("b")
		entry, owner := a.join(t, "a"), a.join(t, "b")
		for _, b := range []*bundle{owner, entry} {
			for accept, want := range map[string]string{"gzip": "gzip", "gzip, zstd": "zstd", "br": "", "zstd;q=0": ""} {
				f := newFakeLines(failure)
				owner.engine.lines = f
				content := strings.Join(f.blocks, "")
				status, header, body, err := getLines(t, b.addr, accept)
				f.closed.Wait()
				if status != http.StatusOK || header.Get("Content-Encoding") != want || header.Get("Vary") != "Accept-Encoding" || (err != nil) != cut {
					t.Errorf("%q: %d, %v, %v", accept, status, header, err)
				}
				if want != "" && len(body) > len(content)/10 {
					t.Errorf("%q: %d bytes of %d", accept, len(body), len(content))
				}
				// The blocks that came can be unpacked.
				if got := unpacked(t, want, body, cut); got != content {
					t.Errorf("%q: %d bytes of content, want %d", accept, len(got), len(content))
				}
			}
		}
	}
}

// unpacked returns the content of lines; it must lack its end if the answer was cut off.
func unpacked(t *testing.T, coding string, body []byte, cut bool) string {
	t.Helper()
	var r io.Reader = bytes.NewReader(body)
	var err error
	switch coding {
	case "gzip":
		r, err = gzip.NewReader(r)
	case "zstd":
		r, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	}
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if (err != nil) != (cut && coding != "") {
		t.Errorf("%s ends with %v", coding, err)
	}
	return string(content)
}

// A node of an older version passes the client's Accept-Encoding on, and would send its client no
// Content-Encoding.
func TestLines_ArePlainForNodesThatNameNoCoding(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	owner := a.join(t, "b")
	f := newFakeLines(io.EOF)
	owner.engine.lines = f
	want := strings.Join(f.blocks, "")
	a.mu.Lock()
	between := a.at["b"]
	a.mu.Unlock()
	_, header, body, err := getLines(t, between, "gzip")
	f.closed.Wait()
	if err != nil || header.Get("Content-Encoding") != "" || string(body) != want {
		t.Errorf("%v, %v, %d bytes", header, err, len(body))
	}
}

// endingLines are lines that can be ended, whose client takes none of them.
type endingLines struct {
	*fakeLines
	end chan func()
}

func (l *endingLines) Next() ([]byte, error) { return make([]byte, 1<<20), nil }

func (l *endingLines) OnEnd(end func()) { l.end <- end }

func TestLines_EndWhileTheyAreSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	l := &endingLines{newFakeLines(nil), make(chan func(), 1)}
	b.engine.lines = l
	c, r := dial(t, b.addr)
	if _, err := io.WriteString(c, "GET "+linesPath+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+token+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadString('\n'); err != nil { // and takes no more
		t.Fatal(err)
	}
	(<-l.end)()
	l.closed.Wait()
	if _, err := io.Copy(io.Discard, r); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
}

// The headers of HEAD are those of GET, at every node.
func TestLines_Head(t *testing.T) {
	t.Parallel()
	a := newAtlas("b")
	nodes := map[string]*bundle{"owner": a.join(t, "b"), "another": a.join(t, "a")}
	for _, node := range nodes {
		node.engine.set(func(*tracker.Request, *tracker.Op, any) (tracker.Reply, error) { return tracker.Reply{}, nil })
	}
	for name, node := range nodes {
		for _, coding := range []string{"identity", "gzip", "zstd"} {
			nodes["owner"].engine.lines = newFakeLines(io.EOF)
			_, get, _, err := getLines(t, node.addr, coding)
			if err != nil {
				t.Fatal(err)
			}
			head := node.do(t, "HEAD", linesPath, "", "Accept-Encoding: "+coding)
			for _, header := range []string{"Content-Type", "Cache-Control", "X-Content-Type-Options", "X-Accel-Buffering", "Vary", "Content-Length", "Content-Encoding"} {
				if got, want := head.Header.Get(header), get.Get(header); head.StatusCode != 200 || got != want {
					t.Errorf("%s, %s: %d with the %s %q, want %q", name, coding, head.StatusCode, header, got, want)
				}
			}
		}
		nodes["owner"].engine.lines = nil
		if head := node.do(t, "HEAD", linesPath, ""); head.StatusCode != 503 {
			t.Errorf("%s: %d where GET refuses", name, head.StatusCode)
		}
	}
}
