package tracker

import (
	"fmt"
	"strings"
	"testing"
)

// The payload of an imported draft has the rules of a new draft: publishing it checks none of them.
func TestImport_HoldsPayloadsToTheirRules(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	if err := w.line("team", fmt.Sprintf(importedTeam, "01935000-0001-7000-8000-0000000000bb", "ENG")); err != nil {
		t.Fatal(err)
	}
	if err := w.line("issue", fmt.Sprintf(importedIssue, 1, "01935000-0001-7000-8000-0000000000bb", 1, "ENG-1")); err != nil {
		t.Fatal(err)
	}
	made := 0
	draft := func(kind DraftKind, payload string) error {
		made++
		return w.line("draft", fmt.Sprintf(`{"id":"01935003-%04x-7000-8000-000000000000","entityType":"issue","issueId":"01935001-0001-7000-8000-000000000000","kind":%q,"status":"pending","createdById":"ann","createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z","payload":%s}`, made, kind, payload))
	}
	long := func(n int) string { return strings.Repeat("\U0001F600", n) }
	labels := func(n int) string { return `["` + strings.Repeat(`l","`, n-1) + `l"]` }
	for _, row := range []struct {
		kind         DraftKind
		payload, why string
	}{
		{DraftIssueCreate, `{"title":"x","status":"bogus"}`, "data.payload.status must be one of"},
		{DraftIssueCreate, `{"title":"x","priority":"bogus"}`, "data.payload.priority must be one of"},
		{DraftIssueCreate, `{"title":"x","resolution":"bogus"}`, "data.payload.resolution must be one of"},
		{DraftIssueCreate, `{"title":"` + long(1001) + `"}`, "data.payload.title must be at most 1000 characters"},
		{DraftIssueCreate, `{"title":""}`, "data.payload.title must not be empty"},
		{DraftIssueCreate, `{"title":null}`, "data.payload.title is missing"},
		{DraftIssueCreate, `{}`, "data.payload.title is missing"},
		{DraftIssueCreate, `{"title":"x\u0000"}`, "data.payload.title must not have a NUL"},
		{DraftIssueCreate, `{"title":"x","estimate":-1}`, "data.payload.estimate must be a number"},
		{DraftIssueCreate, `{"title":"x","estimate":1e17}`, "data.payload.estimate must be a number"},
		{DraftIssueCreate, `{"title":"x","labelIds":` + labels(101) + `}`, "data.payload.labelIds must have at most 100 items"},
		{DraftIssueCreate, `{"title":"x","labelIds":[""]}`, "data.payload.labelIds[0] must not be empty"},
		{DraftIssueCreate, `{"title":"x","labelIds":["` + long(256) + `"]}`, "data.payload.labelIds[0] must be at most 255 characters"},
		{DraftIssueCreate, `{"title":"x","teamId":"x"}`, "data.payload.teamId must be an id"},
		{DraftIssueUpdate, `{"title":null}`, "data.payload.title must not be null"},
		{DraftIssueUpdate, `{"prState":"bogus"}`, "data.payload.prState must be one of"},
		{DraftIssueUpdate, `{"note":[1e999]}`, "data.payload has a number out of the range"},
		{DraftIssueUpdate, `{"note":-1` + strings.Repeat("0", 309) + `}`, "data.payload has a number out of the range"},
		{DraftIssueUpdate, `null`, "data.payload must be an object"},
		{DraftComment, `{}`, "data.payload.body is missing"},
		{DraftComment, `{"body":"` + long(65537) + `"}`, "data.payload.body must be at most 65536 characters"},
		{DraftIssueCreate, `{"title":"` + long(1000) + `","status":"todo","estimate":3e2,"labelIds":` + labels(100) + `,"cycleId":null,"snoozedUntil":"2026-01-01T00:00:00+99:00","prState":"unused"}`, ""},
		{DraftIssueUpdate, `{"description":null,"isDraft":true,"subIssueSortOrder":-1.5,"body":7,"note":[1e308,1e-999,"1e999"]}`, ""},
		{DraftComment, `{"body":"` + long(65536) + `","title":7}`, ""},
	} {
		switch err := draft(row.kind, row.payload); {
		case row.why != "":
			wantLineFault(t, err, row.why)
		case err != nil:
			t.Errorf("%s with %.60s: %v", row.kind, row.payload, err)
		}
	}
	w.verify()
}
