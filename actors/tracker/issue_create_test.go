package tracker

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	json "github.com/goccy/go-json"

	"switchyard/internal/testkit"
	"switchyard/storage"
)

var update = flag.Bool("update", false, "rewrite the golden files of issues")

// TestIssue_Golden pins an issue's JSON, as clients get it, and its keys.
func TestIssue_Golden(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	parent, until := IssueID("0193a000-0000-7000-8000-000000000002"), Timestamp("2027-01-02T03:04:05.678Z")
	order, estimate, number := 1.5, int64(3), uint64(12)
	full := &Issue{
		ID: "0193a000-0000-7000-8000-000000000001", OrganizationID: "0193a000-0000-7000-8000-000000000009", ExternalRef: text("ext-1"),
		TeamID: "0193a000-0000-7000-8000-00000000000a", Title: `A "title" <b>&`, Description: text("ä\n"), Status: StatusInProgress, Priority: PriorityUrgent,
		Resolution: text("obsolete"), ParentID: &parent, SubIssueSortOrder: &order, Estimate: &estimate, IsDraft: true, SnoozedUntil: &until,
		AssigneeID: text("ann"), ProjectID: text("p"), CycleID: text("c"), LabelIDs: labelText(&[]string{"<b>", "a", "<b>"}), Number: &number, Identifier: text("CORE-12"),
		Repo: text("o/r"), Branch: text("main"), PRURL: text("https://x/1"), PRState: text("open"), PRCheckState: text("success"),
		CreatedAt: "2026-11-20T21:30:00.123Z", UpdatedAt: "2026-11-20T21:30:00.124Z",
	}
	bare := &Issue{ID: full.ID, OrganizationID: full.OrganizationID, TeamID: full.TeamID, Title: "t", Status: StatusBacklog, Priority: PriorityMedium, CreatedAt: full.CreatedAt, UpdatedAt: full.UpdatedAt}
	var out bytes.Buffer
	w := newIssueFixture(t)
	for _, issue := range []*Issue{full, bare} {
		reply := w.run(&w.ann, NewCommand[None, None]("put", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
			body, err := issues.Insert(tx, issue)
			return Reply{Body: body}, err
		}), &None{})
		out.Write(append(reply.Body, '\n'))
		out.WriteString(storage.Explain(&issues, issue))
	}
	for i, s := range issueStatuses {
		if int(s.rank()) != i {
			t.Errorf("status %s has rank %d", s, s.rank())
		}
	}
	golden := filepath.Join("testdata", "issue.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, out.Bytes()) {
		t.Errorf("an issue's JSON or keys changed\ngot:\n%s\nwant:\n%s", &out, want)
	}
}

func TestCreateIssue_Defaults(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	reply := w.run(&w.ann, CreateIssue, &CreateIssueIn{Title: "First"})
	if reply.Outcome != Created || reply.ETag != `"1"` {
		t.Errorf("outcome %d, ETag %s", reply.Outcome, reply.ETag)
	}
	got := decode[CreatedIssue](t, reply.Body)
	number, identifier := uint64(1), "CORE-1"
	want := Issue{
		ID: got.ID, OrganizationID: WorkspaceID(w.workspace.String()), TeamID: w.core, Title: "First", Status: StatusBacklog, Priority: PriorityMedium,
		Number: &number, Identifier: &identifier, CreatedAt: At(w.now), UpdatedAt: At(w.now),
	}
	if !reflect.DeepEqual(got.Issue, want) {
		t.Errorf("got %+v, want %+v", got.Issue, want)
	}
	if !bytes.HasSuffix(reply.Body, []byte(`,"possibleDuplicates":[]}`)) {
		t.Errorf("answer is %s", reply.Body)
	}
	if stored := w.get(got.ID); !reflect.DeepEqual(stored, want) {
		t.Errorf("stored %+v, want %+v", stored, want)
	}
	events := w.events()
	if len(events) != 1 || events[0].Type != "issue.created" || !reflect.DeepEqual(events[0].Data, want) || events[0].Changes != nil {
		t.Errorf("events %+v", events)
	}
	w.verify()
}

