package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// component is a part of the binary, and the directory that has its license.
type component struct{ name, version, dir string }

// moduleDirs returns the directories of the modules that the binary is built from, std included.
func moduleDirs(root string) (map[string]string, error) {
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Dir}}{{end}}", "./cmd/switchyard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the modules: %w", err)
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find Go's directory: %w", err)
	}
	dirs := map[string]string{"std": strings.TrimSpace(string(goroot))}
	for line := range strings.Lines(string(out)) {
		if path, dir, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			dirs[path] = dir
		}
	}
	return dirs, nil
}

// licenseFile matches the names of files with the text of a license or a notice.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense)([.-].*)?$`)

// writeTexts writes the licenses and notices of all components, by name.
func writeTexts(file string, all []component) error {
	all = slices.SortedFunc(slices.Values(all), func(a, b component) int { return strings.Compare(a.name, b.name) })
	var text bytes.Buffer
	var faults error
	text.WriteString("Licenses and notices of what is in the binary of Switchyard, beside its own.\n")
	for _, c := range all {
		found, err := licenseTexts(c.dir)
		if err == nil && len(found) == 0 {
			err = errors.New("it has no file with a license")
		}
		if err != nil {
			faults = errors.Join(faults, fmt.Errorf("%s %s: %w", c.name, c.version, err))
			continue
		}
		fmt.Fprintf(&text, "\n%s\n%s %s\n%[1]s\n", strings.Repeat("=", 100), c.name, c.version)
		for _, t := range found {
			fmt.Fprintf(&text, "\n%s\n", bytes.TrimSpace(t))
		}
	}
	if faults != nil {
		return fmt.Errorf("collect the texts of licenses: %w", faults)
	}
	return os.WriteFile(file, text.Bytes(), 0o644) //nolint:gosec // it is to be published
}

// licenseTexts reads the licenses and notices of a directory.
func licenseTexts(dir string) (texts [][]byte, err error) {
	if dir == "" {
		return nil, errors.New("it is not among the modules of the build")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.IsDir() || !licenseFile.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}
