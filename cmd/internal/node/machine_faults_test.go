//go:build faults

package node

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestMachineFaults_Clock(t *testing.T) {
	t.Parallel()
	m, dir := faultsOfMachine(), t.TempDir()
	before := m.now()
	for _, text := range []string{"1h", "-1h"} {
		ahead, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "clock"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		m.look(dir)
		day, after := time.Now(), m.now()
		if off := after.Round(0).Sub(day.Round(0)) - ahead; off < 0 || off > time.Minute {
			t.Errorf("%s: the time of day is %s instead of about %s", text, after, day.Add(ahead))
		}
		if took := after.Sub(before); took < 0 || took > time.Minute {
			t.Errorf("%s: the monotonic clock jumped by %s", text, took)
		}
	}
}

func TestMachineFaults_Disk(t *testing.T) {
	t.Parallel()
	m, dir, disk := faultsOfMachine(), t.TempDir(), machineDisk()
	path := filepath.Join(dir, "disk")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m.look(dir)
	made := make(chan error, 1)
	go func() {
		f, err := disk.Create(filepath.Join(dir, "row"), vfs.WriteCategoryUnspecified)
		if err == nil {
			err = f.Close()
		}
		made <- err
	}()
	if _, err := disk.List(dir); err != nil {
		t.Errorf("it can't be read: %v", err)
	}
	select {
	case err := <-made:
		t.Fatalf("a stuck disk took a file: %v", err)
	default:
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	m.look(dir)
	if err := <-made; err != nil {
		t.Error(err)
	}
}
