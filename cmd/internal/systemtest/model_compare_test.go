package systemtest

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
)

var modelGroupings = []string{"status", "priority", "assigneeId", "teamId", "projectId", "cycleId"}

// modelFilters are the filters of a list.
var modelFilters = []string{
	"teamId", "status", "priority", "parentId", "hasParent", "isParent", "isDraft", "includeSnoozed", "assigneeId", "projectId", "cycleId", "labelId", "search",
	"identifier", "externalRef", "view",
}

// filterValue is something to filter by.
func (run *modelRun) filterValue(name string) string {
	switch name {
	case "teamId":
		return pick(run, append(run.keys, "nothing")...)
	case "status":
		return pick(run, "triage", "backlog", "todo", "in_progress", "done", "canceled")
	case "priority":
		return pick(run, "low", "medium", "high", "urgent")
	case "parentId":
		return run.anID()
	case "hasParent", "isParent", "isDraft", "includeSnoozed":
		return pick(run, "true", "false")
	case "assigneeId":
		who, _ := run.actor().(string)
		return who
	case "projectId":
		return pick(run, "p1", "p2", "Ünïcode & co", "p3")
	case "cycleId":
		return run.cycle()
	case "labelId":
		return pick(run, "red", "green", `<"&>`, "blue")
	case "search":
		return run.query()
	case "identifier":
		if t := run.m.find(run.anID()); t != nil {
			return strings.ToLower(pick(run, append(t.former, t.text("identifier"))...))
		}
		return pick(run, "WEB-1", "DEN-1", "WEB-0", "nothing")
	case "externalRef":
		return pick(run, "ref 1", "ref 2", "ref 3", "ref/4", "ref&5", "ref")
	}
	return pick(run, "all", "active", "backlog", "triage", "completed", "mine", "unassigned")
}

// query is a search for beginnings of words.
func (run *modelRun) query() string {
	var words []string
	for range 1 + run.IntN(3) {
		word := []rune(pick(run, append(slices.Sorted(maps.Keys(modelWords)), "web-1", "den 2", "zzz", "wide7", "wide1199")...))
		words = append(words, string(word[:1+run.IntN(len(word))]))
	}
	return strings.Join(words, pick(run, " ", "-", ", "))
}

// compareOne asks one question at random.
func (run *modelRun) compareOne() {
	c := run.callers[run.IntN(len(run.callers))]
	switch run.IntN(8) {
	case 0:
		run.compareIssue(c, run.anID())
	case 1:
		run.compareGroups(c, pick(run, modelGroupings...))
	case 2:
		run.compareBurndown(c, run.cycle())
	default:
		filter := url.Values{}
		for range run.IntN(5) {
			name := pick(run, modelFilters...)
			filter.Set(name, run.filterValue(name))
		}
		run.compareList(c, filter, run.IntN(6) == 0)
	}
}

// compareAll asks everything there is to ask.
func (run *modelRun) compareAll() {
	for _, c := range run.callers {
		for _, t := range run.m.issues {
			run.compareIssue(c, t.id())
		}
		for _, id := range run.gone[max(0, len(run.gone)-5):] {
			run.compareIssue(c, id)
		}
		for _, name := range modelFilters {
			for range 3 {
				value := run.filterValue(name)
				run.compareList(c, url.Values{name: {value}}, false)
				run.compareList(c, url.Values{name: {value}, "includeSnoozed": {"true"}}, false)
			}
		}
		for _, view := range []string{"all", "active", "backlog", "triage", "completed", "mine", "unassigned"} {
			run.compareList(c, url.Values{"view": {view}}, false)
		}
		run.compareList(c, url.Values{}, false)
		run.compareList(c, url.Values{}, true)
		run.compareList(c, url.Values{"includeSnoozed": {"true"}, "isDraft": {"false"}}, true)
		for _, by := range modelGroupings {
			run.compareGroups(c, by)
		}
		for _, cycle := range append([]string{"c1", "c2"}, slices.Sorted(maps.Keys(run.m.cycles))...) {
			run.compareBurndown(c, cycle)
		}
	}
}

// compareIssue compares an issue and its children.
func (run *modelRun) compareIssue(c *modelCaller, id string) {
	run.Helper()
	t := run.m.seen(c, id)
	answer, below := run.do(c, "GET", "/issues/"+id, nil), run.do(c, "GET", "/issues/"+id+"/children", nil)
	if t == nil {
		if answer.Status != 404 || below.Status != 404 {
			run.fail("%s gets issue %s: %d %s", c.name, id, answer.Status, answer.Body)
		}
		return
	}
	if answer.Status != 200 || below.Status != 200 {
		run.fail("%s gets issue %s: %d %s", c.name, id, answer.Status, answer.Body)
	}
	run.same(c, decodeInto[object](run, answer), t)
	tag := answer.Header.Get("ETag")
	if again := run.do(c, "GET", "/issues/"+id, nil, "If-None-Match", tag); tag != run.m.etag(c, t) || again.Status != 304 {
		run.fail("%s gets issue %s with ETag %s, want %s; for it %d", c.name, id, tag, run.m.etag(c, t), again.Status)
	}
	run.sameAll(c, decodeInto[struct{ Issues []any }](run, below).Issues, run.m.children(c, t))
	run.compareHistory(c, t)
}

