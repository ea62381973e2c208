package tracker

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// searchModel answers searches by looking at every issue.
type searchModel struct {
	*issueFixture
	all []*Issue // oldest first
	// restricted are the issues with grants, and whether gus has one.
	restricted map[IssueID]bool
}

var searchVocabulary = []string{"crash", "Crashes", "crashing", "login", "log", "the", "a", "Ünïcode", "unicode", "2026", "v1", "API", "apis", "東京", "signal-box", "under_score", "flies", "fly", "x", "ﬁnal", "한국어", "ＡＰＩ", "ภาษา"}

func drawText(t *rapid.T, label string, most int) string {
	words := rapid.SliceOfN(rapid.SampledFrom(searchVocabulary), 1, most).Draw(t, label)
	return strings.Join(words, rapid.SampledFrom([]string{" ", ", ", " / "}).Draw(t, label+" gap"))
}

func wordsOf(texts ...string) (all []string) {
	for _, t := range texts {
		eachWord(t, func(w []byte) { all = append(all, string(w)) })
	}
	return all
}

func stemsOf(title string) map[string]bool {
	set := map[string]bool{}
	for _, w := range wordsOf(title) {
		if forms := formsOf([]byte(w)); !forms.stop {
			set[string(forms.stem)] = true
		}
	}
	if len(set) == 0 {
		for _, w := range wordsOf(title) {
			set[w] = true
		}
	}
	return set
}

func (m *searchModel) duplicates(title string, hidden TeamID) (want []string) {
	type hit struct {
		id    IssueID
		score float64
		n     int
	}
	var hits []hit
	mine := stemsOf(title)
	for n, t := range m.all {
		if t.Status.Closed() || t.IsDraft || t.TeamID == hidden {
			continue
		}
		theirs, both := stemsOf(t.Title), 0
		for s := range theirs {
			if mine[s] {
				both++
			}
		}
		if s := float64(both) / float64(max(len(mine), len(theirs))); s >= 0.5 {
			hits = append(hits, hit{t.ID, s, n})
		}
	}
	slices.SortFunc(hits, func(a, b hit) int {
		if a.score != b.score {
			return int(math.Copysign(1, b.score-a.score))
		}
		return b.n - a.n
	})
	for _, h := range hits[:min(5, len(hits))] {
		want = append(want, fmt.Sprintf("%s %.4f", h.id, h.score))
	}
	return want
}

func (m *searchModel) search(query string, hidden TeamID) (want []IssueID) {
	for i := len(m.all) - 1; i >= 0; i-- {
		t := m.all[i]
		if t.TeamID == hidden {
			continue
		}
		has := wordsOf(t.Title, text(t.Description), text(t.Identifier))
		if !slices.ContainsFunc(wordsOf(query), func(q string) bool {
			return !slices.ContainsFunc(has, func(w string) bool { return strings.HasPrefix(w, q) })
		}) {
			want = append(want, t.ID)
		}
	}
	return want
}

// similar is BM25 word for word over the issues that somebody sees, with lengths to the
// precision that is stored. Only the issues that counted tells of count in frequencies.
func (m *searchModel) similar(of *Issue, sees, counted func(*Issue) bool) map[IssueID]float64 {
	weights := make([]map[string]int, len(m.all))
	lengths := make([]float64, len(m.all))
	having := map[string]int{}
	n, total := 0.0, 0.0
	for i, t := range m.all {
		weights[i] = map[string]int{}
		length := 0
		for _, part := range []struct {
			text   string
			weight int
		}{{t.Title, 2}, {text(t.Description), 1}} {
			for _, w := range wordsOf(part.text) {
				length += part.weight
				if forms := formsOf([]byte(w)); !forms.stop {
					weights[i][string(forms.stem)] += part.weight
				}
			}
		}
		lengths[i] = lengthOf(lengthByte(length))
		if !counted(t) {
			continue
		}
		n++
		total += float64(searchIndex.Measure(lengthByte(length)))
		for s := range weights[i] {
			having[s]++
		}
	}
	query := map[string]bool{}
	for _, w := range wordsOf(of.Title, text(of.Description)) {
		if forms := formsOf([]byte(w)); !forms.stop {
			query[string(forms.stem)] = true
		}
	}
	average := max(1, total/max(1, n))
	scores := map[IssueID]float64{}
	for i, t := range m.all {
		if t.ID == of.ID || !sees(t) {
			continue
		}
		for s := range query {
			if w := float64(weights[i][s]); w > 0 {
				df := float64(having[s])
				scores[t.ID] += math.Log(1+(n-df+0.5)/(df+0.5)) * w * 2.2 / (w + 1.2*(0.25+0.75*lengths[i]/average))
			}
		}
	}
	return scores
}

