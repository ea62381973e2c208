package systemtest

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDataDirectory_IsForItsOwnerAlone: what lies in the directory is a secret, also in
// one that was there before and open to others.
func TestDataDirectory_IsForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(data, 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := Launch(t.Context(), binary(t), data, nil)
	if err != nil {
		t.Fatal(err)
	}
	newDiskLoad(t, p).create("one")
	if err := p.Terminate(t.Context()); err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(data, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at, err := os.Stat(path)
		if err == nil && at.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %04o", path, at.Mode().Perm())
		}
		files++
		return err
	})
	if err != nil || files < 5 {
		t.Errorf("%d files: %v", files, err)
	}
}

// ended waits for a process to end by itself.
func (p *Process) ended(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case <-p.exited:
	case <-ctx.Done():
		t.Fatalf("the node still runs\n%s", p.Output())
	}
	if p.err == nil || !strings.Contains(p.Output(), "the data directory is gone") {
		t.Errorf("the node ended with %v\n%s", p.err, p.Output())
	}
}

// TestDataDirectory_GoneEndsTheNode: a node whose directory was removed can keep nothing
// it acknowledges, though writes to its open files succeed.
func TestDataDirectory_GoneEndsTheNode(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p, err := Launch(t.Context(), binary(t), data, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	p.ended(t)
}

// TestDataDirectory_GoneBeforeTheNodeStops: the process ends, though what it has in memory can't be
// written.
func TestDataDirectory_GoneBeforeTheNodeStops(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	p, err := Launch(t.Context(), binary(t), data, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	newDiskLoad(t, p).create("one")
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil { // before the node has noticed
		t.Fatal(err)
	}
	p.ended(t)
}

// TestDataDirectory_GoneLeavesTheOthersServing: in a cluster such a node hands over what
// it leads before it ends, and the rest serve all workspaces.
func TestDataDirectory_GoneLeavesTheOthersServing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	f := newFleet(ctx, t, 3, "--shards", "4")
	victim, other := f.members[0], f.members[1]
	c := other.Client("")
	o, err := c.Onboard(ctx, "Gone", "gone")
	if err != nil {
		t.Fatal(err)
	}
	p, err := victim.running()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(victim.Data); err != nil {
		t.Fatal(err)
	}
	p.ended(t)
	if err := other.Await(ctx, "the others lead all", func(v ClusterView) bool {
		for _, s := range v.Shards {
			if s.Leader == "" || s.Leader == victim.Name {
				return false
			}
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	c.Token = o.Token.Token
	answer, err := c.Do(ctx, "POST", "/workspaces/"+o.Workspace.ID+"/issues", map[string]any{"title": "Still here"})
	if err != nil || answer.Status != 201 {
		t.Errorf("%d %s, %v", answer.Status, answer.Body, err)
	}
}