// compareHistory compares what is told of an issue's past. Parents that are deleted
// by now are not compared: nobody sees them, and who knows their ids learns nothing.
func (run *modelRun) compareHistory(c *modelCaller, t *modelIssue) {
	run.Helper()
	var got []modelChange
	for cursor := ""; ; {
		page := decodeInto[struct {
			History []struct {
				IssueID, Field, ActorID string
				From, To                any
			}
			NextCursor string
		}](run, run.do(c, "GET", fmt.Sprintf("/issues/%s/history?limit=%d%s", t.id(), pick(run, 1+run.IntN(9), 100), cursor), nil))
		for _, e := range page.History {
			got = append(got, modelChange{field: e.Field, from: e.From, to: e.To, actor: e.ActorID})
		}
		if page.NextCursor == "" {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(page.NextCursor)
	}
	want := run.m.history(c, t)
	for _, all := range [][]modelChange{got, want} {
		for i := range all {
			all[i].write = 0
			for _, value := range []*any{&all[i].from, &all[i].to} {
				if parent, ok := (*value).(string); ok && all[i].field == "parentId" && run.m.find(parent) == nil {
					*value = nil
				}
			}
		}
	}
	if !slices.Equal(got, want) {
		run.fail("%s gets of issue %s the history\n%+v, want\n%+v", c.name, t.id(), got, want)
	}
}

// compareList walks a list or the triage list, by pages of some size.
func (run *modelRun) compareList(c *modelCaller, filter url.Values, triage bool) {
	run.Helper()
	path, want := "/issues?", run.m.list(c, filter)
	if triage {
		path = "/triage?"
		want = slices.DeleteFunc(want, func(t *modelIssue) bool { return t.text("status") != "triage" })
	}
	path += filter.Encode()
	run.log = append(run.log, fmt.Sprintf("%s: GET %s", c.name, path))
	path += fmt.Sprintf("&limit=%d", pick(run, 1+run.IntN(9), 100, 100))
	var all []any
	for cursor := ""; ; {
		answer := run.do(c, "GET", path+cursor, nil)
		if answer.Status != 200 {
			run.fail("%d %s", answer.Status, answer.Body)
		}
		page := decodeInto[struct {
			Issues     []any
			NextCursor string
		}](run, answer)
		if all = append(all, page.Issues...); page.NextCursor == "" {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(page.NextCursor)
	}
	run.sameAll(c, all, want)
	run.log = run.log[:len(run.log)-1]
}

func (run *modelRun) compareGroups(c *modelCaller, by string) {
	run.Helper()
	answer := run.do(c, "GET", "/issue-analytics?groupBy="+by, nil)
	got := decodeInto[struct{ Groups []modelGroup }](run, answer).Groups
	if want := run.m.groups(c, by); answer.Status != 200 || !slices.Equal(got, want) {
		run.fail("%s gets by %s the groups\n%+v, want\n%+v", c.name, by, got, want)
	}
}

func (run *modelRun) compareBurndown(c *modelCaller, cycle string) {
	run.Helper()
	answer := run.do(c, "GET", "/issue-analytics/burndown?cycleId="+url.QueryEscape(cycle), nil)
	if time.Now().UTC().YearDay() != run.began.YearDay() {
		return // the model knows of one day only
	}
	got, want := decodeInto[modelBurndown](run, answer), run.m.burndown(c, cycle, run.began)
	if answer.Status != 200 || !reflect.DeepEqual(got, want) {
		run.fail("%s gets of cycle %s (%+v) the burndown\n%+v, want\n%+v", c.name, cycle, run.m.cycles[cycle], got, want)
	}
}

// compareSimilar compares which issues are alike, once the index has had the second
// that it may take to follow (Decision 20).
func (run *modelRun) compareSimilar() {
	run.Helper()
	terms := func(t *modelIssue) map[string]bool { return modelTerms(t.text("title") + " " + t.text("description")) }
	for _, c := range run.callers {
		for range 5 {
			t := run.m.seen(c, run.anID())
			if t == nil || t.text("description") == manyWords { // of which only some are compared
				continue
			}
			var want, got []string
			for _, other := range run.m.issues {
				shared := func(term string) bool { return terms(other)[term] }
				if other != t && run.m.sees(c, other) && slices.ContainsFunc(slices.Collect(maps.Keys(terms(t))), shared) {
					want = append(want, other.id())
				}
			}
			slices.Sort(want)
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // no client can tell when
				got = run.similar(c, t)
				if len(want) > 50 && len(got) == 50 || slices.Equal(got, want) {
					break
				}
				if time.Now().After(deadline) {
					run.fail("%s gets as similar to %s\n%q, want\n%q", c.name, t.id(), got, want)
				}
			}
		}
	}
}

// similar gives the ids of the similar issues in order, after a look at their scores.
func (run *modelRun) similar(c *modelCaller, t *modelIssue) (ids []string) {
	run.Helper()
	last := 0.0
	for i, one := range decodeInto[struct {
		Similar []struct {
			Issue object
			Score float64
		}
	}](run, run.do(c, "GET", "/issues/"+t.id()+"/similar?limit=50", nil)).Similar {
		if one.Score <= 0 || i > 0 && one.Score > last {
			run.fail("similar to %s: a score of %v behind %v", t.id(), one.Score, last)
		}
		last = one.Score
		id := one.Issue["id"].(string)
		if other := run.m.seen(c, id); other != nil {
			run.same(c, one.Issue, other)
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
