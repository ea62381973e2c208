// Package testkit has the helpers that tests of several packages share: waiting for a
// condition, comparing values field by field, a store in memory, and a client that does not
// read its answer. Only tests import it, and it imports no other package of ours.
package testkit

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
)

// TB has the methods that a test, a benchmark and a rapid.T have in common.
type TB interface {
	Helper()
	Cleanup(func())
	Error(...any)
	Errorf(string, ...any)
	Fatal(...any)
	Fatalf(string, ...any)
}

const (
	// eventuallyWithin is the time that Eventually waits. It is long, since tests run on
	// busy machines; a test that passes does not need it.
	eventuallyWithin = time.Minute
	// pollEvery is the pause between two looks at a condition.
	pollEvery = 2 * time.Millisecond
)

// Eventually waits until done returns true, and fails the test if it does not do so in
// time. what describes the condition. It is for conditions that other goroutines bring
// about and that a test can't wait for in another way.
func Eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventuallyWithin)
	defer cancel()
	Await(ctx, t, what, done)
}

// Await is like Eventually, and waits until ctx ends.
func Await(ctx context.Context, t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}

// Equal fails the test unless two values of the same type are equal, and lists the fields
// that differ. what describes the value.
func Equal[T any](t TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

// MemoryDB returns a Pebble in memory without a log, which is closed when the test ends.
func MemoryDB(t TB) *pebble.DB {
	t.Helper()
	db, err := pebble.Open("", &pebble.Options{FS: vfs.NewMem(), DisableWAL: true, Logger: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// silent is a Pebble logger that only reports fatal errors.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}

func (silent) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}
