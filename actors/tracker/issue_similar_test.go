package tracker

import (
	"fmt"
	"strings"
	"testing"
)

// A member's list of similar issues, scores included, stays the same to the byte when
// issues that the member can't see are made or changed.
func TestSimilarIssues_HiddenIssuesChangeNothing(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	mel := w.somebody(ActorUser, "mel", w.web)
	one := w.create(CreateIssueIn{Title: "zanzibar ferry timetable"})
	w.create(CreateIssueIn{Title: "zanzibar port"})
	w.create(CreateIssueIn{Title: "ferry tickets", IssueFields: IssueFields{Description: Some("the timetable of zanzibars")}})
	listed := w.create(CreateIssueIn{Title: "zanzibar fares"})
	w.grant(listed.ID, string(w.web), GranteeTeam) // mel is in the team
	for i := range 20 {
		w.create(CreateIssueIn{Title: fmt.Sprintf("signal box %d", i)})
	}
	w.indexAll()
	similar := func() string {
		t.Helper()
		reply, err := w.ask(mel, SimilarIssues, &SimilarIssuesIn{ID: string(one.ID)})
		if err != nil {
			t.Fatal(err)
		}
		return string(reply.Body)
	}
	before := similar()
	if n := len(decode[SimilarList](t, []byte(before)).Similar); n != 3 {
		t.Fatalf("%d issues are similar: %s", n, before)
	}
	same := func(when string) {
		t.Helper()
		if got := similar(); got != before {
			t.Errorf("%s:\n%s\nwas\n%s", when, got, before)
		}
	}
	var restricted, private []IssueID
	for i := range 3 {
		hidden := w.create(CreateIssueIn{Title: "zanzibar raid", IssueFields: IssueFields{IsDraft: Some(i == 2)}})
		w.grant(hidden.ID, "sue", GranteeUser)
		restricted = append(restricted, hidden.ID)
		// The form of the word that it adds has a list of its own.
		hidden = w.create(CreateIssueIn{Title: "zanzibaring", IssueFields: IssueFields{TeamID: Some(w.secret), Description: Some("ferry ferry ferry")}})
		private = append(private, hidden.ID)
	}
	same("before the index has the hidden issues")
	w.indexAll()
	same("with hidden issues")
	for _, id := range []IssueID{restricted[0], private[0]} {
		w.patch(id, IssuePatch{Title: Some("timetable of the raid")})
		same("with another title, not yet in the index")
		w.indexAll()
		same("with another title")
	}
	for _, id := range []IssueID{restricted[1], private[1]} {
		w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(id)})
		same("after a deletion that the index does not know")
		w.indexAll()
		same("after a deletion")
	}
	if admins, err := w.ask(&w.ann, SimilarIssues, &SimilarIssuesIn{ID: string(one.ID)}); err != nil || string(admins.Body) == before {
		t.Errorf("an admin sees no more: %s, %v", admins.Body, err)
	}
}

// Which words of a long text count, and how far they are looked up, does not depend
// on hidden issues either.
func TestSimilarIssues_HiddenIssuesChooseNoWords(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	mel := w.somebody(ActorUser, "mel")
	text := ""
	for i := range similarWords + 10 {
		text += fmt.Sprintf("w%d ", i)
	}
	one := w.create(CreateIssueIn{Title: "a", IssueFields: IssueFields{Description: Some(text)}})
	for i := range similarWords + 10 {
		for range 1 + 3*min(1, i%4) { // every fourth word is rarer than the others
			w.create(CreateIssueIn{Title: fmt.Sprintf("w%d", i)})
		}
	}
	w.indexAll()
	ask := func() string {
		t.Helper()
		reply, err := w.ask(mel, SimilarIssues, &SimilarIssuesIn{ID: string(one.ID), Limit: 50})
		if err != nil {
			t.Fatal(err)
		}
		return string(reply.Body)
	}
	before := ask()
	for i := range 200 { // more than a block of postings
		hidden := w.create(CreateIssueIn{Title: fmt.Sprintf("raid %d", i), IssueFields: IssueFields{Description: Some("w0 w1 w2")}})
		w.grant(hidden.ID, "sue", GranteeUser)
	}
	w.indexAll()
	if got := ask(); got != before {
		t.Errorf("with hidden issues:\n%s\nwas\n%s", got, before)
	}
}

// An answer ends with the issue that takes it over its bound.
func TestSimilarIssues_LargeOnes(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	one := w.create(CreateIssueIn{Title: "zanzibar ferry"})
	const most = maxWholeBytes/(6*maxDescription) + 1
	long := strings.Repeat("\x01", maxDescription) // six bytes each in JSON
	for range most + 2 {
		w.create(CreateIssueIn{Title: "zanzibar", IssueFields: IssueFields{Description: Some(long)}})
	}
	reply, err := w.ask(&w.ann, SimilarIssues, &SimilarIssuesIn{ID: string(one.ID), Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(decode[SimilarList](t, reply.Body).Similar); got != most {
		t.Errorf("%d issues, want %d", got, most)
	}
}