// A creation stores every field that it is given. A new field of Issue or IssueFields
// fails this test until it is set here, to another value than its default.
func TestCreateIssue_EveryField(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	plain := w.create(CreateIssueIn{Title: "Plain"})
	parent := w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(w.web)}})
	in := CreateIssueIn{Title: "Ünïcode ✓", IssueFields: IssueFields{
		ExternalRef: Some("ext"), TeamID: Some(w.web), TeamKey: Some("web"), Description: Some(""), Status: Some(StatusDone), Priority: Some(PriorityHigh),
		Resolution: Some("resolved"), ParentID: Some(parent.ID), SubIssueSortOrder: Some(-1e-7), Estimate: Some(int64(0)), IsDraft: Some(true),
		TemplateID: Some("any"), SnoozedUntil: Some("2027-01-02T03:04:05.6789+02:00"), AssigneeID: Some("x"), ProjectID: Some("p"), CycleID: Some("c"),
		LabelIDs: Some([]string{"l1", `l"2`, "l1"}), Repo: Some("o/r"), Branch: Some("b"),
	}}
	given := reflect.ValueOf(in.IssueFields)
	for i := range given.NumField() {
		if !given.Field(i).FieldByName("Set").Bool() {
			t.Errorf("the test does not set IssueFields.%s", given.Type().Field(i).Name)
		}
	}

	got := w.create(in).Issue
	want := Issue{
		ID: got.ID, OrganizationID: WorkspaceID(w.workspace.String()), ExternalRef: new("ext"), TeamID: w.web, Title: "Ünïcode ✓", Description: new(""),
		Status: StatusDone, Priority: PriorityHigh, Resolution: new("resolved"), ParentID: &parent.ID, SubIssueSortOrder: new(-1e-7),
		Estimate: new(int64(0)), IsDraft: true, SnoozedUntil: new(Timestamp("2027-01-02T01:04:05.678Z")), AssigneeID: new("x"), ProjectID: new("p"),
		CycleID: new("c"), LabelIDs: new(`["l1","l\"2"]`), Number: new(uint64(2)), Identifier: new("WEB-2"), Repo: new("o/r"), Branch: new("b"),
		CreatedAt: At(w.now), UpdatedAt: At(w.now),
	}
	testkit.Equal(t, "the answer", got, want)
	testkit.Equal(t, "the stored issue", w.get(got.ID), want)

	// A creation can't set these.
	others := map[string]bool{"OrganizationID": true, "PRURL": true, "PRState": true, "PRCheckState": true, "ArchivedAt": true}
	byDefault, set := reflect.ValueOf(plain.Issue), reflect.ValueOf(want)
	for i := range set.NumField() {
		name := set.Type().Field(i).Name
		if same := reflect.DeepEqual(set.Field(i).Interface(), byDefault.Field(i).Interface()); same != others[name] {
			t.Errorf("Issue.%s equals its default: %t", name, same)
		}
	}
	w.verify()
}

func TestCreateIssue_Team(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	none := Opt[TeamID]{}
	for _, row := range []struct {
		name  string
		who   *Caller
		id    Opt[TeamID]
		key   Opt[string]
		want  TeamID
		fault string
	}{
		{"default", &w.ann, none, Opt[string]{}, w.core, ""},
		{"by id", &w.ann, Some(w.web), Opt[string]{}, w.web, ""},
		{"by key", &w.ann, none, Some("WEB"), w.web, ""},
		{"both", &w.ann, Some(w.web), Some("WEB"), w.web, ""},
		{"both, disagreeing", &w.ann, Some(w.core), Some("WEB"), "", "teamKey"},
		{"unknown id", &w.ann, Some(TeamID("nothing")), Opt[string]{}, "", "teamId"},
		{"unknown key", &w.ann, none, Some("NONE"), "", "teamKey"},
		{"empty id", &w.ann, Some(TeamID("")), Opt[string]{}, "", "teamId"},
		{"hidden id", &w.gus, Some(w.secret), Opt[string]{}, "", "teamId"},
		{"hidden key", &w.gus, none, Some("SEC"), "", "teamKey"},
		{"private, seen", &w.ann, none, Some("SEC"), w.secret, ""},
	} {
		reply, _, err := w.try(row.who, CreateIssue, &CreateIssueIn{Title: "t", IssueFields: IssueFields{TeamID: row.id, TeamKey: row.key}})
		switch {
		case row.fault != "":
			wantCode(t, err, CodeBadRequest, row.fault)
		case err != nil:
			t.Errorf("%s: %v", row.name, err)
		case decode[Issue](t, reply.Body).TeamID != row.want:
			t.Errorf("%s: got team %s", row.name, decode[Issue](t, reply.Body).TeamID)
		}
	}
	// All faults are in one answer.
	_, _, err := w.try(&w.ann, CreateIssue, &CreateIssueIn{Title: "t", IssueFields: IssueFields{TeamID: Some(TeamID("x")), TeamKey: Some("y"), ParentID: Some(IssueID("z"))}})
	wantCode(t, err, CodeBadRequest, "teamId", "teamKey", "parentId")
}