// TestSearch_AgreesWithModel changes issues at random, with merges in between, and
// compares duplicates, searches and likeness with what looking at everything gives.
func TestSearch_AgreesWithModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &searchModel{issueFixture: newIssueFixture(t), restricted: map[IssueID]bool{}}
		m.tails = rapid.SampledFrom([]*Tails{m.tails, m.paired(false), m.paired(true), NewTails(0), nil}).Draw(t, "tails")
		m.buffer.Remember(m.tails)
		m.buffer.indexFew = rapid.SampledFrom([]int{1, 20, indexFew}).Draw(t, "few")
		for range rapid.IntRange(5, 60).Draw(t, "steps") {
			who, hidden := &m.ann, TeamID("")
			if rapid.Bool().Draw(t, "guest") {
				who, hidden = &m.gus, m.secret
			}
			switch rapid.IntRange(0, 11).Draw(t, "step") {
			default:
				m.addOne(t, who, hidden)
			case 4, 5, 6:
				m.changeOne(t)
			case 7:
				m.removeOne(t)
			case 8, 10, 11:
				m.index(t)
			case 9:
				m.buffer.Discard() // as after a change of owner
			}
			query := rapid.SampledFrom([]string{"crash", "lo log", "unicode", "東", "co", "core-1", "20 ap", "box signal", "zzz", "!", "f", "fin", "한국", "ภา", "c cr cras crash l lo x a 2 u"}).Draw(t, "query")
			var got []IssueID
			for _, one := range m.list(who, ListIssuesIn{Limit: 100, IssueFilter: IssueFilter{Search: Some(query)}}).Issues {
				got = append(got, one.ID)
			}
			if want := m.search(query, hidden); !slices.Equal(got, want) {
				t.Fatalf("a search for %q finds %v, want %v", query, got, want)
			}
			m.findsByPages(t, who, query, got)
			m.findsSimilar(t)
		}
		m.verify()
		m.indexAll()
		m.verify()
		for _, one := range m.all {
			if rapid.IntRange(0, 3).Draw(t, "restricted") == 0 {
				m.restrict(one.ID, rapid.Bool().Draw(t, "to gus"))
			}
		}
		m.indexAnew() // so that the frequencies are exact
		m.verify()
		for range rapid.IntRange(0, 10).Draw(t, "more") { // which no segment holds
			m.addOne(t, &m.ann, "")
		}
		if len(m.all) == 0 {
			return
		}
		of := rapid.SampledFrom(m.all).Draw(t, "of")
		everything := func(*Issue) bool { return true }
		m.compareSimilar(t, &m.ann, of, everything, everything)
		seen := func(one *Issue) bool {
			listed, is := m.restricted[one.ID]
			return one.TeamID != m.secret && (!is || listed)
		}
		if seen(of) {
			m.compareSimilar(t, &m.gus, of, seen, func(one *Issue) bool {
				_, is := m.restricted[one.ID]
				return one.TeamID != m.secret && !is
			})
		}
	})
}

// findsByPages looks whether pages that end for one reason or another have what a search finds.
func (m *searchModel) findsByPages(t *rapid.T, who *Caller, query string, want []IssueID) {
	if len(prefixWords(query)) == 0 {
		return
	}
	var got []IssueID
	m.eachSearchPage(who, query, rapid.IntRange(1, 5).Draw(t, "limit"), rapid.IntRange(1, 20).Draw(t, "texts"), func(page []Issue) {
		for _, one := range page {
			got = append(got, one.ID)
		}
	})
	if !slices.Equal(got, want) {
		t.Fatalf("pages of a search for %q have %v, want %v", query, got, want)
	}
}

