package tracker

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// tryBulk reads a request as clients send it, and runs it.
func (w *issueFixture) tryBulk(who *Caller, key, body string) (Reply, error) {
	w.Helper()
	var in BulkIssuesIn
	readBody(w, &in, body)
	var faults Faults
	if in.Validate(&faults); !faults.Empty() {
		return Reply{}, faults.Err()
	}
	req := w.request(who)
	if key != "" {
		req.Idempotency = &Idempotency{Key: key}
	}
	reply, err := w.buffer.Run(CreateIssues, req, &in, w.now)
	w.commit()
	return reply, err
}

func (w *issueFixture) bulk(body string) BulkIssues {
	w.Helper()
	reply, err := w.tryBulk(&w.ann, "", body)
	if err != nil {
		w.Fatalf("%s: %v", body, err)
	}
	return decode[BulkIssues](w, reply.Body)
}

func TestCreateIssues_WithParentsRelationsAndSessions(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	old := w.create(CreateIssueIn{Title: "Old", IssueFields: IssueFields{ExternalRef: Some("old")}})
	before := w.create(CreateIssueIn{Title: "Before"})
	out := w.bulk(`{"items": [
		{"title": "Child", "ref": "c", "parentRef": "p", "dispatch": {"agentId": "bot", "whenReady": true}, "relations": [{"type": "blocked_by", "ref": "p"}, {"type": "blocked_by", "issueId": "` + string(before.ID) + `"}]},
		{"title": "Parent", "ref": "p", "externalRef": "new"},
		{"title": "Other", "ref": "x", "externalRef": "old", "relations": [{"type": "blocks", "ref": "c"}], "dispatch": {}},
		{"title": "Below", "parentRef": "x", "dispatch": {"agentId": "other"}},
		{"title": "Twin", "relations": [{"type": "duplicates", "ref": "x"}, {"type": "relates", "ref": "p"}, {"type": "relates", "ref": "p"}]}]}`)
	var shown []string
	for _, t := range out.Issues {
		ref := "-"
		if t.Ref != nil {
			ref = *t.Ref
		}
		shown = append(shown, fmt.Sprintf("%s %s %s %t %s", t.Title, *t.Identifier, ref, t.Created, t.Status))
	}
	if want := []string{"Child CORE-3 c true backlog", "Parent CORE-4 p true backlog", "Old CORE-1 x false backlog", "Below CORE-5 - true backlog", "Twin CORE-6 - true canceled"}; !slices.Equal(shown, want) {
		t.Fatalf("%q, want %q", shown, want)
	}
	id := func(i int) IssueID { return *out.Issues[i].ID }
	if id(2) != old.ID || *out.Issues[0].ParentID != id(1) || *out.Issues[3].ParentID != old.ID || w.get(id(0)).ParentID == nil {
		t.Errorf("issues %+v", out.Issues)
	}
	if got := w.relations(&w.ann, id(0)); !slices.Equal(got, []string{"blocked_by Before backlog", "blocked_by Parent backlog"}) {
		t.Errorf("relations %q", got)
	}
	if got := w.relations(&w.ann, old.ID); !slices.Equal(got, []string{"duplicated_by Twin canceled"}) {
		t.Errorf("relations of the existing issue %q", got)
	}
	if len(out.Sessions) != 2 || *out.Sessions[0].IssueID != id(0) || out.Sessions[0].Status != SessionWaiting || *out.Sessions[1].IssueID != id(3) || out.Sessions[1].Status != SessionCreated {
		t.Errorf("sessions %+v", out.Sessions)
	}
	w.patch(before.ID, setStatus(StatusDone))
	w.patch(id(1), setStatus(StatusDone))
	if s := decode[ShownSession](t, w.run(&w.ann, CancelSession, &CancelSessionIn{ID: *out.Sessions[0].ID}).Body); s.Status != SessionCanceled {
		t.Errorf("session %+v", s)
	}
	// Everything is there already: nothing is made.
	events := len(w.events())
	again := w.bulk(`{"items": [{"title": "Parent", "ref": "p", "externalRef": "new", "parentRef": "o", "dispatch": {}}, {"title": "Old", "ref": "o", "externalRef": "old"}]}`)
	if len(w.events()) != events || len(again.Sessions) != 0 || again.Issues[0].Created || *again.Issues[0].ID != id(1) || again.Issues[0].ParentID != nil {
		t.Errorf("again: %+v", again)
	}
	w.verify()
}

func TestCreateIssues_ANullParentIsNone(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	out := w.bulk(`{"items": [{"title": "Parent", "ref": "p"}, {"title": "Child", "parentRef": "p", "parentId": null}]}`)
	if got := out.Issues[1].ParentID; got == nil || *got != *out.Issues[0].ID {
		t.Errorf("the parent is %v", got)
	}
	w.verify()
}

