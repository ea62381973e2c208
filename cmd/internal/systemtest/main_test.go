package systemtest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// built holds the binary under test, compiled once for all tests.
var built struct {
	sync.Once
	dir  string
	path string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// binary gives the path of the binary under test.
func binary(t testing.TB) string {
	t.Helper()
	built.Do(func() {
		//nolint:usetesting // it outlives the test that happens to come first
		if built.dir, built.err = os.MkdirTemp("", "switchyard-systemtest"); built.err != nil {
			built.err = fmt.Errorf("make a directory for the binary: %w", built.err)
			return
		}
		built.path, built.err = Build(context.Background(), built.dir, false)
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

// limited bounds how long a test that runs the binary may take, from when that is
// built: on a busy machine the build can take minutes.
func limited(t *testing.T, most time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	binary(t)
	return context.WithTimeout(t.Context(), most)
}
