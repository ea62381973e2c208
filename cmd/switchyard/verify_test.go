package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A directory without a node's data is an error, and stays as it is: a store that was made there would be
// clean.
func TestVerify_RefusesADirectoryWithoutData(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string][]string{"empty": nil, "without the state": {"raft"}, "without the log": {"state"}} {
		dir := t.TempDir()
		for _, part := range parts {
			if err := os.Mkdir(filepath.Join(dir, part), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for command, run := range map[string]func() error{"verify": verifyCmd{Data: dir}.Run, "inspect": inspectCmd{Data: dir}.Run} {
			if err := run(); err == nil || !strings.Contains(err.Error(), dir+" is no node's data") {
				t.Errorf("%s, %s: %v", command, name, err)
			}
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != len(parts) {
			t.Errorf("%s: %v was left, %v", name, left, err)
		}
	}
}
