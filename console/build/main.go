// Command build bundles the console's sources in console/web into console/dist.
//
// It is run in the module's root: go run ./console/build, or make console. With -check it
// writes nothing, and fails if dist is not what the sources give.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	check := flag.Bool("check", false, "write nothing; fail if dist is stale")
	flag.Parse()
	if err := run("console", *check); err != nil {
		fmt.Fprintln(os.Stderr, "console/build:", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	files, err := bundle(filepath.Join(root, "web"))
	if err != nil {
		return err
	}
	dist := filepath.Join(root, "dist")
	if check {
		return compare(dist, files)
	}
	return write(dist, files)
}

// write replaces the content of a folder.
func write(dist string, files map[string][]byte) error {
	if err := os.RemoveAll(dist); err != nil {
		return fmt.Errorf("remove the old bundle: %w", err)
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dist, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write the bundle: %w", err)
		}
		if err := os.WriteFile(path, files[name], 0o644); err != nil {
			return fmt.Errorf("write the bundle: %w", err)
		}
		fmt.Printf("%9d  %s\n", len(files[name]), name)
		total += len(files[name])
	}
	fmt.Printf("%9d  bytes in all\n", total)
	return nil
}

// compare returns an error that names the files of a folder which differ from a bundle.
func compare(dist string, files map[string][]byte) error {
	var differ []error
	seen := map[string]bool{}
	err := filepath.WalkDir(dist, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dist, path)
		if err != nil {
			return fmt.Errorf("compare the bundle: %w", err)
		}
		name = filepath.ToSlash(name)
		body, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("compare the bundle: %w", err)
		}
		seen[name] = true
		if want, known := files[name]; !known || !bytes.Equal(want, body) {
			differ = append(differ, fmt.Errorf("%s is stale", name))
		}
		return nil
	})
	for name := range files {
		if !seen[name] {
			differ = append(differ, fmt.Errorf("%s is missing", name))
		}
	}
	if err = errors.Join(append(differ, err)...); err != nil {
		return fmt.Errorf("dist is not what the sources give, run make console: %w", err)
	}
	return nil
}
