package systemtest

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// modelWords are the words of the test and what their stems are; those without one
// are stop words. Search knows nothing of stems, and folds accents.
var modelWords = map[string]string{
	"crash": "crash", "crashes": "crash", "Crashing": "crash", "login": "login", "logins": "login", "log": "log", "Signal": "signal", "signals": "signal",
	"v1": "v1", "v2": "v2", "v3": "v3", "v4": "v4", "v5": "v5", "v6": "v6", "v7": "v7", "v8": "v8", "v9": "v9", // many words that begin alike
	"box": "box", "boxes": "box", "2026": "2026", "v12": "v12", "the": "", "a": "", "and": "", "naïve": "naiv", "NAIVE": "naiv", "track": "track", "tracks": "track",
}

// manyWords is a text with more words that begin alike than an index is asked for.
var manyWords = func() string {
	var b strings.Builder
	for n := range 1200 {
		fmt.Fprintf(&b, "wide%d ", n)
	}
	return b.String()
}()

// modelText splits a text into words as search does.
func modelText(text string) []string {
	text = strings.NewReplacer("ï", "i").Replace(strings.ToLower(text))
	return strings.FieldsFunc(text, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') })
}

// modelTerms are the significant words of a title, each once.
func modelTerms(text string) map[string]bool {
	terms := map[string]bool{}
	for word := range strings.FieldsSeq(text) {
		if stem := modelWords[strings.Trim(word, ",:")]; stem != "" {
			terms[stem] = true
		}
	}
	return terms
}

// A duplicate is a possible one of a title, and how alike they are.
type duplicate struct {
	ID         string
	Title      string
	Status     string
	Identifier string
	Score      float64
}

// duplicates are the open issues with a title like this one (Decision 19).
func (m *model) duplicates(c *modelCaller, title string) (all []duplicate) {
	terms := modelTerms(title)
	for _, t := range slices.Backward(m.issues) {
		if t.closed() || t.draft() || !m.sees(c, t) {
			continue
		}
		theirs, both := modelTerms(t.text("title")), 0
		for term := range theirs {
			if terms[term] {
				both++
			}
		}
		if score := float64(both) / float64(max(len(terms), len(theirs))); score >= 0.5 {
			all = append(all, duplicate{t.id(), t.text("title"), t.text("status"), t.text("identifier"), score})
		}
	}
	slices.SortStableFunc(all, func(a, b duplicate) int { return cmp.Compare(b.Score, a.Score) })
	return all[:min(5, len(all))]
}

// list is GET /issues, newest first.
func (m *model) list(c *modelCaller, filter url.Values) (all []*modelIssue) {
	for _, t := range slices.Backward(m.issues) {
		if m.sees(c, t) && m.matches(c, filter, t) {
			all = append(all, t)
		}
	}
	return all
}

// matches is Decision 17: every filter that is given has to hold.
func (m *model) matches(c *modelCaller, filter url.Values, t *modelIssue) bool {
	if t.snoozed() && filter.Get("includeSnoozed") != "true" {
		return false
	}
	for name := range filter {
		want, holds := filter.Get(name), true
		is := func(b bool) bool { return b == (want == "true") }
		switch name {
		case "status", "priority", "teamId", "assigneeId", "projectId", "cycleId", "externalRef":
			holds = t.text(name) == want && want != ""
		case "parentId":
			holds = m.parent(c, t) == want && want != ""
		case "labelId":
			holds = slices.Contains(t.labels, want)
		case "identifier":
			holds = slices.ContainsFunc(append(t.former, t.text(name)), func(s string) bool { return strings.EqualFold(s, want) })
		case "hasParent":
			holds = is(m.parent(c, t) != "")
		case "isParent":
			holds = is(len(m.children(c, t)) > 0)
		case "isDraft":
			holds = is(t.draft())
		case "search":
			holds = found(want, t)
		case "view":
			holds = inView(want, c, t)
		}
		if !holds {
			return false
		}
	}
	return true
}

// found: every word begins a word of title, description or identifier.
func found(query string, t *modelIssue) bool {
	words := modelText(t.text("title") + " " + t.text("description") + " " + t.text("identifier"))
	for _, word := range modelText(query) {
		if !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, word) }) {
			return false
		}
	}
	return true
}

func inView(view string, c *modelCaller, t *modelIssue) bool {
	switch status := t.text("status"); view {
	case "active":
		return status == "todo" || status == "in_progress"
	case "backlog", "triage":
		return status == view
	case "completed":
		return t.closed()
	case "mine":
		return t.text("assigneeId") == c.id
	case "unassigned":
		return t.object["assigneeId"] == nil
	}
	return true // all
}

// modelGroup is a group of the analytics; an empty text stands for null.
type modelGroup struct {
	Group         string
	Count         int
	EstimateTotal float64
}

// groups are the issues by a field, drafts left out (Decision 25).
func (m *model) groups(c *modelCaller, by string) []modelGroup {
	sums := map[string]modelGroup{}
	for _, t := range m.issues {
		if t.draft() || !m.sees(c, t) {
			continue
		}
		estimate, _ := t.object["estimate"].(float64)
		g := sums[t.text(by)]
		sums[t.text(by)] = modelGroup{t.text(by), g.Count + 1, g.EstimateTotal + estimate}
	}
	all := []modelGroup{}
	for _, g := range sums {
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b modelGroup) int {
		if a.Count == b.Count && (a.Group == "" || b.Group == "") {
			return cmp.Compare(b.Group, a.Group)
		}
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Group, b.Group))
	})
	return all
}

// modelCycle is when a cycle starts and ends, in days from the day of the test.
type modelCycle struct {
	starts, ends   int
	started, ended bool
}

type modelBurndown struct {
	Total         int
	TotalEstimate float64
	Series        []modelDay
}

type modelDay struct {
	Date             string
	Scope, Remaining int
}

// burndown is that of a cycle all of whose changes were made today.
func (m *model) burndown(c *modelCaller, cycle string, today time.Time) modelBurndown {
	b := modelBurndown{Series: []modelDay{}}
	remaining := 0
	for _, t := range m.issues {
		if t.text("cycleId") != cycle || t.draft() || !m.sees(c, t) {
			continue
		}
		estimate, _ := t.object["estimate"].(float64)
		b.Total, b.TotalEstimate = b.Total+1, b.TotalEstimate+estimate
		if !t.closed() {
			remaining++
		}
	}
	span := m.cycles[cycle]
	first, last := 0, 0
	if span.started {
		first = span.starts
	} else if b.Total == 0 {
		first = 1 // no day ended, or will as things are, with an issue in it
	}
	if span.ended {
		last = min(last, span.ends)
	}
	for day := first; day <= last; day++ {
		entry := modelDay{Date: today.AddDate(0, 0, day).Format(time.DateOnly)}
		if day == 0 {
			entry.Scope, entry.Remaining = b.Total, remaining
		}
		b.Series = append(b.Series, entry)
	}
	return b
}
