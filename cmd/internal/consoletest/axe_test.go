package consoletest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const axeFolder = "testdata/axe"

// axeSource is axe-core, read once.
var axeSource = sync.OnceValues(func() (string, error) {
	source, err := os.ReadFile(filepath.Join(axeFolder, "axe.min.js"))
	if err != nil {
		return "", fmt.Errorf("read axe-core: %w", err)
	}
	return string(source), nil
})

// violation is a rule of axe-core that a page breaks.
type violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// axe fails the test for each rule of axe-core that the page breaks: WCAG 2.2, A and AA, and axe's own best
// practices. rules, if there are any, are checked alone.
func (v *visitor) axe(what string, rules ...string) {
	v.t.Helper()
	source, err := axeSource()
	if err != nil {
		v.t.Fatal(err)
	}
	only := `{type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}`
	if len(rules) > 0 {
		list, err := json.Marshal(rules)
		if err != nil {
			v.t.Fatal(err)
		}
		only = `{type: "rule", values: ` + string(list) + `}`
	}
	if eval[bool](v, "typeof axe === 'undefined'") {
		eval[bool](v, source+"\n; true")
	}
	run := `(async () => {
		let changed = false;
		const observer = new MutationObserver(() => { changed = true; });
		observer.observe(document, {attributes: true, childList: true, characterData: true, subtree: true});
		const r = await axe.run(document, {resultTypes: ["violations"], preload: false, runOnly: ` + only + `});
		changed ||= observer.takeRecords().length > 0;
		observer.disconnect();
		return {changed, violations: r.violations.map((v) => ({id: v.id, help: v.help, nodes: v.nodes.slice(0, 5).map((n) => ({html: n.html.slice(0, 300), failureSummary: n.failureSummary}))}))};
	})()`
	found := eval[axeResult](v, run)
	// axe takes a page's elements at one moment and their colors at another. A page that has read
	// its content again meanwhile is looked at once more. One that changes at each look, since others
	// work in the workspace, breaks the rules that each look has found broken, at the same place.
	for tries := 1; found.Changed && len(found.Violations) > 0 && tries < axeTries; tries++ {
		v.settles()
		again := eval[axeResult](v, run)
		if again.Changed {
			again.Violations = inBoth(found.Violations, again.Violations)
		}
		found = again
	}
	for _, broken := range found.Violations {
		var nodes strings.Builder
		for _, n := range broken.Nodes {
			fmt.Fprintf(&nodes, "\n  %s\n    %s", n.HTML, strings.ReplaceAll(n.Summary, "\n", "\n    "))
		}
		v.t.Errorf("axe: %s: %s: %s%s", what, broken.ID, broken.Help, nodes.String())
	}
}

// inBoth returns the violations of which both looks have the same element.
func inBoth(a, b []violation) (both []violation) {
	elements := map[[2]string]bool{}
	for _, broken := range a {
		for _, n := range broken.Nodes {
			elements[[2]string{broken.ID, n.HTML}] = true
		}
	}
	for _, broken := range b {
		kept := broken
		kept.Nodes = nil
		for _, n := range broken.Nodes {
			if elements[[2]string{broken.ID, n.HTML}] {
				kept.Nodes = append(kept.Nodes, n)
			}
		}
		if len(kept.Nodes) > 0 {
			both = append(both, kept)
		}
	}
	return both
}

// axeTries is how often axe looks at a page that changes while it does.
const axeTries = 5

// axeResult has what axe found, and whether the page changed meanwhile.
type axeResult struct {
	Changed    bool        `json:"changed"`
	Violations []violation `json:"violations"`
}

// contrastRules are those that depend on colors.
var contrastRules = []string{"color-contrast", "link-in-text-block"}

// accessible checks a page in both color schemes. In the second one only the colors differ.
func (v *visitor) accessible(what string) {
	v.t.Helper()
	v.axe(what)
	v.scheme("dark")
	v.axe(what+", dark", contrastRules...)
	v.scheme("light")
}

// TestAxe_IsAsPublished holds axe-core against the hashes that were noted when it was vendored.
func TestAxe_IsAsPublished(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(axeFolder, "vendor.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vendored struct {
		Files map[string]string `json:"files"`
	}
	if err := json.Unmarshal(raw, &vendored); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(axeFolder)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(vendored.Files)+1 {
		t.Errorf("%d files, and vendor.json names %d", len(entries), len(vendored.Files))
	}
	for name, want := range vendored.Files {
		content, err := os.ReadFile(filepath.Join(axeFolder, name))
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s differs from what was vendored", name)
		}
	}
}
