package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCaps_SayWhatIsMissing(t *testing.T) {
	t.Parallel()
	without, with := t.TempDir(), t.TempDir()
	for dir, controllers := range map[string]string{without: "hugetlb memory\n", with: "cpuset cpu io\n"} {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte(controllers), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		mounts string
		user   int
		says   string
	}{
		"not root":      {"", 1000, "run it as root"},
		"no cgroups":    {"proc /proc proc rw 0 0\n", 0, "none are mounted"},
		"no controller": {"cgroup2 " + without + " cgroup2 rw 0 0\n", 0, `no controller cpu`},
		"only others":   {"cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n", 0, "none are mounted"},
		"not there":     {"cgroup /no/such/place cgroup rw,cpu,cpuacct 0 0\n", 0, "/no/such/place must be writable"},
		// The directory replaces cgroups: it takes the files, but not directories
		// with files in them away again, and has none of the kernel's.
		"unified": {"cgroup2 " + filepath.Join(with, "none") + " cgroup2 rw 0 0\n", 0, "read the controllers"},
	} {
		c, err := newCapsFrom(row.mounts, row.user, 0.1)
		if err == nil {
			_ = c.close()
		}
		if err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", name, err, row.says)
		}
	}
}

func TestCgroupRoot_PrefersTheMountedController(t *testing.T) {
	t.Parallel()
	hybrid := "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\ncgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,cpu,cpuacct 0 0\n"
	if root, v2, err := cgroupRoot(hybrid); err != nil || v2 || root != "/sys/fs/cgroup/cpu,cpuacct" {
		t.Errorf("%q, v2 %t, %v", root, v2, err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte("cpu io\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if root, v2, err := cgroupRoot("cgroup2 " + dir + " cgroup2 rw 0 0\n"); err != nil || !v2 || root != dir {
		t.Errorf("%q, v2 %t, %v", root, v2, err)
	}
}
