package tracker

import (
	"fmt"
	"strings"
	"testing"
)

// An issue whose id has the time and count of another one, which the owner has made or deleted while the
// import runs, is refused while the index may know that one: it names issues by these parts of their ids.
// Once the index has forgotten a deleted issue, the imported one is found.
func TestImport_RefusesTheTickOfAnotherIssue(t *testing.T) {
	t.Parallel()
	const team = "01935000-0001-7000-8000-0000000000bb"
	for _, deleted := range []bool{false, true} {
		w := newLineImport(t)
		owner, org := w.home.Token.Secret, w.home.Workspace.ID
		w.bufferOf(org.raw()).indexFew = 1
		if err := w.line("team", fmt.Sprintf(importedTeam, team, "ENG")); err != nil {
			t.Fatal(err)
		}
		own := w.issue(owner, org, w.team(owner, org, &CreateTeamIn{Key: "OWN"}).ID)
		same := string(own.ID[:19]) + "8000-000000000000"
		line := strings.Replace(fmt.Sprintf(importedIssue, 1, team, 1, "ENG-1"), "01935001-0001-7000-8000-000000000000", same, 1)
		if !strings.Contains(line, same) {
			t.Fatal(line)
		}
		wantRefused := func(when string) {
			t.Helper()
			if err := w.line("issue", line); err == nil || !strings.Contains(err.Error(), "time and count") {
				t.Errorf("%s: %v", when, err)
			}
		}
		wantRefused("in the tail")
		w.pass(indexSoon)
		wantRefused("in the index")
		if deleted {
			w.must(owner, org, DeleteIssue, &DeleteIssueIn{ID: string(own.ID)})
			wantRefused("deleted")
			w.pass(indexSoon)
			w.pass(indexSoon)
			if err := w.line("issue", line); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.end(); err != nil {
			t.Fatal(err)
		}
		others := w.team(owner, org, &CreateTeamIn{Key: "OTHER"}).ID
		for range 5 { // so many segments that a merge is due
			find := func(word string, want int) {
				t.Helper()
				in := &ListIssuesIn{Limit: 10, IssueFilter: IssueFilter{Search: Some(word)}}
				if found := decode[IssuePage](t, w.must(owner, org, ListIssues, in).Body).Issues; (len(found) > 0) != (want > 0) {
					t.Errorf("deleted %t: %q finds %d issues", deleted, word, len(found))
				}
			}
			if deleted {
				find("eng", 1)
			} else {
				find("own", 1)
				find("eng", 0)
			}
			w.issue(owner, org, others)
			w.pass(indexSoon)
		}
		if _, err := w.do(ServiceRequest("", org.raw()), mergeSegmentsOp, &TimerIn{}); err != nil {
			t.Error(err)
		}
		w.verify()
	}
}

// Issues that come behind a newer one, which the owner makes while the import runs, are found: one that
// comes while the newer one is indexed, and one that comes later.
func TestImport_IndexesIssuesBehindNewerOnes(t *testing.T) {
	t.Parallel()
	const team = "01935000-0001-7000-8000-0000000000bb"
	w := newLineImport(t)
	owner, org := w.home.Token.Secret, w.home.Workspace.ID
	w.bufferOf(org.raw()).indexFew = 1
	line := func(kind, data string) {
		t.Helper()
		if err := w.line(kind, data); err != nil {
			t.Fatal(err)
		}
	}
	line("team", fmt.Sprintf(importedTeam, team, "ENG"))
	w.issue(owner, org, w.team(owner, org, &CreateTeamIn{Key: "OWN"}).ID)
	w.between = func(step int) {
		if step == 2 { // the segment is made, and not yet put into the index
			line("issue", fmt.Sprintf(importedIssue, 1, team, 1, "ENG-1"))
		}
	}
	if _, err := w.do(ServiceRequest("", org.raw()), indexSearchOp, &TimerIn{}); err != nil {
		t.Fatal(err)
	}
	w.between = nil
	line("issue", fmt.Sprintf(importedIssue, 2, team, 2, "ENG-2"))
	finds := func() {
		t.Helper()
		in := &ListIssuesIn{Limit: 10, IssueFilter: IssueFilter{Search: Some("eng")}}
		if found := decode[IssuePage](t, w.must(owner, org, ListIssues, in).Body).Issues; len(found) != 2 {
			t.Errorf("a search finds %d of 2 imported issues", len(found))
		}
	}
	finds()
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	w.pass(indexSoon)
	finds()
	w.verify()
}
