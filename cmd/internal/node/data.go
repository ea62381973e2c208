package node

import (
	"fmt"
	"os"

	"switchyard/internal/durable"
)

// privateDir makes the data directory, or takes from an existing one what it allows to
// other users: secrets of webhooks, channels and shares lie in it in the clear.
func privateDir(path string) error {
	if err := durable.MakeDir(path); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	at, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	if at.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(path, at.Mode().Perm()&0o700); err != nil {
		return fmt.Errorf("the data directory %s is open to other users (mode %04o) and can't be closed: give it to the user that runs the node, or make --data a directory below it: %w", path, at.Mode().Perm(), err)
	}
	return nil
}
