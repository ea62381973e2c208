package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// caps hold processes to a share of a core each, by one cgroup for every process. A
// cap makes nodes of one machine comparable: each has the processor time of a small
// machine of its own, independent of the load of its neighbors.
type caps struct {
	root   string // of the processor's cgroups
	dir    string // of ours; removed by close
	v2     bool
	share  float64
	groups []string
}

// capPeriod is the time in which a process gets its share. Short periods spread the
// share evenly: with the kernel's 100 ms a node of a tenth of a core would be stopped
// for 90 ms of them, and latencies would measure that.
const capPeriod = 10 * time.Millisecond

// minQuota is the least processor time in a period that the kernel takes.
const minQuota = time.Millisecond

// newCaps prepares the cgroups; its error names the missing part.
func newCaps(share float64) (*caps, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("bench: nodes are held to a share of a core by Linux's cgroups, and the mounts of this machine can't be read: %w", err)
	}
	return newCapsFrom(string(mounts), os.Geteuid(), share)
}

func newCapsFrom(mounts string, user int, share float64) (*caps, error) {
	if user != 0 {
		return nil, errors.New("bench: nodes are held to a share of a core by cgroups, which only root may make: run it as root, with sudo for example")
	}
	root, v2, err := cgroupRoot(mounts)
	if err != nil {
		return nil, err
	}
	c := &caps{root: root, v2: v2, share: share}
	if v2 {
		if err := delegate(root); err != nil {
			return nil, err
		}
	}
	c.dir = filepath.Join(root, "switchyard-bench-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		return nil, fmt.Errorf("bench: make a cgroup: %w: %s must be writable, which it is not in most containers", err, root)
	}
	weight, most := "cpu.shares", "262144"
	if v2 {
		weight, most = "cpu.weight", "10000"
		err = delegate(c.dir)
	}
	if err == nil {
		// All nodes together would weigh as much as one other process, and not get their
		// shares beside a few of them. More than the shares they don't get in any case.
		err = os.WriteFile(filepath.Join(c.dir, weight), []byte(most), 0o644)
	}
	if err == nil {
		_, err = c.group("try") // whether the kernel takes a quota at all
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// cgroupRoot finds where the processor's cgroups are: version 1 where its controller
// is mounted, as it is beside version 2 on hybrid systems, else version 2.
func cgroupRoot(mounts string) (root string, v2 bool, err error) {
	unified := ""
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line) // device, place, type, options
		if len(fields) < 4 {
			continue
		}
		switch {
		case fields[2] == "cgroup" && slices.Contains(strings.Split(fields[3], ","), "cpu"):
			return fields[1], false, nil
		case fields[2] == "cgroup2":
			unified = fields[1]
		}
	}
	if unified == "" {
		return "", false, errors.New("bench: nodes are held to a share of a core by cgroups, and none are mounted: mount version 2 (mount -t cgroup2 none /sys/fs/cgroup), or version 1 with the controller cpu")
	}
	controllers, err := os.ReadFile(filepath.Join(unified, "cgroup.controllers"))
	if err != nil {
		return "", false, fmt.Errorf("bench: read the controllers of cgroup v2: %w", err)
	}
	if !slices.Contains(strings.Fields(string(controllers)), "cpu") {
		return "", false, fmt.Errorf("bench: cgroup v2 at %s has no controller cpu (%s has %q): the kernel was built without it, or the one above this container does not hand it down", unified, "cgroup.controllers", bytes.TrimSpace(controllers))
	}
	return unified, true, nil
}

// delegate lets the children of a cgroup of version 2 have quotas.
func delegate(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+cpu"), 0o644); err != nil {
		hint := "it must be writable, which it is not in most containers"
		if errors.Is(err, syscall.EBUSY) {
			hint = "it has processes of its own, as in a container: run it on the machine itself"
		}
		return fmt.Errorf("bench: give the controller cpu to cgroups in %s: %w: %s", dir, err, hint)
	}
	return nil
}

// group makes a cgroup with the quota.
func (c *caps) group(name string) (string, error) {
	dir := filepath.Join(c.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("bench: make a cgroup: %w", err)
	}
	c.groups = append(c.groups, dir)
	quota := strconv.FormatInt(time.Duration(c.share*float64(capPeriod)).Microseconds(), 10)
	period := strconv.FormatInt(capPeriod.Microseconds(), 10)
	settings := [][2]string{{"cpu.cfs_period_us", period}, {"cpu.cfs_quota_us", quota}}
	if c.v2 {
		settings = [][2]string{{"cpu.max", quota + " " + period}}
	}
	for _, s := range settings {
		if err := os.WriteFile(filepath.Join(dir, s[0]), []byte(s[1]), 0o644); err != nil {
			return "", fmt.Errorf("bench: set %s to %q: %w: the kernel needs CONFIG_CFS_BANDWIDTH", s[0], s[1], err)
		}
	}
	return dir, nil
}

// hold caps a process from now on.
func (c *caps) hold(name string, pid int) error {
	dir, err := c.group(name)
	if err != nil {
		return err
	}
	return enter(dir, pid)
}

// prefer gives this process, which has the clients, the same weight against other work
// as the nodes have, without a cap: late clients would look like slow nodes.
func (c *caps) prefer() error {
	dir := filepath.Join(c.dir, "clients")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("bench: make a cgroup: %w", err)
	}
	return enter(dir, os.Getpid())
}

// leave takes this process out of the cgroups again. Where it was before is not
// known; it ends with the run.
func (c *caps) leave() error {
	dir := filepath.Join(c.dir, "clients")
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return errors.Join(enter(c.root, os.Getpid()), removeGroup(dir))
}

// enter puts a process, with all its threads, into a cgroup.
func enter(dir string, pid int) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		return fmt.Errorf("bench: put process %d into a cgroup: %w", pid, err)
	}
	return nil
}

// free removes the cgroups of processes that have ended.
func (c *caps) free() error {
	var faults []error
	for _, dir := range c.groups {
		faults = append(faults, removeGroup(dir))
	}
	c.groups = nil
	return errors.Join(faults...)
}

// close removes everything that was made.
func (c *caps) close() error { return errors.Join(c.leave(), c.free(), removeGroup(c.dir)) }

// removeGroup removes one cgroup. Its files go with it, and the kernel may need a
// moment after its last process has ended.
func removeGroup(dir string) error {
	const tries, pause = 50, 20 * time.Millisecond
	var err error
	for range tries {
		if err = syscall.Rmdir(dir); err == nil || errors.Is(err, syscall.ENOENT) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) {
			break
		}
		time.Sleep(pause)
	}
	return fmt.Errorf("bench: remove the cgroup %s: %w", dir, err)
}
