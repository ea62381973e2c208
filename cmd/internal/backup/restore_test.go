package backup_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/cmd/internal/backup"
	"switchyard/storage"
)

// damage is a change of a directory of backups with one backup in it.
type damage struct {
	change func(t *testing.T, dir string, m *backup.Manifest)
	says   string
	// drill is set where only a drill can find it.
	drill bool
}

// lie is a manifest that was written anew with a sum that is right.
func lie(says string, change func(m *backup.Manifest)) damage {
	return damage{says: says, change: func(t *testing.T, dir string, m *backup.Manifest) {
		t.Helper()
		change(m)
		m.Sum = ""
		text, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(append(text, '\n'))
		m.Sum = hex.EncodeToString(sum[:])
		if text, err = json.MarshalIndent(m, "", "  "); err != nil {
			t.Fatal(err)
		}
		edit(t, manifestFile(t, dir), func([]byte) []byte { return append(text, '\n') })
	}}
}

func lieOfFile(says string, change func(f *backup.File)) damage {
	return lie(says, func(m *backup.Manifest) { change(&m.Files[1]) })
}

func manifestFile(t *testing.T, dir string) string {
	t.Helper()
	names, err := plain(dir).List(t.Context())
	if err != nil || len(names) != 1 {
		t.Fatalf("there are %q, %v", names, err)
	}
	return filepath.Join(dir, names[0])
}

func onFile(says string, change func(t *testing.T, file string)) damage {
	return damage{says: says, change: func(t *testing.T, dir string, m *backup.Manifest) {
		t.Helper()
		change(t, shardFile(dir, &m.Files[2]))
	}}
}

func onManifest(change func([]byte) []byte) damage {
	return damage{says: "cut off or damaged", change: func(t *testing.T, dir string, _ *backup.Manifest) {
		t.Helper()
		edit(t, manifestFile(t, dir), change)
	}}
}

func flip(at func(n int) int) func(t *testing.T, file string) {
	return func(t *testing.T, file string) {
		t.Helper()
		edit(t, file, func(b []byte) []byte { b[at(len(b))] ^= 1; return b })
	}
}

const cantBe = "can't be"

