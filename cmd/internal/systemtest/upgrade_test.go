package systemtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/internal/testkit"
	"switchyard/storage"
)

// olderCommit is the newest one whose program writes the format before this one's.
const olderCommit = "d611af96"

// olderBinary returns the program of olderCommit. It is built once on a machine, from the history
// of the repository; a copy without that history has no older version to try.
func olderBinary(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("there is no place for the older version: %v", err)
	}
	dir := filepath.Join(cache, "switchyard-test", olderCommit)
	binary := filepath.Join(dir, "switchyard")
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	if err := hasOlder(t.Context()); err != nil {
		t.Skip(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	source := t.TempDir()
	for _, command := range []string{
		fmt.Sprintf("git -C $(git rev-parse --show-toplevel) archive %s | tar -x -C %s", olderCommit, source),
		fmt.Sprintf("cd %s && go build -o %s.$$ ./cmd/switchyard && mv %[2]s.$$ %[2]s", source, binary),
	} {
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	return binary
}

// hasOlder returns an error if the repository lacks olderCommit.
func hasOlder(ctx context.Context) error {
	if out, err := exec.CommandContext(ctx, "git", "cat-file", "-e", olderCommit+"^{commit}").CombinedOutput(); err != nil {
		return fmt.Errorf("the repository has no commit %s: %w %s", olderCommit, err, out)
	}
	return nil
}

// olderVersion is a fault in which a node goes back to the older version for a while. The cluster must
// write the older format.
func olderVersion(binary string) fault {
	restart := func(ctx context.Context, m *Member, older string) error {
		ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		if err := m.Terminate(ctx); err != nil {
			return err
		}
		m.older = older
		return m.Start()
	}
	return fault{
		name: "older version", hold: 10 * time.Second,
		strike: func(ctx context.Context, _ *Fleet, m *Member) error { return restart(ctx, m, binary) },
		heal:   func(ctx context.Context, _ *Fleet, m *Member) error { return restart(ctx, m, "") },
	}
}

// A cluster of the version before goes over to this one node by node under load, and one node goes
// back and forth. The new format comes with the last node, and there is no way back from it.
func TestCluster_UpgradesUnderLoad(t *testing.T) {
	t.Parallel()
	older := olderBinary(t)
	ctx, cancel := limited(t, 4*time.Minute)
	defer cancel()
	s := testkit.Seed(t)
	f := NewFleet(binary(t), t.TempDir(), "--shards", "4")
	f.keepLogs(t)
	for n := range 3 {
		var flags []string
		if n > 0 {
			flags = []string{"--join", f.members[0].Seed()}
		}
		m, err := f.Add(fmt.Sprintf("node-%d", n+1), flags...)
		if err != nil {
			t.Fatal(err)
		}
		m.older = older
		if err := errors.Join(m.Start(), m.WaitReady(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.stand(ctx, 3); err != nil {
		t.Fatal(err)
	}
	load, err := newTraffic(ctx, f, 4, 2)
	if err != nil {
		t.Fatal(err)
	}
	load.run(ctx, s, 20*time.Millisecond)
	writes := func(m *Member, format storage.Format) {
		t.Helper()
		if err := m.Await(ctx, fmt.Sprintf("%s writes format %d", m.Name, format), func(v ClusterView) bool { return v.Format == int(format) }); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		node    int
		version string
	}{{1, ""}, {2, ""}, {1, older}, {1, ""}} {
		f.members[step.node].runs(ctx, t, step.version)
		for _, m := range f.members {
			if m.older == "" {
				writes(m, storage.FormatNewest-1)
			}
		}
	}
	f.members[0].runs(ctx, t, "")
	for _, m := range f.members {
		writes(m, storage.FormatNewest)
	}
	// The data of a node that writes the new format is not for the older version.
	last := f.members[2]
	if err := last.Terminate(ctx); err != nil {
		t.Fatal(err)
	}
	last.older = older
	if err := last.Start(); err != nil {
		t.Fatal(err)
	}
	if output, failed, err := last.Exited(ctx); err != nil || !failed || !strings.Contains(output, fmt.Sprintf("the data is in format %d", storage.FormatNewest)) {
		t.Errorf("the older version opened it: %v, %v\n%s", failed, err, output)
	}
	last.older = ""
	if err := last.Start(); err != nil {
		t.Fatal(err)
	}
	if err := f.stand(ctx, 3); err != nil {
		t.Fatal(err)
	}
	load.end()
	// The older version gives leaderships back to a node that is slow to stop, as on a busy machine, so
	// requests wait until it has stopped.
	load.neverSilent(t, 3*restartGap)
	load.finish(ctx, t)
}