func TestCreateIssues_NamesEveryFault(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	a, b := w.create(CreateIssueIn{Title: "A"}).ID, w.create(CreateIssueIn{Title: "B"}).ID
	hidden := w.create(CreateIssueIn{Title: "Hidden", IssueFields: IssueFields{TeamID: Some(w.secret), ExternalRef: Some("hidden")}}).ID
	w.relate(a, RelationBlocks, b)
	events := len(w.events())
	all := func(items string) string { return `{"items": [` + items + `]}` }
	for _, c := range []struct {
		body  string
		paths []string
	}{
		{all(`{"title": "a", "ref": "r"}, {"title": "b", "ref": "r"}`), []string{"items[1].ref"}},
		{all(`{"title": "a", "externalRef": "r"}, {"title": "b", "externalRef": "r"}`), []string{"items[1].externalRef"}},
		{all(`{"title": "a", "parentRef": "r"}`), []string{"items[0].parentRef"}},
		{all(`{"title": "a", "ref": "r", "parentRef": "r"}`), []string{"items[0].parentRef"}},
		{all(`{"title": "a", "ref": "r", "parentRef": "s"}, {"title": "b", "ref": "s", "parentRef": "r"}`), []string{"items[1].parentRef"}},
		{all(`{"title": "a", "ref": "r"}, {"title": "b", "parentRef": "r", "parentId": "` + string(a) + `"}`), []string{"items[1].parentRef"}},
		{all(`{"title": "a", "parentId": "` + string(hidden) + `"}, {"title": "b", "teamKey": "NONE"}`), []string{"items[0].parentId", "items[1].teamKey"}},
		{all(`{"title": "a", "relations": [{"type": "blocks", "ref": "r"}]}`), []string{"items[0].relations[0].ref"}},
		{all(`{"title": "a", "relations": [{"type": "blocks"}]}`), []string{"items[0].relations[0].ref"}},
		{all(`{"title": "a", "relations": [{"type": "blocks", "issueId": "` + string(hidden) + `"}]}`), []string{"items[0].relations[0].issueId"}},
		{all(`{"title": "a", "ref": "r"}, {"title": "b", "relations": [{"type": "blocks", "ref": "r", "issueId": "` + string(a) + `"}]}`), []string{"items[1].relations[0].issueId"}},
		{all(`{"title": "a", "ref": "r", "relations": [{"type": "relates", "ref": "r"}]}`), []string{"items[0].relations[0].ref"}},
		{all(`{"title": "a", "ref": "r", "relations": [{"type": "blocks", "ref": "s"}]}, {"title": "b", "ref": "s", "relations": [{"type": "blocks", "ref": "r"}]}`), []string{"items[1].relations[0]"}},
		{all(`{"title": "a", "ref": "r", "relations": [{"type": "duplicated_by", "ref": "s"}]}, {"title": "b", "ref": "s", "relations": [{"type": "duplicated_by", "ref": "r"}]}`), []string{"items[0].relations[0]"}},
		// A ring by way of issues that are there.
		{all(`{"title": "a", "ref": "r", "relations": [{"type": "blocks", "issueId": "` + string(a) + `"}, {"type": "blocked_by", "ref": "s"}]}, {"title": "b", "ref": "s", "relations": [{"type": "blocked_by", "issueId": "` + string(b) + `"}]}`), []string{"items[1].relations[0]"}},
		{all(`{"title": "a"}, {"title": "b", "dispatch": {"queuedAfter": "` + string(hidden) + `"}}`), []string{"items[1].dispatch.queuedAfter"}},
		{all(`{"title": "a", "dispatch": {"queuedAfter": ["x", "` + string(hidden) + `"]}}`), []string{"items[0].dispatch.queuedAfter[0]", "items[0].dispatch.queuedAfter[1]"}},
		{all(`{"title": "a", "dispatch": {"notBefore": "2999-01-01T00:00:00Z"}}`), []string{"items[0].dispatch.notBefore"}},
		{all(`{"title": "a", "dispatch": {"resultSchema": {"type": 7}}}`), []string{"items[0].dispatch.resultSchema"}},
		// They are told before conflicts.
		{all(`{"title": "a", "externalRef": "hidden"}, {"title": "b", "relations": [{"type": "blocks", "issueId": "x"}]}, {"title": "c", "dispatch": {"queuedAfter": "x", "notBefore": "2999-01-01T00:00:00Z"}}`),
			[]string{"items[1].relations[0].issueId", "items[2].dispatch.queuedAfter", "items[2].dispatch.notBefore"}},
		{all(strings.Repeat(`{"title": "a", "ref": "0"},`, 1) + deepItems(maxParentChain)), []string{fmt.Sprintf("items[%d].parentRef", maxParentChain)}},
	} {
		_, err := w.tryBulk(&w.gus, "", c.body)
		wantCode(t, err, CodeBadRequest, c.paths...)
	}
	_, err := w.tryBulk(&w.gus, "", all(`{"title": "a"}, {"title": "b", "externalRef": "hidden"}`))
	wantCode(t, err, CodeConflict)
	writer := w.gus
	writer.Permissions = permissionWords["issues:write"]
	_, err = w.tryBulk(&writer, "", all(`{"title": "a", "dispatch": {}}`))
	wantCode(t, err, CodeForbidden)
	if got := len(w.events()); got != events {
		t.Errorf("%d events of refused requests", got-events)
	}
	if _, err := w.tryBulk(&writer, "", all(`{"title": "a", "dispatch": null}`)); err != nil {
		t.Error(err)
	}
	w.verify()
}

