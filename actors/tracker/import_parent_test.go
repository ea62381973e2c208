package tracker

import (
	"fmt"
	"strings"
	"testing"
)

// A chain of parents that comes from its lowest issue on has the same limit as any other.
func TestImport_BoundsChainsOfParentsThatComeLater(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	const team = "01935000-0001-7000-8000-0000000000bb"
	if err := w.line("team", fmt.Sprintf(importedTeam, team, "ENG")); err != nil {
		t.Fatal(err)
	}
	issue := func(n, parent int) error {
		line := fmt.Sprintf(importedIssue, n, team, n, fmt.Sprint("ENG-", n))
		if parent > 0 {
			line = strings.Replace(line, `"title"`, fmt.Sprintf(`"parentId":"01935001-%04x-7000-8000-000000000000","title"`, parent), 1)
		}
		return w.line("issue", line)
	}
	for n := 1; n < maxParentChain; n++ {
		if err := issue(n, n+1); err != nil {
			t.Fatal(n, err)
		}
	}
	wantLineFault(t, issue(maxParentChain, maxParentChain+1), tooDeep) // with a parent that is not there yet
	if err := issue(maxParentChain, 0); err != nil {
		t.Fatal(err)
	}
	w.verify()

	// The issue in the middle of two halves is refused, too.
	const first = maxParentChain + 1
	for n := range maxParentChain / 2 {
		if err := issue(first+n, first+n+1); err != nil {
			t.Fatal(n, err)
		}
	}
	const middle = first + maxParentChain/2
	wantLineFault(t, issue(middle, maxParentChain/2), tooDeep)
	if err := issue(middle, 0); err != nil {
		t.Fatal(err)
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
	w.verify()
}
