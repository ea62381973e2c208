//go:build faults

package node

import (
	"os"
	"path/filepath"
	"sync"
	"time"
	"unsafe"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// A program built with the tag faults is for tests alone: its disk and its clock fail as long as there
// are files in the directory that faultsVariable names.
//
//   - disk: nothing is written to the data directory, and no write returns
//   - clock: a duration, such as -1h, by which the time of day is ahead
const faultsVariable = "SWITCHYARD_TEST_FAULTS"

// faultsEvery is how often the directory is looked at.
const faultsEvery = 20 * time.Millisecond

// machineFaults are the faults of this process's machine.
type machineFaults struct {
	mu    sync.Mutex
	works *sync.Cond // when the disk does
	stuck bool
	ahead time.Duration
}

var faultsOfMachine = sync.OnceValue(func() *machineFaults {
	m := &machineFaults{}
	m.works = sync.NewCond(&m.mu)
	if dir := os.Getenv(faultsVariable); dir != "" {
		go func() { // for the life of the process
			for {
				m.look(dir)
				time.Sleep(faultsEvery)
			}
		}()
	}
	return m
})

// look reads the directory once.
func (m *machineFaults) look(dir string) {
	_, err := os.Stat(filepath.Join(dir, "disk"))
	stuck := err == nil
	var ahead time.Duration
	if text, err := os.ReadFile(filepath.Join(dir, "clock")); err == nil {
		ahead, _ = time.ParseDuration(string(text)) // one that is being written is read again
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stuck, m.ahead = stuck, ahead
	if !stuck {
		m.works.Broadcast()
	}
}

// await returns when the disk works.
func (m *machineFaults) await() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.stuck {
		m.works.Wait()
	}
}

// now returns the time of day as the fault has it. The monotonic clock does not jump, as on a machine
// whose time of day is set.
func (m *machineFaults) now() time.Time {
	m.mu.Lock()
	ahead := m.ahead
	m.mu.Unlock()
	t := time.Now()
	jump(&t, ahead/time.Second)
	return t
}

// jump sets a time that has a monotonic clock reading ahead by seconds, and leaves the reading as it is.
// Package time has no function for that. The first word of such a time has, above 30 bits of
// nanoseconds, the seconds since 1885.
func jump(t *time.Time, seconds time.Duration) {
	*(*uint64)(unsafe.Pointer(t)) += uint64(seconds) << 30
}

func machineClock() time.Time { return faultsOfMachine().now() }

func machineDisk() vfs.FS {
	m := faultsOfMachine()
	return errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			m.await()
		}
		return nil
	}))
}