// A conflict with an issue that is there names the item, and the relation, that meets it.
func TestCreateIssues_NamesTheItemOfAConflict(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	full := w.create(CreateIssueIn{Title: "Full"}).ID
	one := fmt.Sprintf(`{"title": "a", "relations": [{"type": "relates", "issueId": %q}]}`, full)
	w.bulk(`{"items": [` + strings.Repeat(one+",", maxRelations-1) + one + `]}`)
	old := w.archived(CreateIssueIn{Title: "Old", IssueFields: IssueFields{ExternalRef: Some("old")}}).ID
	events := len(w.events())
	for item, path := range map[string]string{
		fmt.Sprintf(`{"title": "b", "relations": [{"type": "blocks", "ref": "r"}, {"type": "blocked_by", "issueId": %q}]}`, full): "items[1].relations[1]: ",
		fmt.Sprintf(`{"title": "b", "relations": [{"type": "relates", "issueId": %q}]}`, old):                                     "items[1].relations[0]: ",
		fmt.Sprintf(`{"title": "b", "parentId": %q}`, old):                                                                        "items[1].parentId: ",
		`{"title": "b", "parentRef": "o"}, {"title": "c", "ref": "o", "externalRef": "old"}`:                                      "items[1].parentRef: ",
	} {
		_, err := w.tryBulk(&w.ann, "", `{"items": [{"title": "a", "ref": "r"}, `+item+`]}`)
		wantCode(t, err, CodeConflict)
		if refused := (*Error)(nil); !errors.As(err, &refused) || !strings.HasPrefix(refused.Message, path) {
			t.Errorf("%s: %v, want %q in front", item, err, path)
		}
	}
	if got := len(w.events()); got != events {
		t.Errorf("%d events of refused requests", got-events)
	}
	w.verify()
}

func deepItems(n int) string {
	var items []string
	for i := range n {
		items = append(items, fmt.Sprintf(`{"title": "a", "ref": "%d", "parentRef": "%d"}`, i+1, i))
	}
	return strings.Join(items, ",")
}

func TestCreateIssues_DryRun(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.create(CreateIssueIn{Title: "Old", IssueFields: IssueFields{ExternalRef: Some("old")}})
	events := w.events()
	const body = `{"dryRun": %t, "items": [{"title": "a", "ref": "r", "dispatch": {}}, {"title": "b", "parentRef": "r", "relations": [{"type": "blocks", "ref": "r"}]}, {"title": "c", "externalRef": "old"}]}`
	reply, err := w.tryBulk(&w.ann, "key", fmt.Sprintf(body, true))
	if err != nil || reply.Outcome != Done {
		t.Fatal(reply.Outcome, err)
	}
	out := decode[BulkIssues](t, reply.Body)
	for i, issue := range out.Issues[:2] {
		if issue.ID != nil || issue.Identifier != nil || issue.Number != nil || issue.ParentID != nil || !issue.Created {
			t.Errorf("issue %d: %+v", i, issue)
		}
	}
	if out.Issues[2].ID == nil || out.Issues[2].Created || len(out.Sessions) != 1 || out.Sessions[0].ID != nil || out.Sessions[0].IssueID != nil {
		t.Errorf("%s", reply.Body)
	}
	if !reflect.DeepEqual(w.events(), events) {
		t.Error("events of a dry run")
	}
	_, err = w.tryBulk(&w.ann, "", `{"dryRun": true, "items": [{"title": "a", "teamKey": "NONE"}]}`)
	wantCode(t, err, CodeBadRequest, "items[0].teamKey")
	// The key is free: nothing was kept for it.
	made, err := w.tryBulk(&w.ann, "key", fmt.Sprintf(body, false))
	if err != nil || made.Outcome != Created || *decode[BulkIssues](t, made.Body).Issues[0].Identifier != "CORE-2" {
		t.Errorf("%s %v", made.Body, err)
	}
	w.verify()
}

