package systemtest

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// smallDisk is a file system of a test's own for a node's data.
type smallDisk struct {
	data string
	// fill takes all space that is left at once. free gives it back, and the neighbor's too.
	fill func() error
	free func() error
}

const (
	smallDiskBytes = 256 << 20
	// neighborBytes are taken by somebody else from the start until the first free. A node that
	// filled the disk with its own data, log given back already, stays full without them.
	neighborBytes = 32 << 20
)

// mountSmall mounts a small file system in memory for a node's data; false where
// the tests may not mount.
func mountSmall(t *testing.T) (smallDisk, bool) {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", smallDiskBytes)); err != nil {
		t.Logf("no file system can be mounted (%v): what needs one is left to where it can", err)
		return smallDisk{}, false
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	filler, neighbor := filepath.Join(dir, "filler"), filepath.Join(dir, "neighbor")
	if err := os.WriteFile(neighbor, make([]byte, neighborBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	return smallDisk{
		data: filepath.Join(dir, "data"),
		fill: func() error { return writeUntilFull(filler) },
		free: func() error { return errors.Join(os.Remove(filler), os.RemoveAll(neighbor)) },
	}, true
}

// writeUntilFull writes a file until there is no space left.
func writeUntilFull(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("fill the disk: %w", err)
	}
	defer func() { _ = f.Close() }() // it may well fail, and that is as good as full
	block := make([]byte, 1<<20)
	for len(block) > 0 {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	return nil
}

// diskLoad creates issues from several writers and keeps what was acknowledged.
type diskLoad struct {
	client    *Client
	workspace string
	team      string

	mu       sync.Mutex
	acked    map[string]string // externalRef to id
	unsure   map[string]bool
	refused  int
	surprise []string
	slowest  time.Duration
}

// run writes until ctx ends.
func (l *diskLoad) run(ctx context.Context, writers int, name string) {
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				l.create(fmt.Sprintf("%s-%d-%d", name, w, n))
			}
		})
	}
	wg.Wait()
}

// noise returns a text of 2,000 characters, the same for the same ref, that does not
// compress: the log of the node has to take its part of the disk, which is given back.
func noise(ref string) string {
	text := make([]byte, 1500)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(ref))).Read(text)
	return base64.StdEncoding.EncodeToString(text)
}

func (l *diskLoad) create(ref string) {
	began := time.Now()
	answer, err := l.client.Do(context.Background(), "POST", "/workspaces/"+l.workspace+"/issues",
		map[string]any{"title": "Disk", "teamId": l.team, "externalRef": ref, "description": noise(ref)})
	took := time.Since(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest = max(l.slowest, took)
	var told struct {
		ID, Code string
		Details  struct{ Outcome string }
	}
	if err == nil {
		err = json.Unmarshal(answer.Body, &told)
	}
	switch {
	case err != nil:
		l.unsure[ref] = true
		l.surprise = append(l.surprise, err.Error())
	case answer.Status == http.StatusCreated:
		l.acked[ref] = told.ID
	case answer.Status == http.StatusServiceUnavailable && told.Details.Outcome == "not_applied" && answer.Header.Get("Retry-After") != "":
		l.refused++
	default:
		l.unsure[ref] = true
		l.surprise = append(l.surprise, fmt.Sprintf("%d %s", answer.Status, answer.Body))
	}
}

// until runs the load until the condition holds, and fails the test when it never
// does.
func (l *diskLoad) until(t *testing.T, name string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a busy disk is slow to fill
	defer cancel()
	var met bool
	go func() {
		defer cancel()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for !met {
			select {
			case <-tick.C:
				met = holds()
			case <-ctx.Done():
				return
			}
		}
	}()
	l.run(ctx, 8, name)
	<-ctx.Done()
	if !met {
		t.Fatalf("%s: never happened; %d acknowledged, %d refused", name, len(l.acked), l.refused)
	}
}

func (l *diskLoad) counts() (acked, refused int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked), l.refused
}

// check walks the workspace: what was acknowledged is there, what was refused is
// not.
func (l *diskLoad) check(t *testing.T) {
	t.Helper()
	issues, err := l.client.Walk(t.Context(), l.workspace, "")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, issue := range issues {
		if issue.ExternalRef != nil {
			found[*issue.ExternalRef] = issue.ID
		}
	}
	for ref, id := range l.acked {
		if found[ref] != id {
			t.Errorf("%s was acknowledged as %s and is %q", ref, id, found[ref])
		}
		delete(found, ref)
	}
	for ref, id := range found {
		if !l.unsure[ref] {
			t.Errorf("%s was refused and is there as %s", ref, id)
		}
	}
}