var damages = map[string]damage{
	"a file is missing": onFile("missing or damaged", func(t *testing.T, file string) {
		t.Helper()
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}),
	"a file is a directory": onFile("missing or damaged", func(t *testing.T, file string) {
		t.Helper()
		if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
			t.Fatal(err)
		}
	}),
	"a file is empty": onFile("0 bytes of", func(t *testing.T, file string) {
		t.Helper()
		edit(t, file, func([]byte) []byte { return nil })
	}),
	"a file is cut": onFile("bytes of", func(t *testing.T, file string) {
		t.Helper()
		edit(t, file, func(b []byte) []byte { return b[:len(b)-1] })
	}),
	"a file is longer": onFile("bytes of", func(t *testing.T, file string) {
		t.Helper()
		edit(t, file, func(b []byte) []byte { return append(b, 0) })
	}),
	"the first byte is damaged":    onFile("damaged", flip(func(int) int { return 0 })),
	"a byte is damaged":            onFile("damaged", flip(func(n int) int { return n / 2 })),
	"the last byte is damaged":     onFile("damaged", flip(func(n int) int { return n - 1 })),
	"the manifest is empty":        onManifest(func([]byte) []byte { return nil }),
	"the manifest is cut":          onManifest(func(b []byte) []byte { return b[:len(b)-2] }),
	"the manifest goes on":         onManifest(func(b []byte) []byte { return append(b, '\n') }),
	"the manifest has other words": onManifest(func(b []byte) []byte { return bytes.Replace(b, []byte("{"), []byte(`{"more": 1,`), 1) }),
	"the manifest is huge": {says: "too large", change: func(t *testing.T, dir string, _ *backup.Manifest) {
		t.Helper()
		if err := os.Truncate(manifestFile(t, dir), 64<<20+1); err != nil {
			t.Fatal(err)
		}
	}},
	"files are swapped": {says: "bytes of", change: func(t *testing.T, dir string, m *backup.Manifest) {
		t.Helper()
		a, b := shardFile(dir, &m.Files[1]), shardFile(dir, &m.Files[2])
		if err := errors.Join(os.Rename(a, a+".x"), os.Rename(b, a), os.Rename(a+".x", b)); err != nil {
			t.Fatal(err)
		}
	}},
	"the manifest has another name": {says: "is not of the moment", change: func(t *testing.T, dir string, _ *backup.Manifest) {
		t.Helper()
		if err := os.Rename(manifestFile(t, dir), filepath.Join(dir, "backup-20300101T000000.000Z.json")); err != nil {
			t.Fatal(err)
		}
	}},
	"there is no manifest": {says: "no complete backup", change: func(t *testing.T, dir string, _ *backup.Manifest) {
		t.Helper()
		if err := os.Remove(manifestFile(t, dir)); err != nil {
			t.Fatal(err)
		}
	}},

	"no shards":             lie("0 shards", func(m *backup.Manifest) { m.Shards = 0 }),
	"fewer shards than one": lie("shards", func(m *backup.Manifest) { m.Shards = -1 }),
	"more shards":           lie("shards", func(m *backup.Manifest) { m.Shards = 1 << 40 }),
	"fewer files":           lie("2 files of 2 shards", func(m *backup.Manifest) { m.Files = m.Files[:2] }),
	"other order":           lie(cantBe, func(m *backup.Manifest) { m.Files[0], m.Files[1] = m.Files[1], m.Files[0] }),
	"a shard twice":         lie(cantBe, func(m *backup.Manifest) { m.Files[2] = m.Files[1] }),
	"not complete":          lie("sum is wrong", func(m *backup.Manifest) { m.Complete = false }),
	"version 0":             lie("sum is wrong", func(m *backup.Manifest) { m.Version = 0 }),
	"a newer version":       lie("of version 3", func(m *backup.Manifest) { m.Version = 3 }),
	"a newer format":        lie("of data in format 4", func(m *backup.Manifest) { m.Format = storage.FormatNewest + 1 }),
	"no cluster":            lie("no cluster", func(m *backup.Manifest) { m.ClusterID = "" }),
	"another moment":        lie("is not of the moment", func(m *backup.Manifest) { m.Moment = m.Moment.Add(time.Hour) }),
	"the file of another shard": lie("not 2", func(m *backup.Manifest) {
		m.Files[2].SHA256, m.Files[2].Bytes = m.Files[1].SHA256, m.Files[1].Bytes
	}),
	"another shard's number": lieOfFile(cantBe, func(f *backup.File) { f.Shard = 3 }),
	"a path above":           lieOfFile(cantBe, func(f *backup.File) { f.SHA256 = strings.Repeat("../", 21) + "x" }),
	"a path from the root":   lieOfFile(cantBe, func(f *backup.File) { f.SHA256 = "/etc/passwd" }),
	"no sum":                 lieOfFile(cantBe, func(f *backup.File) { f.SHA256 = "" }),
	"a sum in capitals":      lieOfFile(cantBe, func(f *backup.File) { f.SHA256 = strings.ToUpper(f.SHA256) }),
	"no bytes":               lieOfFile(cantBe, func(f *backup.File) { f.Bytes = 0 }),
	"fewer bytes than none":  lieOfFile(cantBe, func(f *backup.File) { f.Bytes = -1 }),
	"a huge file":            lieOfFile("bytes of", func(f *backup.File) { f.Bytes = 1 << 62 }),
	"no index":               lieOfFile(cantBe, func(f *backup.File) { f.Index = 0 }),
	"another index":          lieOfFile("its rows are at entry", func(f *backup.File) { f.Index++ }),
	"no epoch":               lieOfFile(cantBe, func(f *backup.File) { f.Epoch = 0 }),
	"another epoch":          lieOfFile("its rows are at entry", func(f *backup.File) { f.Epoch++ }),
	"other rows":             {lieOfFile("", func(f *backup.File) { f.Rows++ }).change, "fingerprint", true},
	"another fingerprint": {lieOfFile("", func(f *backup.File) {
		f.Fingerprint = strings.Repeat("0", 32) + f.Fingerprint[32:]
	}).change, "fingerprint", true},
}

// A backup with any fault is refused, and nothing is left of the try.
func TestRestore_RefusesWhatIsDamaged(t *testing.T) {
	t.Parallel()
	s := startService(t, 2)
	good := filepath.Join(t.TempDir(), "backups")
	s.take(good, 0)
	for name, d := range damages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copyOf(t, good)
			m, err := plain(dir).Open(t.Context(), filepath.Base(manifestFile(t, dir)))
			if err != nil {
				t.Fatal(err)
			}
			d.change(t, dir, m)
			before := len(tree(t, dir))
			refused := func(what string, err error) {
				t.Helper()
				if err == nil || !strings.Contains(err.Error(), d.says) {
					t.Errorf("%s: %v, want %q", what, err, d.says)
				}
			}
			_, err = backup.Drill(t.Context(), backup.Drilling{From: plain(dir), Now: time.Now})
			refused("drill", err)
			if n := len(tree(t, dir)); n != before {
				t.Errorf("the drill left %d files of %d", n, before)
			}
			if d.drill {
				return
			}
			absent, empty := filepath.Join(t.TempDir(), "absent"), t.TempDir()
			for _, data := range []string{absent, empty} {
				_, err = backup.Restore(t.Context(), backup.Restoring{From: plain(dir), Data: data, Now: time.Now})
				refused("restore", err)
			}
			if _, err := os.Stat(absent); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the directory was left: %v", err)
			}
			if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
				t.Errorf("%v was left, %v", left, err)
			}
		})
	}
}

