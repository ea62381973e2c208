package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// exposure is the most that systemd may find, in tenths of its scale of 0 to 10. docs/deploy.md has
// the figure.
const exposure = "15"

// TestDeploy_SystemdAccepts has systemd read the unit, and rate what the service may do.
func TestDeploy_SystemdAccepts(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed; on Debian: apt-get install systemd")
	}
	// The program need not be installed here, and systemd wants the file of the command.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit := strings.ReplaceAll(deployed(t, "switchyard.service"), "/usr/local/bin/switchyard", self)
	if !strings.Contains(unit, "ExecStart="+self) {
		t.Fatal("the unit does not start /usr/local/bin/switchyard")
	}
	file := filepath.Join(t.TempDir(), "switchyard.service")
	if err := os.WriteFile(file, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", file}, {"security", "--offline=true", "--threshold=" + exposure, file}} {
		out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput()
		if err != nil || args[0] == "verify" && len(out) > 0 {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}
