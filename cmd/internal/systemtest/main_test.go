package systemtest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"switchyard/httpapi"
	"switchyard/httpapi/apicheck"
	"switchyard/internal/testkit/bucket"
)

// built holds the binary under test, compiled once for all tests, and faulty the one whose
// disk and clock can be made to fail.
var built, faulty struct {
	sync.Once
	dir  string
	path string
	err  error
}

// TestMain holds every answer that any test of this package gets through an HTTP
// client against the API's description. Connections that tests write to by hand are
// not looked at: what they send is no HTTP, or as good as none. It also reads every line
// that a node logs in any of the tests: none may have a secret.
func TestMain(m *testing.M) {
	if socket := os.Getenv(machineSocket); socket != "" {
		os.Exit(askMachines(socket))
	}
	watch, err := watchAnswers()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	LogSecrets.Give(rootToken, fleetRoot, fleetKey, bucket.SecretKey, bucket.Session)
	code := m.Run()
	for _, fault := range watch.Faults() {
		fmt.Fprintf(os.Stderr, "an answer is not as /openapi.json says: %s\n", fault)
		code = max(code, 1)
	}
	for _, fault := range LogSecrets.Faults() {
		fmt.Fprintf(os.Stderr, "a node has logged %s\n", fault)
		code = max(code, 1)
	}
	for _, dir := range []string{built.dir, faulty.dir} {
		if dir != "" {
			_ = os.RemoveAll(dir)
		}
	}
	os.Exit(code)
}

// watchAnswers watches what comes to the clients of this package and to those that
// have no transport of their own.
func watchAnswers() (*apicheck.Watch, error) {
	server, err := httpapi.New(httpapi.Config{Engine: struct{ httpapi.Engine }{}, Cluster: struct{ httpapi.Cluster }{}})
	if err != nil {
		return nil, err
	}
	watch, err := apicheck.NewWatch(server.Description())
	if err != nil {
		return nil, err
	}
	over = watch.Over
	http.DefaultTransport = watch.Over(http.DefaultTransport)
	return watch, nil
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

// faultyBinary gives the path of the binary with the faults of cmd/internal/node/machine_faults.go.
func faultyBinary(t testing.TB) string {
	t.Helper()
	faulty.Do(func() {
		//nolint:usetesting // it outlives the test that happens to come first
		if faulty.dir, faulty.err = os.MkdirTemp("", "switchyard-systemtest"); faulty.err != nil {
			return
		}
		faulty.path, faulty.err = build(context.Background(), filepath.Join(faulty.dir, "switchyard"), false, "faults")
	})
	if faulty.err != nil {
		t.Fatal(faulty.err)
	}
	return faulty.path
}

// limited bounds how long a test that runs the binary may take, from when that is
// built: on a busy machine the build can take minutes.
func limited(t *testing.T, most time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	binary(t)
	return context.WithTimeout(t.Context(), most)
}
