package systemtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

func pick[T any](run *modelRun, from ...T) T { return from[run.IntN(len(from))] }

// anID is an issue's id, mostly of one that is there.
func (run *modelRun) anID() string {
	switch {
	case run.IntN(40) == 0:
		return pick(run, "01931f6e-7a3c-7def-8123-456789abcdef", "nothing", run.m.workspace)
	case run.IntN(20) == 0 && len(run.gone) > 0:
		return pick(run, run.gone...)
	case len(run.m.issues) == 0:
		return "nothing"
	}
	return pick(run, run.m.issues...).id()
}

func (run *modelRun) actor() any {
	return pick[any](run, nil, "bot", "nobody", run.owner.id, run.callers[2].id, run.callers[3].id)
}

// grantee is whom an issue may be granted to.
func (run *modelRun) grantee() string {
	return pick(run, "bot", "nobody", run.owner.id, run.callers[2].id, run.callers[3].id, run.keys[2], run.keys[4])
}

func (run *modelRun) cycle() string {
	return pick(run, append([]string{"c1", "c2"}, slices.Sorted(maps.Keys(run.m.cycles))...)...)
}

// words is a text of up to so many words, at least one of them significant.
func (run *modelRun) words(most int) string {
	all := slices.Sorted(maps.Keys(modelWords))
	for {
		var words []string
		for range 1 + run.IntN(most) {
			words = append(words, pick(run, all...))
		}
		if text := strings.Join(words, pick(run, " ", ", ", ": ")); len(modelTerms(text)) > 0 {
			return text
		}
	}
}

// body is that of a creation or a change, with any of the fields there are.
func (run *modelRun) body(patch bool) object {
	body := object{}
	often := 4
	if patch {
		often = 9
	}
	may := func(name string, values ...any) {
		if run.IntN(often) == 0 {
			body[name] = pick(run, values...)
		}
	}
	if !patch || run.IntN(5) == 0 {
		body["title"] = run.words(4)
	}
	may("description", nil, run.words(8))
	if run.IntN(100) == 0 {
		body["description"] = manyWords
	}
	may("externalRef", nil, "ref 1", "ref 2", "ref 3", "ref/4", "ref&5")
	if patch && run.IntN(6) == 0 { // closing and opening again
		body["status"] = pick(run, "todo", "done", "canceled")
	}
	may("status", "triage", "backlog", "todo", "in_progress", "done", "canceled")
	may("priority", "low", "medium", "high", "urgent")
	may("resolution", nil, "duplicate", "not_planned", "intended_behavior", "not_reproducible", "obsolete", "resolved")
	may("subIssueSortOrder", nil, -1.5, 0.0, 1e10)
	may("estimate", nil, 0.0, 1.0, 5.0, 8000.0)
	may("isDraft", true, false, false)
	may("snoozedUntil", nil, "2001-02-03T04:05:06.789Z", "2099-01-01T00:00:00.000Z")
	may("assigneeId", run.actor())
	may("projectId", nil, "p1", "p2", "Ünïcode & co")
	may("cycleId", nil, run.cycle())
	may("labelIds", nil, []string{}, []string{"red"}, []string{"red", "green", "red"}, []string{"green", `<"&>`})
	may("repo", nil, "signals/box")
	may("branch", nil, "main")
	may("parentId", nil, nil, run.anID(), run.anID(), run.anID())
	if !patch && run.IntN(2) == 0 { // deep trees, parts of which not everybody sees
		body["parentId"] = run.anID()
	}
	switch run.IntN(4 * often) {
	case 0:
		body["teamKey"] = pick(run, "web", "DEN", "PIT", "CREW", "NONE")
	case 1:
		body["teamId"], body["teamKey"] = run.keys[1], pick(run, "WEB", "WEB", "DEN")
	case 2, 3, 4, 5, 6:
		body["teamId"] = pick(run, append(run.keys, "nothing")...)
	}
	if patch {
		may("prUrl", nil, "https://example.com/pull/1")
		may("prState", nil, "draft", "open", "merged", "closed")
	} else {
		may("templateId", append([]any{"nothing"}, anys(slices.Sorted(maps.Keys(run.m.templates)))...)...)
	}
	return body
}

