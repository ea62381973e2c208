package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// After a change of the pages they are bundled anew: the service serves dist alone.
func TestBundle_IsThatOfTheSources(t *testing.T) {
	t.Parallel()
	files, err := bundle("../web")
	if err != nil {
		t.Fatal(err)
	}
	if err := compare("../dist", files); err != nil {
		t.Error(err)
	}
}

// The console has a budget: what a browser loads of it, all pages together, compressed.
func TestBundle_IsSmall(t *testing.T) {
	t.Parallel()
	const most = 200 << 10
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	total := 0
	eachFile(t, "../dist/app", func(name string, body []byte) {
		if name != "licenses.txt" {
			total += len(w.EncodeAll(body, nil))
		}
		for _, elsewhere := range []string{"https://cdn", "googleapis", "gstatic", "unpkg.com", "jsdelivr"} {
			if strings.Contains(string(body), elsewhere) {
				t.Errorf("%s names %s: the console loads nothing from elsewhere", name, elsewhere)
			}
		}
	})
	if total > most {
		t.Errorf("the console has %d bytes compressed, %d are allowed", total, most)
	}
	t.Logf("%d bytes compressed", total)
}

// The files from npm are those that its registry has under that name and version.
func TestVendor_IsAsItWasTaken(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../web/vendor/vendor.json")
	if err != nil {
		t.Fatal(err)
	}
	var vendor struct {
		Packages []struct {
			Name, Version, License, Integrity string
			Files                             map[string]string
		}
	}
	if err := json.Unmarshal(text, &vendor); err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for _, p := range vendor.Packages {
		if p.Version == "" || p.License == "" || !strings.HasPrefix(p.Integrity, "sha512-") || p.Files["LICENSE"] == "" {
			t.Errorf("%s: want version, license, integrity and the license's text", p.Name)
		}
		for file, sum := range p.Files {
			known[p.Name+"/"+file] = sum
		}
	}
	eachFile(t, "../web/vendor", func(name string, body []byte) {
		if name == "vendor.json" {
			return
		}
		sum := sha256.Sum256(body)
		if got := hex.EncodeToString(sum[:]); known[name] != got {
			t.Errorf("%s has the SHA-256 %s, vendor.json has %q", name, got, known[name])
		}
		delete(known, name)
	})
	for name := range known {
		t.Errorf("%s is missing", name)
	}
}

// eachFile calls fn for every file below a folder, with its slash-separated name.
func eachFile(t *testing.T, folder string, fn func(name string, body []byte)) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		fn(filepath.ToSlash(name), body)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
