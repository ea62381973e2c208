package node

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPrivateDir_IsForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0, 0o700, 0o755, 0o777, 0o750} {
		dir := filepath.Join(t.TempDir(), "data")
		if mode != 0 {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(dir, mode); err != nil {
				t.Fatal(err)
			}
		}
		if err := privateDir(dir); err != nil {
			t.Fatal(err)
		}
		at, err := os.Stat(dir)
		if err != nil || at.Mode().Perm() != 0o700 {
			t.Errorf("mode %04o became %v, %v", mode, at.Mode().Perm(), err)
		}
	}
}