// The largest request fits into one command with its answer, which is repeated byte by byte.
func TestCreateIssues_LargestFitsIntoOneBatch(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	const items = 500
	var in []string
	for i := range items {
		in = append(in, fmt.Sprintf(`{"title": "Number %d", "ref": "%d", "description": %q, "dispatch": {}}`, i, i, strings.Repeat("x", maxBulkBody/items-80)))
	}
	body := `{"items": [` + strings.Join(in, ",") + `]}`
	if len(body) > maxBulkBody || len(body) < maxBulkBody*98/100 {
		t.Fatalf("a body of %d bytes", len(body))
	}
	first, err := w.tryBulk(&w.ann, "key", body)
	if err != nil {
		t.Fatal(err)
	}
	if out := decode[BulkIssues](t, first.Body); len(out.Issues) != items || len(out.Sessions) != items {
		t.Errorf("%d issues, %d sessions", len(out.Issues), len(out.Sessions))
	}
	second, err := w.tryBulk(&w.ann, "key", body)
	if err != nil || !second.Replayed || second.Outcome != Created || !bytes.Equal(first.Body, second.Body) {
		t.Errorf("a repeat has %d bytes, want %d: %v", len(second.Body), len(first.Body), err)
	}
	w.verify()
	// A template can make a small request write too much.
	long := strings.Repeat("x", maxDescription)
	team := w.template(TemplateFields{Description: Some(long)})
	_, err = w.tryBulk(&w.ann, "", `{"items": [`+strings.Repeat(`{"title": "x", "templateId": "`+string(team.ID)+`"},`, items-1)+`{"title": "x"}]}`)
	var refused *Error
	if !errors.As(err, &refused) || refused.Code != CodePayloadTooLarge {
		t.Errorf("error %v", err)
	}
}

// An agent that is the assignee of an item has the session of the item's dispatch, and no
// other one that would not wait for the issue.
func TestCreateIssues_DispatchesAnAssigneeOnce(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	agent := string(decode[Agent](t, w.run(&w.ann, CreateAgent, &CreateAgentIn{Name: "A"}).Body).ID)
	other := string(decode[Agent](t, w.run(&w.ann, CreateAgent, &CreateAgentIn{Name: "B"}).Body).ID)
	for _, row := range []struct {
		dispatch string
		want     []string
	}{
		{`{"whenReady": true}`, []string{agent + " waiting"}},
		{`{"whenReady": true, "agentId": "` + agent + `"}`, []string{agent + " waiting"}},
		{`{"whenReady": true, "agentId": "` + other + `"}`, []string{other + " waiting", agent + " created"}},
		{`null`, []string{agent + " created"}},
	} {
		out := w.bulk(`{"items": [{"title": "First", "ref": "r"},
			{"title": "Second", "assigneeId": "` + agent + `", "relations": [{"type": "blocked_by", "ref": "r"}], "dispatch": ` + row.dispatch + `}]}`)
		reply, err := w.ask(&w.ann, ListSessions, &ListSessionsIn{IssueID: Some(string(*out.Issues[1].ID))})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range decode[SessionPage](t, reply.Body).Sessions {
			got = append(got, fmt.Sprintf("%s %s", s.AgentID, s.Status))
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: sessions %q, want %q", row.dispatch, got, row.want)
		}
	}
	w.verify()
}

// An item's dispatch has the fields of a dispatch's body.
func TestBulkDispatch_HasTheFieldsOfADispatch(t *testing.T) {
	t.Parallel()
	of, item := reflect.TypeFor[DispatchIssueIn](), reflect.TypeFor[BulkDispatch]()
	if item.NumField() != of.NumField()-1 {
		t.Errorf("%d fields", item.NumField())
	}
	for f := range item.Fields() {
		if g, ok := of.FieldByName(f.Name); !ok || g.Type != f.Type || g.Tag != f.Tag {
			t.Errorf("%s differs", f.Name)
		}
	}
}

func TestAnswerParts_Damaged(t *testing.T) {
	t.Parallel()
	parts, own := cutParts([]byte("abcdef"), []replyPart{{1, eventPart{7, 3, 2}}, {4, eventPart{8, 0, 1}}})
	if string(own) != "adf" || len(parts) != 2 || parts[1].own != 1 {
		t.Fatalf("%q %+v", own, parts)
	}
	b := append(appendParts(nil, parts), own...)
	for n := range b {
		if got, _, err := parseParts(b[:n]); err == nil && len(b)-n > 1 {
			t.Errorf("%d bytes: %+v", n, got)
		}
	}
	if got, rest, err := parseParts(b); err != nil || !slices.Equal(got, parts) || string(rest) != "adf" {
		t.Errorf("%+v %q %v", got, rest, err)
	}
}
