package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

const file = "../../../docs/api.md"

func TestReference_IsCurrent(t *testing.T) {
	t.Parallel()
	want, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(have, want) {
		return
	}
	old, current := strings.Split(string(have), "\n"), strings.Split(string(want), "\n")
	for i := range current {
		if i >= len(old) || old[i] != current[i] {
			t.Fatalf("docs/api.md is not what the API is; run make api. Line %d should be %q", i+1, current[i])
		}
	}
	t.Fatal("docs/api.md is longer than what the API is; run make api")
}

// Every operation and every field of a body is in it, and every link leads somewhere.
func TestReference_IsComplete(t *testing.T) {
	t.Parallel()
	whole, err := reference()
	if err != nil {
		t.Fatal(err)
	}
	text := string(whole)
	for _, line := range []string{
		"### Create an issue\n", "POST /workspaces/{organizationId}/issues\n", "| `title` | **required**, text, 1 to 1,000 characters |",
		"| `labelIds` | list of at most 100 items, each text, 1 to 255 characters, or null |", "### CreatedIssue object\n",
		"DELETE /cluster/nodes/{name}\n", "| 412 Precondition Failed | `PRECONDITION_FAILED` |  |",
		"| 404 Not Found | `NOT_FOUND` | `details`, if there are any: [MissingDetails](#missingdetails-object) |",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("it lacks %q", line)
		}
	}
	anchors := map[string]int{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		anchors[slug(heading[1])]++
	}
	for anchor, n := range anchors {
		if n > 1 {
			t.Errorf("%d headings have the anchor %s", n, anchor)
		}
	}
	for _, link := range regexp.MustCompile(`\(#([^)]*)\)`).FindAllStringSubmatch(text, -1) {
		if anchors[link[1]] == 0 {
			t.Errorf("a link leads to #%s, which no heading has", link[1])
		}
	}
}
