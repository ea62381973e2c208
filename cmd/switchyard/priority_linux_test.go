package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// lowersPriority has this program lower its priority and end.
const lowersPriority = "TEST_LOWERS_PRIORITY"

// Every thread of the program has the low priority, and one that is lower already stays so.
func TestLowerPriority(t *testing.T) {
	t.Parallel()
	if os.Getenv(lowersPriority) != "" {
		lowerPriority()
		stats, err := filepath.Glob("/proc/self/task/*/stat")
		if err != nil || len(stats) < 2 {
			t.Fatalf("%d threads, %v", len(stats), err)
		}
		for _, path := range stats {
			stat, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			// The name, in parentheses, is the second field. The nice value is the 19th, see proc_pid_stat(5).
			_, fields, _ := strings.Cut(string(stat), ") ")
			if nice := strings.Fields(fields)[19-3]; nice != os.Getenv(lowersPriority) {
				t.Errorf("%s has the nice value %s", path, nice)
			}
		}
		return
	}
	raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	own := 20 - raw // the tests may be run with a low priority themselves
	for _, run := range []struct {
		want  int
		nicer []string
	}{{max(lowPriority, own), nil}, {min(own+15, 19), []string{"nice", "-n", "15"}}} {
		command := append(slices.Clone(run.nicer), os.Args[0], "-test.run=^TestLowerPriority$", "-test.count=1")
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Env = append(os.Environ(), lowersPriority+"="+strconv.Itoa(run.want))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v\n%s", command, err, out)
		}
	}
}