func TestCreateIssue_NoDefaultTeam(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	orphan := NewCommand[None, None]("orphan", "", Needs{}, func(tx *Tx, _ *None) (Reply, error) {
		row, err := tx.workspace()
		if err != nil {
			return Reply{}, err
		}
		next := row.Value
		next.DefaultTeamID = nil
		_, err = workspaces.Update(tx, row, &next)
		return Reply{}, err
	})
	w.run(&w.ann, orphan, &None{})
	_, _, err := w.try(&w.ann, CreateIssue, &CreateIssueIn{Title: "t"})
	wantCode(t, err, CodeBadRequest, "teamId")
	// Other faults are in the same answer (Decision 4).
	_, _, err = w.try(&w.ann, CreateIssue, &CreateIssueIn{Title: "t", IssueFields: IssueFields{ParentID: Some(IssueID("none"))}})
	wantCode(t, err, CodeBadRequest, "teamId", "parentId")
	w.run(&w.ann, CreateIssue, &CreateIssueIn{Title: "t", IssueFields: IssueFields{TeamID: Some(w.web)}})
}

func TestCreateIssue_SameExternalRef(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	first := w.create(CreateIssueIn{Title: "first", IssueFields: IssueFields{ExternalRef: Some("r"), TeamID: Some(w.secret)}})
	before := len(w.events())
	reply := w.run(&w.ann, CreateIssue, &CreateIssueIn{Title: "second", IssueFields: IssueFields{ExternalRef: Some("r"), TeamID: Some(TeamID("unknown"))}})
	again := decode[CreatedIssue](t, reply.Body)
	if reply.Outcome != Done || again.ID != first.ID || again.Title != "first" || reply.ETag != `"1"` || again.PossibleDuplicates == nil {
		t.Errorf("reply %+v, issue %+v", reply, again)
	}
	// A caller who can't see the issue learns only that the reference is taken.
	_, _, err := w.try(&w.gus, CreateIssue, &CreateIssueIn{Title: "third", IssueFields: IssueFields{ExternalRef: Some("r")}})
	wantCode(t, err, CodeConflict)
	if len(w.events()) != before {
		t.Error("an event for no change")
	}
	w.run(&w.ann, DeleteIssue, &DeleteIssueIn{ID: string(first.ID)})
	if next := w.create(CreateIssueIn{Title: "fourth", IssueFields: IssueFields{ExternalRef: Some("r")}}); next.ID == first.ID {
		t.Error("a deleted issue came back")
	}
	w.verify()
}

func TestCreateIssue_ParentChain(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	at := w.create(CreateIssueIn{})
	for range maxParentChain - 1 {
		at = w.create(CreateIssueIn{IssueFields: IssueFields{ParentID: Some(at.ID)}})
	}
	_, _, err := w.try(&w.ann, CreateIssue, &CreateIssueIn{Title: "t", IssueFields: IssueFields{ParentID: Some(at.ID)}})
	wantCode(t, err, CodeBadRequest, "parentId")
	hidden := w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(w.secret)}})
	_, _, err = w.try(&w.gus, CreateIssue, &CreateIssueIn{Title: "t", IssueFields: IssueFields{ParentID: Some(hidden.ID)}})
	wantCode(t, err, CodeBadRequest, "parentId")
	w.verify()
}

func TestCreateIssue_FailureUsesNoNumber(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	w.create(CreateIssueIn{})
	_, _, err := w.try(&w.ann, CreateIssue, &CreateIssueIn{Title: "t", IssueFields: IssueFields{ParentID: Some(IssueID("x"))}})
	wantCode(t, err, CodeBadRequest, "parentId")
	if got := w.create(CreateIssueIn{}); *got.Number != 2 {
		t.Errorf("number %d after a failed creation, want 2", *got.Number)
	}
}

func TestIssueFields_Validate(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"2026-11-20T21:30:00Z": true, "2026-11-20T21:30:00.123456789+05:30": true, "0001-01-01T00:00:00Z": true,
		"9999-12-31T23:59:59-01:00": false, "0000-01-01T00:00:00+01:00": false, "tomorrow": false, "": false,
	} {
		var faults Faults
		in := BatchIssuesIn{Patch: IssuePatch{IssueFields: IssueFields{SnoozedUntil: Some(text)}}}
		in.Validate(&faults)
		if faults.Empty() != ok || !ok && !faults.Has("patch.snoozedUntil") {
			t.Errorf("%q: faults %v, want ok %v", text, faults.Err(), ok)
		}
	}
}

func TestIssueByID(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{IssueFields: IssueFields{TeamID: Some(w.secret)}})
	for _, row := range []struct {
		header string
		want   Outcome
	}{{"", Done}, {`"1"`, NotModified}, {`W/"1"`, NotModified}, {"*", NotModified}, {`"0", "1"`, NotModified}, {`"2"`, Done}, {"1", Done}, {`"11"`, Done}} {
		reply, err := w.ask(&w.ann, IssueByID, &IssueByIDIn{ID: string(issue.ID), IfNoneMatch: row.header})
		if err != nil || reply.Outcome != row.want || reply.ETag != `"1"` || (reply.Body == nil) != (row.want == NotModified) {
			t.Errorf("If-None-Match %s: %+v, %v", row.header, reply, err)
		}
	}
	_, err := w.ask(&w.gus, IssueByID, &IssueByIDIn{ID: string(issue.ID)})
	wantCode(t, err, CodeNotFound)
	for _, id := range []string{"", "x", strings.ToUpper(string(issue.ID)), string(w.core)} {
		_, err := w.ask(&w.ann, IssueByID, &IssueByIDIn{ID: id})
		wantCode(t, err, CodeNotFound)
	}
}

