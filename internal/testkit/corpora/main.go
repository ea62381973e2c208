// Command corpora adds what fuzzing has found on this machine to the inputs that are kept with each
// fuzz target: those in Go's build cache go to testdata/corpora of the target's package, one file for
// each target, which testkit.Corpus reads. It is run by make corpora.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	module = "switchyard"
	// most bounds a target's file in bytes. The shortest inputs are kept: tests run all of them.
	most = 32 << 10
	// head begins each input.
	head = "go test fuzz v1\n"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "corpora:", err)
		os.Exit(1)
	}
}

func run() error {
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return fmt.Errorf("find the build cache: %w", err)
	}
	root := filepath.Join(strings.TrimSpace(string(cache)), "fuzz", module)
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || !strings.HasPrefix(d.Name(), "Fuzz") {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		target := filepath.Join(filepath.Dir(rel), "testdata", "corpora", d.Name()+".txt")
		if err := keep(path, target); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		return fs.SkipDir
	})
}

// keep adds the inputs of a directory of the cache to a target's file. It leaves out targets that there
// is no file for: they don't exist any more.
func keep(found, target string) error {
	text, err := os.ReadFile(target)
	if errors.Is(err, fs.ErrNotExist) {
		fmt.Printf("%s: left out, there is no such file\n", target)
		return nil
	}
	if err != nil {
		return err
	}
	inputs := split(string(text))
	files, err := os.ReadDir(found)
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(found, f.Name()))
		if err != nil {
			return err
		}
		inputs = append(inputs, split(string(text))...)
	}
	slices.SortFunc(inputs, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	inputs = slices.Compact(inputs)
	var kept strings.Builder
	n := 0
	for ; n < len(inputs) && kept.Len()+len(head)+len(inputs[n]) <= most; n++ {
		kept.WriteString(head)
		kept.WriteString(inputs[n])
	}
	fmt.Printf("%s: %d of %d inputs\n", target, n, len(inputs))
	return os.WriteFile(target, []byte(kept.String()), 0o644)
}

// split returns the inputs of a file without their heads.
func split(text string) []string { return strings.Split(text, head)[1:] }
