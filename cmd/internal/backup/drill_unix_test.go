//go:build unix

package backup_test

import (
	"io/fs"
	"os"
	"syscall"
	"testing"

	"switchyard/cmd/internal/backup"
)

// ownedInfo is a file of a user.
type ownedInfo struct {
	fs.FileInfo
	user uint32
}

func (i ownedInfo) Sys() any { return &syscall.Stat_t{Uid: i.user} }

// The scratch directory of a killed drill has the owner that the file system gives those of this program, which
// need not be its user.
func TestDrill_OwnerIsThatOfItsOwnDirectory(t *testing.T) {
	t.Parallel()
	user := uint32(os.Geteuid())
	for _, row := range []struct {
		at, made fs.FileInfo
		own      bool
	}{
		{ownedInfo{user: user}, ownedInfo{user: user}, true},
		{ownedInfo{user: user + 1}, ownedInfo{user: user}, false},
		{ownedInfo{user: user + 1}, ownedInfo{user: user + 1}, true},
		{ownedInfo{user: user}, ownedInfo{user: user + 1}, false},
		{ownedInfo{user: user}, nil, true},
		{ownedInfo{user: user + 1}, nil, false},
	} {
		if got := backup.IsOwn(row.at, row.made); got != row.own {
			t.Errorf("%+v beside %+v: %t", row.at, row.made, got)
		}
	}
}
