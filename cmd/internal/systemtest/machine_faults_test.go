package systemtest

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// machineFaults are faults of a node's machine, which a binary with the tag faults feels.
func machineFaults() []fault {
	return []fault{
		// Nothing is written any more, and no write fails. The leaderships go to the other nodes.
		machineFault("stuck disk", "disk", "", 15*time.Second),
		// The time of day is set. A node that differs from the others hands its leaderships on, but for
		// small differences.
		machineFault("clock ahead", "clock", "1h", 8*time.Second),
		machineFault("clock behind", "clock", "-1h", 8*time.Second),
		machineFault("clock a little ahead", "clock", "3s", 4*time.Second),
	}
}

// machineFault is a fault of a name, for as long as a file with a text is in the machine's directory.
func machineFault(name, file, text string, hold time.Duration) fault {
	return fault{
		name: name, hold: hold,
		strike: func(_ context.Context, _ *Fleet, m *Member) error {
			if err := os.MkdirAll(m.machine(), 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(m.machine(), file), []byte(text), 0o600)
		},
		heal: func(_ context.Context, _ *Fleet, m *Member) error {
			return os.Remove(filepath.Join(m.machine(), file))
		},
	}
}
