//go:build unix

package backup

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether a file is of the user that runs this program.
func isOwn(at fs.FileInfo) bool {
	stat, ok := at.Sys().(*syscall.Stat_t)
	return ok && int64(stat.Uid) == int64(os.Geteuid())
}
