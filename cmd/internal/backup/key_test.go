package backup_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"switchyard/cmd/internal/backup"
)

// newKey makes a key.
func newKey(t *testing.T) *backup.Key {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if err := backup.NewKey(file); err != nil {
		t.Fatal(err)
	}
	key, err := backup.ReadKey(file)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sealed(dir string, key *backup.Key) *backup.Archive {
	return backup.NewArchive(backup.InDir(dir), key)
}

// refusesAll expects a drill and a restore to fail, and to leave nothing.
func refusesAll(t *testing.T, from *backup.Archive, says string) {
	t.Helper()
	_, err := backup.Drill(t.Context(), backup.Drilling{From: from, Now: time.Now})
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("drill: %v, want %q", err, says)
	}
	data := filepath.Join(t.TempDir(), "data")
	_, err = backup.Restore(t.Context(), backup.Restoring{From: from, Data: data, Now: time.Now})
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("restore: %v, want %q", err, says)
	}
	if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory was left: %v", err)
	}
}

func TestKey_NothingIsReadableWithoutIt(t *testing.T) {
	t.Parallel()
	s := startService(t, 2)
	dir, open, key := filepath.Join(t.TempDir(), "backups"), filepath.Join(t.TempDir(), "open"), newKey(t)
	first, _ := s.takeTo(sealed(dir, key), 0)
	s.take(open, 0)
	m, err := sealed(dir, key).Open(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{"secret-society", "Secret Society", "nobody may read", s.workspace, m.ClusterID, "fingerprint"}
	for i := range m.Files {
		secrets = append(secrets, m.Files[i].SHA256)
	}
	files := tree(t, dir)
	if len(files) != 3+2 {
		t.Errorf("there are %q", slices.Collect(maps.Keys(files)))
	}
	for name, text := range files {
		for _, secret := range secrets {
			if strings.Contains(name+text, secret) {
				t.Errorf("%s shows %q", name, secret)
			}
		}
		if name != "lock" && !strings.HasPrefix(text, "age-encryption.org/v1\n") {
			t.Errorf("%s is not encrypted", name)
		}
	}
	if shown := strings.Join(slices.Collect(maps.Values(tree(t, open))), ""); !strings.Contains(shown, m.ClusterID) {
		t.Error("the test does not see what is not encrypted")
	}
	if _, err := backup.Drill(t.Context(), backup.Drilling{From: sealed(dir, key), Now: time.Now}); err != nil {
		t.Error(err)
	}

	refusesAll(t, sealed(dir, newKey(t)), "encrypted with another key")
	refusesAll(t, plain(dir), "give its key with --key-file")
	refusesAll(t, sealed(open, key), "is not encrypted")

	// Unchanged shards share their files, under one key only.
	if _, unchanged := s.takeTo(sealed(dir, key), 0); unchanged < 1 { // that without a workspace
		t.Errorf("%d of 3 shards were unchanged", unchanged)
	}
	if _, unchanged := s.takeTo(sealed(dir, newKey(t)), 0); unchanged != 0 {
		t.Errorf("%d files of another key were used again", unchanged)
	}
	if _, err := backup.Drill(t.Context(), backup.Drilling{From: sealed(dir, key), Backup: first, Now: time.Now}); err != nil {
		t.Errorf("after a backup with another key: %v", err)
	}
}

func TestKey_ProvesEveryByte(t *testing.T) {
	t.Parallel()
	s := startService(t, 2)
	good, key := filepath.Join(t.TempDir(), "backups"), newKey(t)
	name, _ := s.takeTo(sealed(good, key), 0)
	shards, err := filepath.Glob(filepath.Join(good, "shards", "*.shard.age"))
	if err != nil || len(shards) != 3 {
		t.Fatalf("%q, %v", shards, err)
	}
	shard, other := "shards/"+filepath.Base(shards[0]), "shards/"+filepath.Base(shards[1])
	flips := func(at func(n int) int) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			edit(t, filepath.Join(dir, shard), func(b []byte) []byte { b[at(len(b))] ^= 1; return b })
		}
	}
	onShard := func(change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			edit(t, filepath.Join(dir, shard), change)
		}
	}
	onManifest := func(change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			edit(t, filepath.Join(dir, name), change)
		}
	}
	// sealAgain is content of the same size that somebody else has encrypted.
	sealAgain := func(was []byte) []byte {
		other, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		w, err := age.Encrypt(&out, other.Recipient())
		if err != nil {
			t.Fatal(err)
		}
		overhead := out.Len() + 16 + 16
		if _, err := w.Write(make([]byte, max(1, len(was)-overhead))); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return append(out.Bytes(), make([]byte, max(0, len(was)-out.Len()))...)[:len(was)]
	}
	for what, c := range map[string]struct {
		change func(*testing.T, string)
		says   string
	}{
		"the first byte":         {flips(func(int) int { return 0 }), "damaged"},
		"the key's stanza":       {flips(func(int) int { return 40 }), "damaged"},
		"the header's sum":       {flips(func(int) int { return 175 }), "damaged"},
		"a byte":                 {flips(func(n int) int { return n / 2 }), "damaged"},
		"the last byte":          {flips(func(n int) int { return n - 1 }), "damaged"},
		"the file is cut":        {onShard(func(b []byte) []byte { return b[:len(b)-1] }), "bytes of"},
		"the file goes on":       {onShard(func(b []byte) []byte { return append(b, 0) }), "bytes of"},
		"another file":           {onShard(sealAgain), "another key"},
		"the manifest":           {onManifest(func(b []byte) []byte { b[len(b)/2] ^= 1; return b }), "decrypt"},
		"a cut manifest":         {onManifest(func(b []byte) []byte { return b[:len(b)-5] }), "read the manifest"},
		"an empty manifest":      {onManifest(func([]byte) []byte { return nil }), "read the manifest"},
		"no manifest of the key": {onManifest(sealAgain), "another key"},
		"swapped files": {func(t *testing.T, dir string) {
			t.Helper()
			a, b := filepath.Join(dir, shard), filepath.Join(dir, other)
			if err := errors.Join(os.Rename(a, a+".x"), os.Rename(b, a), os.Rename(a+".x", b)); err != nil {
				t.Fatal(err)
			}
		}, "damaged"},
		"a missing file": {func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Remove(filepath.Join(dir, shard)); err != nil {
				t.Fatal(err)
			}
		}, "missing"},
		"another moment": {func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Rename(filepath.Join(dir, name), filepath.Join(dir, "backup-20300101T000000.000Z.json.age")); err != nil {
				t.Fatal(err)
			}
		}, "not of the moment"},
		"a manifest that is not encrypted": {func(t *testing.T, dir string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, "backup-20300101T000000.000Z.json"), []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "is not encrypted"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := copyOf(t, good)
			c.change(t, dir)
			refusesAll(t, sealed(dir, key), c.says)
		})
	}
}

func TestKey_FilesOfKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	if err := backup.NewKey(file); err != nil {
		t.Fatal(err)
	}
	if at, err := os.Stat(file); err != nil || at.Mode().Perm() != 0o600 {
		t.Errorf("others may read the key: %v, %v", at.Mode(), err)
	}
	text := tree(t, dir)["key"]
	if err := backup.NewKey(file); err == nil || tree(t, dir)["key"] != text {
		t.Errorf("a key was overwritten: %v", err)
	}
	if key, err := backup.ReadKey(""); key != nil || err != nil {
		t.Errorf("no key: %v", err)
	}
	secret := "AGE-SECRET-KEY-" + strings.Repeat("Q", 59)
	for name, text := range map[string]string{
		"empty": "", "a comment": "# key\n", "two": text + text, "a recipient": "age1qqqq\n", "damaged": secret + "\n", "huge": strings.Repeat("#\n", 1<<20) + text,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.ReadKey(file); err == nil || !strings.Contains(err.Error(), "read the key") || strings.Contains(err.Error(), "QQQ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := backup.ReadKey(filepath.Join(dir, "absent")); err == nil {
		t.Error("a key that is not there")
	}
}