func TestRestore_TakesOnlyNamesInTheDirectory(t *testing.T) {
	t.Parallel()
	s := startService(t, 1)
	root := t.TempDir()
	dir := filepath.Join(root, "backups")
	name, _ := s.take(dir, 0)
	if err := os.Rename(filepath.Join(dir, name), filepath.Join(root, name)); err != nil {
		t.Fatal(err)
	}
	for _, asked := range []string{"../" + name, filepath.Join(root, name), "shards/../../" + name, "lock", ".", "..", "/", name} {
		data := filepath.Join(t.TempDir(), "data")
		if _, err := backup.Restore(t.Context(), backup.Restoring{From: plain(dir), Backup: asked, Data: data, Now: time.Now}); err == nil {
			t.Errorf("%q was restored", asked)
		}
		if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: the directory was left: %v", asked, err)
		}
	}
}

// A directory with files keeps them: nothing is restored into it, and nothing removed.
func TestRestore_LeavesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	s := startService(t, 1)
	dir := filepath.Join(t.TempDir(), "backups")
	s.take(dir, 0)
	data := t.TempDir()
	if err := os.WriteFile(filepath.Join(data, "mine"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(t.Context(), backup.Restoring{From: plain(dir), Data: data, Now: time.Now}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Error(err)
	}
	if files := tree(t, data); len(files) != 1 || files["mine"] != "mine" {
		t.Errorf("%v is left", files)
	}
	// The root of a new file system may have a directory of its own.
	data = t.TempDir()
	if err := os.Mkdir(filepath.Join(data, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, backupName := range []string{"backup-20300101T000000.000Z.json", ""} {
		_, err := backup.Restore(t.Context(), backup.Restoring{From: plain(dir), Backup: backupName, Data: data, Now: time.Now})
		if (err == nil) != (backupName == "") {
			t.Errorf("%q: %v", backupName, err)
		}
		if _, err := os.Stat(filepath.Join(data, "lost+found")); err != nil {
			t.Error(err)
		}
	}
}

// The directory that a restore leaves when it is killed is refused: it could look like that of a new node.
func TestRestore_KilledIsRefused(t *testing.T) {
	t.Parallel()
	s := startService(t, 2)
	dir := filepath.Join(t.TempDir(), "backups")
	s.take(dir, 0)
	data := filepath.Join(t.TempDir(), "data")
	_, err := backup.Restore(t.Context(), backup.Restoring{From: plain(dir), Data: data, Now: time.Now, Progress: func(int, int) { refusedAsItIs(t, data) }})
	if err != nil {
		t.Fatal(err)
	}
	store, err := storage.Open(storage.Config{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// refusedAsItIs opens a copy of a directory that is being made, as a kill at this moment would leave it.
func refusedAsItIs(t *testing.T, data string) {
	t.Helper()
	left := filepath.Join(t.TempDir(), "left")
	if err := os.CopyFS(left, os.DirFS(data)); err != nil {
		t.Error(err)
		return
	}
	store, err := storage.Open(storage.Config{Dir: left})
	if err == nil {
		err = store.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "is not complete") {
		t.Errorf("the copy was opened: %v", err)
	}
}

// A restore that is stopped leaves nothing either.
func TestRestore_InterruptedLeavesNothing(t *testing.T) {
	t.Parallel()
	s := startService(t, 3)
	dir := filepath.Join(t.TempDir(), "backups")
	s.take(dir, 0)
	for stop := 1; stop < 4; stop++ { // after so many shards
		ctx, cancel := context.WithCancelCause(t.Context())
		asked := errors.New("asked to stop")
		data := filepath.Join(t.TempDir(), "data")
		_, err := backup.Restore(ctx, backup.Restoring{From: plain(dir), Data: data, Now: time.Now, Progress: func(done, _ int) {
			if done == stop {
				cancel(asked)
			}
		}})
		if !errors.Is(err, asked) {
			t.Errorf("stopped after %d shards: %v", stop, err)
		}
		if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("stopped after %d shards: the directory was left: %v", stop, err)
		}
	}
}
