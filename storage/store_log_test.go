package storage

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The store does not open when a byte of the log is damaged between synced writes: the damage would pass
// for the end of a write that a crash tore, and all writes behind it would be gone. A new store is no
// exception.
func TestOpen_RefusesADamagedLog(t *testing.T) {
	t.Parallel()
	for _, opens := range []int{1, 2} {
		t.Run(fmt.Sprintf("opened %d times", opens), func(t *testing.T) {
			t.Parallel()
			fs := vfs.NewCrashableMem()
			cfg := Config{Dir: "store", FS: fs, CacheBytes: 1 << 20, Logger: quiet}
			s := ok(Open(cfg))(t)
			for range opens - 1 {
				must(t, s.Close())
				s = ok(Open(cfg))(t)
			}
			for n := range 50 {
				must(t, s.Raft().Set(fmt.Appendf(nil, "key %d", n), bytes.Repeat([]byte{1}, 1000), pebble.Sync))
			}
			cfg.FS = fs.CrashClone(vfs.CrashCloneCfg{})
			must(t, s.Close())
			damageLog(t, cfg.FS, "key 20")
			after, err := Open(cfg)
			if err != nil {
				if !strings.Contains(err.Error(), "open the replication log") {
					t.Error(err)
				}
				return
			}
			_, closer, err := after.Raft().Get([]byte("key 49"))
			if err == nil {
				must(t, closer.Close())
			}
			t.Errorf("the store was opened; its last write: %v", err)
			must(t, after.Close())
		})
	}
}

// damageLog changes a byte of the value behind a key in a file of the replication log.
func damageLog(t *testing.T, fs vfs.FS, key string) {
	t.Helper()
	dir := fs.PathJoin("store", raftDir)
	for _, name := range ok(fs.List(dir))(t) {
		f := ok(fs.OpenReadWrite(fs.PathJoin(dir, name), vfs.WriteCategoryUnspecified))(t)
		text := make([]byte, ok(f.Stat())(t).Size())
		_, err := f.ReadAt(text, 0)
		at := bytes.Index(text, []byte(key))
		if err == nil && at >= 0 {
			at += len(key) + 20
			ok(f.WriteAt([]byte{text[at] ^ 1}, int64(at)))(t)
		}
		must(t, f.Close())
		if err == nil && at >= 0 {
			return
		}
	}
	t.Fatalf("no file has %q", key)
}