func anys(texts []string) (all []any) {
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

func (run *modelRun) create(c *modelCaller) {
	body, path, block := run.body(false), "/issues", run.IntN(4) == 0
	if block {
		path += "?dedupe=block"
	}
	run.request(c, "POST", path, body, func() verdict { return run.m.create(c, body, block) })
}

// request does something to the service and the model, and compares the answers.
func (run *modelRun) request(c *modelCaller, method, path string, body any, model func() verdict, headers ...string) {
	run.Helper()
	text, _ := json.Marshal(body)
	run.log = append(run.log, fmt.Sprintf("%s: %s %s %.500s %s", c.name, method, path, text, headers))
	answer, want := run.do(c, method, path, body, headers...), model()
	run.log = append(run.log, fmt.Sprintf("  -> %d", answer.Status))
	if answer.Status != want.status {
		run.fail("status %d, want %d: %s", answer.Status, want.status, answer.Body)
	}
	type told struct {
		Code    string
		Details struct {
			Issues             []struct{ Path string }
			Missing            []string
			PossibleDuplicates []duplicate
		}
	}
	switch answer.Status {
	case 201:
		got := decodeInto[object](run, answer)
		// The fields that the service chooses.
		want.issues[0].object["id"], want.issues[0].object["createdAt"] = got["id"], got["createdAt"]
		run.sameDuplicates(decodeInto[struct{ PossibleDuplicates []duplicate }](run, answer).PossibleDuplicates, want.duplicates)
		delete(got, "possibleDuplicates")
		run.same(c, got, want.issues[0])
	case 200:
		got := decodeInto[object](run, answer)
		all, batch := got["issues"].([]any)
		one, wrapped := got["issue"].(object)
		switch {
		case batch:
			run.sameAll(c, all, want.issues)
		case wrapped:
			run.same(c, one, want.issues[0])
		case want.issues != nil:
			if tag := answer.Header.Get("ETag"); tag != run.m.etag(c, want.issues[0]) {
				run.fail("ETag %s, want %s", tag, run.m.etag(c, want.issues[0]))
			}
			if dups, created := got["possibleDuplicates"].([]any); created && len(dups) > 0 {
				run.fail("an existing issue with possible duplicates: %s", answer.Body)
			}
			delete(got, "possibleDuplicates")
			run.same(c, got, want.issues[0])
		}
	case 400:
		var paths []string
		for _, issue := range decodeInto[told](run, answer).Details.Issues {
			paths = append(paths, issue.Path)
		}
		slices.Sort(paths)
		slices.Sort(want.faults)
		if !slices.Equal(paths, want.faults) {
			run.fail("faults of %q, want %q: %s", paths, want.faults, answer.Body)
		}
	case 404:
		if missing := decodeInto[told](run, answer).Details.Missing; !slices.Equal(missing, want.missing) {
			run.fail("missing %q, want %q", missing, want.missing)
		}
	case 409:
		run.sameDuplicates(decodeInto[told](run, answer).Details.PossibleDuplicates, want.duplicates)
	}
}

// same compares an issue in an answer with the model's.
func (run *modelRun) same(c *modelCaller, got object, want *modelIssue) {
	run.Helper()
	shown := run.m.shown(c, want)
	if got["updatedAt"] == nil || len(got) != len(shown)+1 {
		run.fail("an issue with the fields %v", slices.Sorted(maps.Keys(got)))
	}
	for name, value := range shown {
		if !reflect.DeepEqual(got[name], value) {
			run.fail("%s sees %s of issue %s as %#v, want %#v", c.name, name, want.id(), got[name], value)
		}
	}
}

func (run *modelRun) sameAll(c *modelCaller, got []any, want []*modelIssue) {
	run.Helper()
	var ids, wanted []string
	for _, one := range got {
		ids = append(ids, one.(object)["id"].(string))
	}
	for _, t := range want {
		wanted = append(wanted, t.id())
	}
	if !slices.Equal(ids, wanted) {
		run.fail("%s gets the issues\n%q, want\n%q", c.name, ids, wanted)
	}
	for i, t := range want {
		run.same(c, got[i].(object), t)
	}
}

func (run *modelRun) sameDuplicates(got, want []duplicate) {
	run.Helper()
	for i := range min(len(got), len(want)) {
		if math.Abs(got[i].Score-want[i].Score) < 1e-9 {
			got[i].Score = want[i].Score
		}
	}
	if !slices.Equal(got, want) {
		run.fail("possible duplicates\n%+v, want\n%+v", got, want)
	}
}

// patch changes an issue, now and then only a version of it.
func (run *modelRun) patch(c *modelCaller) {
	id, body := run.anID(), run.body(true)
	t := run.m.find(id)
	if t == nil || run.IntN(4) > 0 {
		run.request(c, "PATCH", "/issues/"+id, body, func() verdict { return run.m.patch(c, id, body) })
		return
	}
	version := max(1, t.version()-run.IntN(2))
	fits := version == t.version()
	run.request(c, "PATCH", "/issues/"+id, body, func() verdict {
		if run.m.sees(c, t) && !fits {
			return verdict{status: 412}
		}
		return run.m.patch(c, id, body)
	}, "If-Match", fmt.Sprintf(pick(run, `"%d"`, `"%d.p"`), version))
}

// changeTeam changes who sees what.
func (run *modelRun) changeTeam() {
	id := run.keys[1+run.IntN(len(run.keys)-1)]
	team := run.m.teams[id]
	if run.IntN(4) == 0 {
		public := run.IntN(3) > 0 == (team.key != "DEN" && team.key != "PIT") // mostly as it was at first
		run.request(run.owner, "PATCH", "/teams/"+id, object{"isPublic": public}, func() verdict { return verdict{status: 200} })
		if team.public && !public {
			team.members[run.owner.id] = true
		}
		team.public = public
		return
	}
	who := pick(run, run.callers...).id
	path := "/teams/" + id + "/members/" + who
	if run.IntN(2) == 0 {
		run.request(run.owner, "PUT", path, nil, func() verdict { return verdict{status: 200} })
		team.members[who] = true
		return
	}
	run.request(run.owner, "DELETE", path, nil, func() verdict {
		if !team.members[who] {
			return verdict{status: 404}
		}
		return verdict{status: 204}
	})
	team.members[who] = false
}
