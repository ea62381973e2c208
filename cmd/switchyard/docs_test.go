package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every link between documents leads to a file that is there, and to a heading of it.
func TestDocs_LinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "data" || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(file) != ".md":
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			path, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(path, ":") {
				continue // an address elsewhere
			}
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", file, found[1])
				continue
			}
			if anchor != "" && !headings(t, target)[anchor] {
				t.Errorf("%s links to %s, which has no such heading", file, found[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The names of Go and the targets of make in CONTRIBUTING.md are there.
func TestDocs_ContributingNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".go" {
			return err
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, name := range word.FindAllString(string(source), -1) {
			names[name] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(string(text), -1) {
		name := found[1]
		if target, is := strings.CutPrefix(name, "make "); is {
			target, _, _ = strings.Cut(target, " ")
			if !strings.Contains(string(made), "\n"+target+":") {
				t.Errorf("there is no %s", name)
			}
		} else if camel.MatchString(name) && !names[name] {
			t.Errorf("no Go file has %s", name)
		}
	}
}

var word, camel = regexp.MustCompile(`[A-Za-z_]\w*`), regexp.MustCompile(`^[a-z]+[A-Z]\w*$`)

// Every use of make in the documents names a target and variables of the Makefile. ARGS are flags of the command
// that the target runs.
func TestDocs_UsesOfMake(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	made, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string]string{"run": "serve", "cluster": "local-cluster", "bench": "bench"}
	use, variable := regexp.MustCompile("(?m)(?:`|^\\$ )make ([a-z-]+)([^`#\n]*)|^make ([a-z-]+)((?: [A-Z]+=[^#\n]*)?)(?:  .*)?$"), regexp.MustCompile(`([A-Z]+)=(?:"([^"]*)"|\S*)`)
	found := 0
	err = filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".md" {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, one := range use.FindAllStringSubmatch(string(text), -1) {
			target, variables := one[1]+one[3], one[2]+one[4]
			if !strings.Contains(string(made), "\n"+target+":") {
				t.Errorf("%s: there is no make %s", file, target)
			}
			for _, set := range variable.FindAllStringSubmatch(variables, -1) {
				if !strings.Contains(string(made), "$("+set[1]+")") {
					t.Errorf("%s: make %s knows no %s", file, target, set[1])
				}
				if set[1] != "ARGS" {
					continue
				}
				if _, err := parse(t, append([]string{runs[target]}, strings.Fields(set[2])...)...); err != nil {
					t.Errorf("%s: make %s %s: %v", file, target, set[0], err)
				}
			}
			found++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 20 {
		t.Errorf("%d uses of make", found)
	}
}

// Commands of ours in blocks without a language need a provider, a Kubernetes cluster, or values that only the
// reader has. They are parsed here and not run.
func TestDocs_CommandsThatNeedMore(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	ours := regexp.MustCompile(`^(?:\w+=\S+ )*(?:kubectl .* -- /)?switchyard (.*?)(?: \.\.\.)?$`)
	parsed := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)\n```([^\n]*)\n(.*?)\n```\n").FindAllStringSubmatch(string(text), -1) {
			if block[1] != "" {
				continue
			}
			for line := range strings.Lines(strings.ReplaceAll(block[2], "\\\n", "")) {
				found := ours.FindStringSubmatch(strings.TrimSpace(line))
				if found == nil {
					continue
				}
				if _, err := parse(t, strings.Fields(found[1])...); err != nil {
					t.Errorf("%s: %s: %v", page, line, err)
				}
				parsed++
			}
		}
	}
	if parsed < 4 {
		t.Errorf("%d commands", parsed)
	}
}

// headings returns the anchors of a document's headings.
func headings(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		anchor := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		anchors[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return anchors
}
