package storage

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A directory that a crash left while its data was made is refused, also if nothing else in it was durable yet.
func TestOpen_RefusesDataThatIsBeingMade(t *testing.T) {
	t.Parallel()
	fs := vfs.NewCrashableMem()
	must(t, fs.MkdirAll("data", 0o700))
	must(t, syncDir(fs, ""))
	making := ok(Open(Config{Dir: "data", FS: fs, Making: true, Logger: quiet}))(t)
	after := fs.CrashClone(vfs.CrashCloneCfg{})
	if s, err := Open(Config{Dir: "data", FS: after, Logger: quiet}); err == nil || !strings.Contains(err.Error(), "data is not complete") {
		t.Errorf("the error is %v", err)
		if err == nil {
			must(t, s.Close())
		}
	}
	must(t, making.FlushState())
	must(t, making.Made())
	must(t, ok(Open(Config{Dir: "data", FS: fs.CrashClone(vfs.CrashCloneCfg{}), Logger: quiet}))(t).Close())
	must(t, making.Close())
	must(t, ok(Open(Config{Dir: "data", FS: fs, Logger: quiet}))(t).Close())
}
