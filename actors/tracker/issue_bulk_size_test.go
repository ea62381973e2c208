package tracker

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Every body of plain text is taken, whatever its relations make of the issues: a duplicate
// is written twice, with an event more, and a blocked issue has another event.
func TestCreateIssues_LargeTexts(t *testing.T) {
	t.Parallel()
	const items = 16
	for name, row := range map[string]struct {
		item, text string
		repeat     int
	}{
		"blocked":                {`"relations": [{"type": "blocked_by", "ref": "r"}]`, "x", 0},
		"duplicates":             {`"relations": [{"type": "duplicates", "ref": "r"}]`, "x", 0},
		"both, and a session":    {`"relations": [{"type": "duplicates", "ref": "r"}, {"type": "blocked_by", "ref": "r"}], "dispatch": {"whenReady": true}`, "x", 0},
		"words of an own":        {`"relations": [{"type": "blocked_by", "ref": "r"}, {"type": "duplicates", "ref": "r"}]`, "%d ", 1},
		"a longer form in JSON":  {`"relations": []`, "\u2028", 0},
		"instructions, canceled": {`"relations": [{"type": "duplicates", "ref": "r"}], "dispatch": {"whenReady": true, "agentId": "bot"}`, "é", 0},
	} {
		w := newIssueFixture(t)
		share := maxBulkBody/items - 300
		var in []string
		for i := range items {
			text := strings.Repeat(row.text, min(share/len(row.text), maxDescription-100))
			if row.repeat > 0 {
				var words []byte
				for n := i * 100_000; len(words) < share; n++ {
					words = fmt.Appendf(words, row.text, n)
				}
				text = string(words)
			}
			in = append(in, fmt.Sprintf(`{"title": "Number %d", %s, "description": "`, i, row.item)+text+`"}`)
		}
		body := `{"items": [{"title": "First", "ref": "r"},` + strings.Join(in, ",") + `]}`
		if len(body) > maxBulkBody || len(body) < maxBulkBody*97/100 {
			t.Fatalf("%s: a body of %d bytes", name, len(body))
		}
		first, err := w.tryBulk(&w.ann, "key", body)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		second, err := w.tryBulk(&w.ann, "key", body)
		if err != nil || !second.Replayed || !bytes.Equal(first.Body, second.Body) {
			t.Errorf("%s: a repeat has %d bytes, want %d: %v", name, len(second.Body), len(first.Body), err)
		}
		w.verify()
	}
}

// Issues that are there already are shown whole, and nothing of them is written.
func TestCreateIssues_TooLargeAnswer(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	long := strings.Repeat("\x01", maxDescription) // six bytes each in JSON
	var in []string
	for i := range maxBulkAnswer/(6*maxDescription) + 1 {
		ref := fmt.Sprint(i)
		w.create(CreateIssueIn{IssueFields: IssueFields{ExternalRef: Some(ref), Description: Some(long)}})
		in = append(in, fmt.Sprintf(`{"title": "New", "externalRef": %q}`, ref))
	}
	for _, begin := range []string{`{"items": [`, `{"dryRun": true, "items": [`} {
		_, err := w.tryBulk(&w.ann, "", begin+strings.Join(in, ",")+`]}`)
		wantCode(t, err, CodePayloadTooLarge)
	}
	if out := w.bulk(`{"items": [` + strings.Join(in[1:], ",") + `]}`); len(out.Issues) != len(in)-1 {
		t.Errorf("%d issues, want %d", len(out.Issues), len(in)-1)
	}
	w.verify()
}

// Relations are limited for each issue, and for all items together.
func TestCreateIssues_ManyRelations(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	items := func(n, each int) string {
		var in []string
		for i := range n {
			var list []string
			for j := range each {
				list = append(list, fmt.Sprintf(`{"type": "relates", "ref": "%d"}`, (i+j+1)%n))
			}
			in = append(in, fmt.Sprintf(`{"title": "Number %d", "ref": "%d", "relations": [%s]}`, i, i, strings.Join(list, ",")))
		}
		return `{"items": [` + strings.Join(in, ",") + `]}`
	}
	const n = 500
	most := maxBulkRelations / n
	if testing.Short() {
		most = 11
	}
	out := w.bulk(items(n, most))
	if got := w.relations(&w.ann, *out.Issues[7].ID); len(got) != 2*most {
		t.Errorf("%d relations are listed", len(got))
	}
	_, err := w.tryBulk(&w.ann, "", items(n, maxBulkRelations/n+1))
	wantCode(t, err, CodeBadRequest, fmt.Sprintf("items[%d].relations", maxBulkRelations/(maxBulkRelations/n+1)))

	events := len(w.events())
	old := w.create(CreateIssueIn{Title: "Old"})
	star := func(center string, n int) string {
		in := []string{`{"title": "Center", "ref": "c"}`}
		for i := range n {
			in = append(in, fmt.Sprintf(`{"title": "Number %d", "relations": [{"type": "blocked_by", %s}]}`, i, center))
		}
		return `{"items": [` + strings.Join(in, ",") + `]}`
	}
	for _, center := range []string{`"ref": "c"`, `"issueId": "` + string(old.ID) + `"`} {
		_, err = w.tryBulk(&w.ann, "", star(center, maxRelations+1))
		wantCode(t, err, CodeConflict)
	}
	if got := len(w.events()) - events; got != 1 {
		t.Errorf("%d events of refused requests", got-1)
	}
	w.bulk(star(`"ref": "c"`, maxRelations))
	w.bulk(star(`"issueId": "`+string(old.ID)+`"`, maxRelations-1))
	w.bulk(star(`"issueId": "`+string(old.ID)+`"`, 1))
	_, err = w.tryBulk(&w.ann, "", star(`"issueId": "`+string(old.ID)+`"`, 1))
	wantCode(t, err, CodeConflict)
	if blocked := w.relations(&w.ann, old.ID); !slices.Contains(blocked, "blocks Number 0 backlog") {
		t.Errorf("relations %q", blocked)
	}
	w.verify()
}
