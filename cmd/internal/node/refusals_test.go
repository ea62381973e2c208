package node

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	// refusalRow is a row of the table "When it refuses": the texts of errors, and the remedy.
	refusalRow = regexp.MustCompile("^\\| (`.*?) \\|")
	quotedText = regexp.MustCompile("`([^`]+)`")
	// variableText are the parts of an error's text that differ: verbs in the sources; names, numbers,
	// flags and addresses in the examples.
	variableText = regexp.MustCompile(`%[qsdvw]|"[^"]*"|\b[XY]\b|\bclientAuth\b|\b[0-9][0-9a-zA-Z.]*\b|--[a-z-]*[a-z]|\bs3://`)
)

// TestRefusals_AreQuotedAsTheyAre looks the texts of docs/operations.md's table "When it refuses" up in
// the sources.
func TestRefusals_AreQuotedAsTheyAre(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n## When it refuses\n")
	if !found {
		t.Fatal("the page has no table of refusals")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	literals, seen := literalsOfSources(t), 0
	for line := range strings.Lines(table) {
		row := refusalRow.FindStringSubmatch(line)
		if len(row) < 2 || strings.HasPrefix(row[1], "`/readyz`") {
			continue // an endpoint, and its status
		}
		for _, quoted := range quotedText.FindAllStringSubmatch(row[1], -1) {
			for part := range strings.SplitSeq(quoted[1], "...") {
				part = strings.Trim(variableText.ReplaceAllString(part, "%"), " :%")
				if part == "" {
					continue // a flag or an address
				}
				seen++
				if !strings.Contains(literals, part) {
					t.Errorf("no source has %q of %q", part, quoted[1])
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("%d texts were looked up", seen)
	}
}

// literalsOfSources returns the string literals of all sources but tests, a line each, with a % for
// each variable part.
func literalsOfSources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	root := os.DirFS("../../..")
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(path.Base(name), "."):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		var s scanner.Scanner
		s.Init(token.NewFileSet().AddFile(name, -1, len(text)), text, nil, 0)
		for {
			_, kind, literal := s.Scan()
			if kind == token.EOF {
				return nil
			}
			if kind != token.STRING {
				continue
			}
			if value, err := strconv.Unquote(literal); err == nil {
				all.WriteString(variableText.ReplaceAllString(value, "%") + "\n")
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