// restrict restricts an issue to gus or to somebody else.
func (m *searchModel) restrict(id IssueID, gus bool) {
	m.grant(id, map[bool]string{true: "gus", false: "nobody"}[gus], GranteeUser)
	m.restricted[id] = gus || m.restricted[id]
}

// findsSimilar looks whether the right issues are found to be similar to one, whatever
// their scores: those depend on frequencies, which count changed issues twice.
func (m *searchModel) findsSimilar(t *rapid.T) {
	if len(m.all) == 0 {
		return
	}
	of := rapid.SampledFrom(m.all).Draw(t, "of")
	reply, err := m.ask(&m.ann, SimilarIssues, &SimilarIssuesIn{ID: string(of.ID), Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	everything := func(*Issue) bool { return true }
	got, want := decode[SimilarList](t, reply.Body).Similar, m.similar(of, everything, everything)
	for _, one := range got {
		if _, is := want[one.Issue.ID]; !is {
			t.Fatalf("issue %s is found to be like %s", one.Issue.ID, of.ID)
		}
	}
	if len(got) != min(len(want), 50) {
		t.Fatalf("%d issues are like %s, want %d", len(got), of.ID, len(want))
	}
}

func (m *searchModel) compareSimilar(t *rapid.T, who *Caller, of *Issue, sees, counted func(*Issue) bool) {
	reply, err := m.ask(who, SimilarIssues, &SimilarIssuesIn{ID: string(of.ID), Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	got, want := decode[SimilarList](t, reply.Body).Similar, m.similar(of, sees, counted)
	if len(got) != min(len(want), 50) {
		t.Fatalf("%s gets %d similar issues, want %d", who.ID, len(got), len(want))
	}
	for i, one := range got {
		if math.Abs(one.Score-want[one.Issue.ID]) > 1e-9 || one.Score <= 0 || i > 0 && one.Score > got[i-1].Score {
			t.Fatalf("for %s issue %s has score %v, want %v", who.ID, one.Issue.ID, one.Score, want[one.Issue.ID])
		}
	}
}

var errCutOff = errors.New("cut off")

// index runs the timers of the index, with changes between their steps, and at times
// cuts them off, as a crash does.
func (m *searchModel) index(t *rapid.T) {
	for _, op := range []*Op{indexSearchOp, mergeSegmentsOp} {
		end := rapid.IntRange(0, 12).Draw(t, "end")
		err := m.flow(op, func(*Op) error {
			if end--; end == 0 {
				return errCutOff
			}
			switch rapid.IntRange(0, 5).Draw(t, "between") {
			case 0:
				m.addOne(t, &m.ann, "")
			case 1:
				m.changeOne(t)
			case 2:
				m.removeOne(t)
			}
			return nil
		})
		if err != nil && !errors.Is(err, errCutOff) {
			t.Fatal(err)
		}
		if err != nil {
			m.buffer.Discard()
		}
	}
}

func (m *searchModel) removeOne(t *rapid.T) {
	if len(m.all) > 0 {
		i := rapid.IntRange(0, len(m.all)-1).Draw(t, "gone")
		m.run(&m.ann, DeleteIssue, &DeleteIssueIn{ID: string(m.all[i].ID)})
		m.all = slices.Delete(m.all, i, i+1)
	}
}

func (m *searchModel) addOne(t *rapid.T, who *Caller, hidden TeamID) {
	in := CreateIssueIn{Title: drawText(t, "title", 5)}
	if rapid.Bool().Draw(t, "described") {
		in.Description = Some(drawText(t, "description", 12))
	}
	if rapid.IntRange(0, 5).Draw(t, "draft") == 0 {
		in.IsDraft = Some(true)
	}
	if hidden == "" && rapid.IntRange(0, 3).Draw(t, "secret") == 0 {
		in.TeamID = Some(m.secret)
	}
	want := m.duplicates(in.Title, hidden)
	made := decode[CreatedIssue](t, m.run(who, CreateIssue, &in).Body)
	var got []string
	for _, d := range made.PossibleDuplicates {
		got = append(got, fmt.Sprintf("%s %.4f", d.ID, d.Score))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%q may be a duplicate of %v, want %v", in.Title, got, want)
	}
	m.all = append(m.all, &made.Issue)
}

func (m *searchModel) changeOne(t *rapid.T) {
	if len(m.all) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.all)-1).Draw(t, "which")
	var p IssuePatch
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 5:
		m.restrict(m.all[i].ID, true)
		if rapid.Bool().Draw(t, "open again") {
			m.ungrant(m.all[i].ID, "gus")
			delete(m.restricted, m.all[i].ID)
		}
		return
	case 0:
		p.Title = Some(drawText(t, "new title", 5))
	case 1:
		p.Description = Some(drawText(t, "new description", 12))
	case 2:
		p.Status = Some(rapid.SampledFrom(issueStatuses[:]).Draw(t, "status"))
	case 3:
		p.IsDraft = Some(rapid.Bool().Draw(t, "draft"))
	case 4:
		p.TeamID = Some(rapid.SampledFrom([]TeamID{m.core, m.web, m.secret}).Draw(t, "team"))
	}
	changed := m.patch(m.all[i].ID, p)
	m.all[i] = &changed
}

// TestPossibleDuplicates_ManyAlike has far more candidates than are shown, most of
// them in the index.
func TestPossibleDuplicates_ManyAlike(t *testing.T) {
	t.Parallel()
	eitherWay(t, func(t *testing.T, w *issueFixture) {
		for i := range 700 {
			w.create(CreateIssueIn{Title: fmt.Sprintf("Car %d waits at the hump", i)})
			if i == 600 {
				w.indexAll()
			}
		}
		made := w.create(CreateIssueIn{Title: "Car 17 waits at the hump"})
		if len(made.PossibleDuplicates) != 5 || made.PossibleDuplicates[0].Title != "Car 17 waits at the hump" || made.PossibleDuplicates[0].Score != 1 ||
			made.PossibleDuplicates[1].Title != "Car 699 waits at the hump" || made.PossibleDuplicates[1].Score != 0.75 {
			t.Errorf("duplicates %+v", made.PossibleDuplicates)
		}
		w.indexAll()
		made = w.create(CreateIssueIn{Title: "Car 9000 waits at the hump"})
		if len(made.PossibleDuplicates) != 5 || made.PossibleDuplicates[0].Title != "Car 17 waits at the hump" || made.PossibleDuplicates[1].Title != "Car 699 waits at the hump" {
			t.Errorf("duplicates %+v", made.PossibleDuplicates)
		}
		_, _, err := w.try(&w.ann, CreateIssue, &CreateIssueIn{Title: "car 17 WAITING at a hump", Dedupe: "block"})
		wantCode(t, err, CodeConflict)
		details, ok := err.(*Error).Details.(DuplicateDetails) //nolint:errorlint // wantCode has seen to it
		if !ok || len(details.PossibleDuplicates) != 5 || details.PossibleDuplicates[0].Score != 1 {
			t.Errorf("details %+v", err)
		}
	})
}

func TestTitleTerms(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ a, b string }{
		{"Crashes on the login page", "crashing login pages"},
		{"To do", "do to"},
		{"🔥🔥", " 🔥🔥 "},
		{"Ｆｕｌｌ ＷＩＤＴＨ ﬁx", "full width fix"},
		{"CAFÉ", "cafe\u0301"},
	} {
		a, b := titleTerms(row.a), titleTerms(row.b)
		if len(a) == 0 || common(a, b) != len(a) || len(a) != len(b) {
			t.Errorf("%q and %q have %d and %d terms, %d in common", row.a, row.b, len(a), len(b), common(a, b))
		}
	}
	if n := len(titleTerms(strings.Repeat("x1 ", 10) + strings.Repeat("y", 200))); n != 2 {
		t.Errorf("%d terms, want 2", n)
	}
}

func TestEachWord(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                              "",
		"CORE-12: can't_do (v1.2)":      "core|12|can|t|do|v1|2",
		"Straße ÉCOLE":                  "strasse|ecole",
		"東京tower":                       "東|京|tower",
		strings.Repeat("a", 100) + " b": strings.Repeat("a", 64) + "|b",
		strings.Repeat("é", 100) + " b": strings.Repeat("e", 64) + "|b",
	} {
		if got := strings.Join(wordsOf(in), "|"); got != want {
			t.Errorf("%q has the words %q, want %q", in, got, want)
		}
	}
}