func TestStoredText_TellsNamesFromText(t *testing.T) {
	t.Parallel()
	tricky := `"parentId":"x","snoozedUntil":"9999-01-01T00:00:00.000Z"`
	issue := Issue{Title: tricky, Description: &tricky, LabelIDs: labelText(&[]string{tricky, `\"parentId`, "snoozedUntil"}), Identifier: &tricky}
	for _, branch := range []string{`"parentId`, `\"parentId`, `"parentId"`, `:"parentId":"`} {
		issue.Branch = &branch
		body, err := json.Marshal(&issue)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"parentId", "snoozedUntil"} {
			if got := storedText(body, field); got != nil {
				t.Errorf("%s found %q in %s", field, got, body)
			}
		}
	}
	parent := IssueID("p")
	issue.ParentID = &parent
	body, err := json.Marshal(&issue)
	if got := storedText(body, "parentId"); err != nil || string(got) != "p" {
		t.Errorf("found %q, %v", got, err)
	}
}

func TestProjectOf_AnyText(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	issue := f.work(PriorityLow)
	tricky := `"projectId":"x"`
	f.run(f.admin, PatchIssue, patchIn(issue.ID, "", IssuePatch{Title: Some(tricky), IssueFields: IssueFields{Description: Some(tricky), LabelIDs: Some([]string{tricky})}}))
	for _, project := range []string{"", "bridge", `"`, `\`, `\\"`, `a\"b"`, tricky, `{"a":"b"}`, "<é&\u2028 😀\x01>"} {
		f.setProject(issue.ID, Opt[string]{Value: project, Set: true, Null: project == ""})
		v := View{View: f.view(f.home.Workspace.ID.raw())}
		if got, err := v.projectOf(issue.id()); got != project || err != nil {
			t.Errorf("found %q, %v; want %q", got, err, project)
		}
	}
	v := View{View: f.view(f.home.Workspace.ID.raw())}
	if got, err := v.projectOf(f.home.Workspace.ID.raw()); got != "" || err != nil {
		t.Errorf("found %q, %v of no issue", got, err)
	}
}

func TestBranchName(t *testing.T) {
	t.Parallel()
	for _, row := range [][3]string{
		{"CORE-1", "Fix the login page", "core-1-fix-the-login-page"},
		{"CORE-1", "  Ünïcödé -- straße/Łódź Ærø!  ", "core-1-unicode-strasse-lodz-aero"},
		{"CORE-1", "日本語", "core-1"},
		{"CORE-1", "---", "core-1"},
		{"CORE-1", "ﬁne ① Ｗｉｄｅ", "core-1-fine-1-wide"},
		{"CORE-12", strings.Repeat("word ", 40), "core-12-word-word-word-word-word-word-word-word-word-word-wo"},
		{"CORE-12", strings.Repeat("a", 51) + " b", "core-12-" + strings.Repeat("a", 51)},
		{"CORE-12", strings.Repeat("a", 51) + "ß", "core-12-" + strings.Repeat("a", 51) + "s"},
	} {
		got := branchName(row[0], row[1])
		if got != row[2] || len(got) > maxBranchName {
			t.Errorf("%q: got %q, want %q", row[1], got, row[2])
		}
	}
}

func TestIssueBranchName(t *testing.T) {
	t.Parallel()
	w := newIssueFixture(t)
	issue := w.create(CreateIssueIn{Title: "Do it", IssueFields: IssueFields{TeamID: Some(w.secret)}})
	reply, err := w.ask(&w.ann, IssueBranchName, &IssueBranchNameIn{ID: string(issue.ID)})
	if err != nil || string(reply.Body) != `{"branchName":"sec-1-do-it"}` {
		t.Errorf("%s, %v", reply.Body, err)
	}
	_, err = w.ask(&w.gus, IssueBranchName, &IssueBranchNameIn{ID: string(issue.ID)})
	wantCode(t, err, CodeNotFound)
}

func TestLabelText_RoundTrip(t *testing.T) {
	t.Parallel()
	labels := []string{"a", `"`, `\`, "\x01", "é", "<&>"}
	issue := Issue{LabelIDs: labelText(&labels)}
	if got := issue.labels(); !slices.Equal(got, labels) {
		t.Errorf("got %q from %s", got, *issue.LabelIDs)
	}
	if text := labelText(&[]string{}); *text != "[]" {
		t.Errorf("no labels are %s", *text)
	}
}