func newDiskLoad(t *testing.T, p *Process) *diskLoad {
	t.Helper()
	c := NewClient(p.URL, "", 16)
	o, err := c.Onboard(t.Context(), "Disk", "disk")
	if err != nil {
		t.Fatal(err)
	}
	c.Token = o.Token.Token
	return &diskLoad{client: c, workspace: o.Workspace.ID, team: o.Workspace.DefaultTeamID,
		acked: map[string]string{}, unsure: map[string]bool{}}
}

func expectMetric(t *testing.T, p *Process, line string) {
	t.Helper()
	answer, err := (&Client{URL: p.Metrics, HTTP: http.DefaultClient}).Do(t.Context(), "GET", "", nil)
	if err != nil || !strings.Contains(string(answer.Body), "\n"+line+"\n") {
		t.Errorf("the metrics have no %q: %v", line, err)
	}
}

// TestDiskFull_ReserveRefusesChanges: with less free than the reserve, changes
// are refused and reads served; with a reserve that is kept, changes are taken. It
// needs no file system of its own: a reserve larger than any disk is never kept.
func TestDiskFull_ReserveRefusesChanges(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	p, err := Launch(t.Context(), binary(t), data, nil, "--disk-reserve", "1")
	if err != nil {
		t.Fatal(err)
	}
	l := newDiskLoad(t, p)
	l.create("before")
	expectMetric(t, p, "switchyard_disk_full 0")
	if err := p.Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p, err = Launch(t.Context(), binary(t), data, nil, "--disk-reserve", "1000000TiB"); err != nil {
		t.Fatal(err) // it is ready all the same: reads are served
	}
	l.client.URL = p.URL
	l.create("while full")
	l.check(t)
	if _, refused := l.counts(); refused != 1 || len(l.surprise) > 0 {
		t.Errorf("on a full disk: %d refused, %v", refused, l.surprise)
	}
	expectMetric(t, p, "switchyard_disk_full 1")
	if err := p.Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p, err = Launch(t.Context(), binary(t), data, nil, "--disk-reserve", "1MiB"); err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	l.client.URL = p.URL
	l.create("after")
	if acked, _ := l.counts(); acked != 2 {
		t.Errorf("with space again: %d acknowledged, %v", acked, l.surprise)
	}
	l.check(t)
}

// TestDiskFull_FillsUpAndRecovers runs a node on a file system of 256 MiB: it
// takes changes until the reserve is reached, survives that somebody else takes
// the rest at once, goes on when that is given back, and starts again after
// kill -9 at any of these points. Where nothing can be mounted, the test above is
// what there is.
func TestDiskFull_FillsUpAndRecovers(t *testing.T) {
	t.Parallel()
	disk, mounted := mountSmall(t)
	if !mounted {
		return
	}
	launch := func() *Process {
		t.Helper()
		p, err := Launch(t.Context(), binary(t), disk.data, nil)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := launch()
	defer func() {
		p.Kill()
		if t.Failed() {
			t.Log(p.Output())
		}
	}()
	l := newDiskLoad(t, p)
	full := func() bool { _, refused := l.counts(); return refused > 0 }

	l.until(t, "own writes", full)
	l.check(t)
	for round := range 3 {
		if err := disk.fill(); err != nil {
			t.Fatal(err)
		}
		l.refused = 0
		l.until(t, fmt.Sprintf("filled %d", round), full)
		l.check(t) // reads go on
		if round == 1 {
			p.Kill()
			// Either it starts and serves reads, or it says what is missing.
			if again, err := Launch(t.Context(), binary(t), disk.data, nil); err == nil {
				p = again
				l.client.URL = p.URL
				l.check(t)
				p.Kill()
			} else if !strings.Contains(err.Error(), "is full") {
				t.Errorf("a start on a full disk: %v", err)
			}
		}
		if err := disk.free(); err != nil {
			t.Fatal(err)
		}
		if round == 1 {
			p = launch()
			l.client.URL = p.URL
		}
		before, _ := l.counts()
		l.until(t, fmt.Sprintf("freed %d", round), func() bool { acked, _ := l.counts(); return acked > before })
	}
	if len(l.surprise) > 0 || l.slowest > 5*time.Second {
		t.Errorf("other answers than 201 and 503 not_applied: %v; the slowest took %s", l.surprise, l.slowest)
	}
	if err := p.Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := Verify(t.Context(), binary(t), disk.data); err != nil {
		t.Fatal(err)
	}
}
