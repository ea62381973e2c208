package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func detected(name string, ids ...string) cdx.Component {
	var found cdx.Licenses
	for _, id := range ids {
		found = append(found, (*licensed(id))[0])
	}
	return cdx.Component{Name: name, Evidence: &cdx.Evidence{Licenses: &found}}
}

func TestSetLicenses(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		component cdx.Component
		want      string // "": refused
	}{
		{detected("example.com/a", "MIT"), "MIT"},
		{detected("example.com/a", "GPL-3.0-only"), ""},
		{detected("example.com/a", "MIT", "Apache-2.0"), ""},
		{detected("example.com/a"), ""},
		{cdx.Component{Name: "example.com/a"}, ""},
		{detected("golang.org/x/text", "BSD-Source-Code"), "BSD-3-Clause"},
		{detected("std"), "BSD-3-Clause"},
		{detected("stdlib"), ""},
	} {
		err := setLicenses([]cdx.Component{row.component})
		if (err == nil) != (row.want != "") {
			t.Errorf("%s: %v", row.component.Name, err)
		}
		components := []cdx.Component{row.component}
		if _ = setLicenses(components); row.want != "" && (*components[0].Licenses)[0].License.ID != row.want {
			t.Errorf("%s: %v", row.component.Name, components[0].Licenses)
		}
	}
}

func TestWriteTexts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"LICENSE": "The license", "NOTICE.txt": "A notice", "license.go": "package x", "README.md": "Read"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "texts")
	if err := writeTexts(file, []component{{"b", "v1", dir}, {"a", "v2", dir}}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(text); strings.Index(s, "a v2") > strings.Index(s, "b v1") || strings.Count(s, "The license") != 2 || strings.Count(s, "A notice") != 2 || strings.Contains(s, "package") {
		t.Errorf("%s", s)
	}
	for _, c := range []component{{"empty", "v1", t.TempDir()}, {"unknown", "v1", ""}, {"gone", "v1", filepath.Join(dir, "none")}} {
		if err := writeTexts(file, []component{c}); err == nil || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
