//go:build unix

package backup

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether a file is of the user of another one, which this program has made: some file systems, such
// as those of containers and of other machines, give files another owner than the program's user. nil means a
// file of that user.
func isOwn(at, made fs.FileInfo) bool {
	user := int64(os.Geteuid())
	if made != nil {
		stat, ok := made.Sys().(*syscall.Stat_t)
		if !ok {
			return false
		}
		user = int64(stat.Uid)
	}
	stat, ok := at.Sys().(*syscall.Stat_t)
	return ok && int64(stat.Uid) == user
}
