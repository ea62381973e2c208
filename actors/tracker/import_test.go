package tracker

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strings"
	"testing"
)

// lineImport is an import into an empty workspace, line by line.
type lineImport struct {
	*testService
	home   Onboarded
	n      int
	sum    hash.Hash
	counts map[string]int
}

func newLineImport(t tester) *lineImport {
	t.Helper()
	return newLineImportOf(t, "")
}

// newLineImportOf is newLineImport of a file whose workspace has more fields, each with a comma behind it.
func newLineImportOf(t tester, fields string) *lineImport {
	t.Helper()
	w := newTestService(t)
	im := &lineImport{testService: w, home: w.onboard("yard"), sum: sha256.New(), counts: map[string]int{exportWorkspace: 1}}
	const at = `"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"`
	if err := im.send(fmt.Sprintf(`{"n":0,"type":"workspace","version":1,"data":{"id":%q,"name":"Y","slug":"y","ownerId":"x",%s%s}}`, im.home.Workspace.ID, fields, at)); err != nil {
		t.Fatal(err)
	}
	return im
}

func (im *lineImport) send(line string) error {
	im.Helper()
	_, err := im.ask(im.home.Token.Secret, im.home.Workspace.ID, ImportLines, &ImportLinesIn{Body: []byte(line)})
	if err == nil {
		im.n++
		im.sum.Write([]byte(line + "\n"))
	}
	return err
}

// line sends the next line.
func (im *lineImport) line(kind, data string) error {
	im.Helper()
	err := im.send(fmt.Sprintf(`{"n":%d,"type":%q,"data":%s}`, im.n, kind, data))
	if err == nil {
		im.counts[kind]++
	}
	return err
}

// end sends the last line.
func (im *lineImport) end() error {
	im.Helper()
	counts, err := json.Marshal(im.counts)
	if err != nil {
		im.Fatal(err)
	}
	return im.send(fmt.Sprintf(`{"type":"end","counts":%s,"sha256":"%x"}`, counts, im.sum.Sum(nil)))
}

// wantLineFault checks that an error refuses a line for a reason.
func wantLineFault(t tester, err error, why string) {
	t.Helper()
	var told *Error
	if !errors.As(err, &told) || told.Code != CodeBadRequest || !strings.Contains(told.Message, why) {
		t.Errorf("error is %v, want %q", err, why)
	}
}

// Lines are held to the rules of all bodies: what is kept as it was written is shown again.
func TestImport_RefusesLinesThatAreNotStrictJSON(t *testing.T) {
	t.Parallel()
	im := newLineImport(t)
	const label = `{"id":"01935000-0002-7000-8000-000000000001","name":"%s","createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z","unknown":%s}`
	for _, row := range []struct{ name, unknown, why string }{
		{"\xff", "1", "invalid UTF-8"},
		{"plain", `{"a":"` + "\xff" + `"}`, "invalid UTF-8"},
		{`\ud800`, "1", "surrogate"},
		{"plain", `["\udc00"]`, "surrogate"},
		{"plain", `{"a":1,"a":2}`, "duplicate"},
		{`plain","name":"twice`, "1", "duplicate"},
	} {
		wantLineFault(t, im.line("label", fmt.Sprintf(label, row.name, row.unknown)), row.why)
	}
	if err := im.line("label", fmt.Sprintf(label, "grüß 👋 \\ud83d\\udc4b", `{"a":{"a":1}}`)); err != nil {
		t.Error(err)
	}
}

// A line that can't be taken is refused with its place, and nothing of its request is
// taken.
func TestImport_RefusesHostileLines(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home := w.onboard("yard")
	token, id := home.Token.Secret, home.Workspace.ID
	const (
		team  = "01935000-0000-7000-8000-0000000000bb"
		issue = "01935000-0001-7000-8000-0000000000dd"
		at    = `"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"`
	)
	send := func(lines ...string) error {
		_, err := w.ask(token, id, ImportLines, &ImportLinesIn{Body: []byte(strings.Join(lines, "\n") + "\n")})
		return err
	}
	first := fmt.Sprintf(`{"n":0,"type":"workspace","version":1,"data":{"id":%q,"name":"Yard","slug":"yard","key":"YARD","ownerId":"ann","defaultTeamId":%q,%s}}`, id, team, at)
	teamLine := func(n int) string {
		return fmt.Sprintf(`{"n":%d,"type":"team","data":{"id":%q,"key":"ENG","name":"E","ownerId":"ann","isDefault":true,"isPublic":true,%s}}`, n, team, at)
	}
	issueLine := func(n int, change ...string) string {
		line := fmt.Sprintf(`{"n":%d,"type":"issue","data":{"id":%q,"teamId":%q,"title":"T","status":"todo","priority":"low","number":7,"identifier":"ENG-7",%s}}`, n, issue, team, at)
		return strings.NewReplacer(change...).Replace(line)
	}
	refused := func(name string, err error, place string) {
		t.Helper()
		var told *Error
		if !errors.As(err, &told) || told.Code != CodeBadRequest || !strings.Contains(told.Message, place) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := send(issueLine(1)); err == nil {
		t.Error("an import begins with its second line")
	}
	if err := send(first, teamLine(1)); err != nil {
		t.Fatal(err)
	}
	if err := send(teamLine(1)); err != nil {
		t.Errorf("a repeat: %v", err)
	}
	for name, line := range map[string]string{
		"a future id":       issueLine(2, "01935000-0001", "ffffffff-ffff"),
		"not an id":         issueLine(2, issue, "x"),
		"version 4":         issueLine(2, "-7000-8000-0000000000dd", "-4000-8000-0000000000dd"),
		"a NUL":             issueLine(2, `"title":"T"`, `"title":"\u0000"`),
		"a status":          issueLine(2, `"todo"`, `"open"`),
		"a time":            issueLine(2, "2026-01-01T00:00:00.000Z", "yesterday"),
		"another number":    issueLine(2, "ENG-7", "ENG-8"),
		"no number":         issueLine(2, `"number":7,`, ""),
		"its own parent":    issueLine(2, `"number"`, `"parentId":"`+issue+`","number"`),
		"a list":            `{"n":2,"type":"issue","data":[]}`,
		"an unknown type":   `{"n":2,"type":"planet","data":{}}`,
		"a second":          `{"n":2,"type":"workspace","version":1,"data":{}}`,
		"no issue":          `{"n":2,"type":"comment","data":{"id":"` + issue + `","issueId":"` + issue + `","authorId":"a","authorType":"user","body":"b",` + at + `}}`,
		"no session":        `{"n":2,"type":"session_state","data":{"sessionId":"` + issue + `"}}`,
		"a wrong parking":   `{"n":2,"type":"session","data":{"id":"` + issue + `","issueId":"` + issue + `","agentId":"a","actorType":"agent","status":"created",` + at + `}}`,
		"foreign work":      `{"n":2,"type":"timer","data":{"kind":"directory.erase","subject":"` + issue + `","due":"2026-01-01T00:00:00.000Z"}}`,
		"a damaged picture": `{"n":2,"type":"attachment","data":{"id":"` + issue + `","issueId":"` + issue + `","contentType":"image/png","contentBase64":"AA==",` + at + `}}`,
	} {
		refused(name, send(line), "lines[2]")
	}
	refused("no JSON", send(`{"n":2,`), "body[0]")
	refused("a gap", send(teamLine(1), issueLine(3)), "body[1]")
	refused("an early end", send(`{"type":"end","counts":{"team":1,"workspace":1},"sha256":""}`), "end")
	if err := send(issueLine(3)); err == nil {
		t.Error("a line is left out")
	}
	if err := send(strings.Replace(first, `"Yard"`, `"Other"`, 1)); err == nil {
		t.Error("the lines of another file are taken")
	}
	// A ring of parents is found with its last issue.
	const other = "01935000-0002-7000-8000-0000000000dd"
	ring := func(n int, id, parent, number string) string {
		return issueLine(n, issue, id, "ENG-7", "ENG-"+number, `"number":7`, `"parentId":"`+parent+`","number":`+number)
	}
	if err := send(ring(2, issue, other, "7")); err != nil {
		t.Fatal(err)
	}
	refused("a ring", send(ring(3, other, issue, "8")), "lines[3]")
	if err := send(issueLine(3, issue, other, "ENG-7", "ENG-8", `"number":7`, `"number":8`)); err != nil {
		t.Fatal(err)
	}
	created := w.issue(token, id, team)
	if *created.Identifier != "ENG-9" || created.ID < other {
		t.Errorf("the next issue is %s, %s", *created.Identifier, created.ID)
	}
	w.verify()
}

// The audit says who imports a file, also one whose last line never comes, and what came of it.
func TestImport_IsInTheAudit(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	id := string(w.home.Workspace.ID)
	page := w.audit(w.home.Token.Secret, w.home.Workspace.ID, &ListAuditIn{})
	if e := page.Entries[0]; e.Action != "workspace.importing" || e.Target.ID != id || e.Actor.ID != string(w.home.Workspace.OwnerID) {
		t.Errorf("the begin is %+v", e)
	}

	f := newAgentFixture(t)
	f.work(PriorityLow)
	f.work(PriorityLow)
	to := f.copied()
	ends := to.audit(to.admin, to.home.Workspace.ID, &ListAuditIn{Action: Some("workspace.imported")}).Entries
	if len(ends) != 1 {
		t.Fatalf("an import that is repeated makes the entries %+v", ends)
	}
	if all := to.audit(to.admin, to.home.Workspace.ID, &ListAuditIn{Action: Some("workspace.updated")}).Entries; len(all) > 0 || len(ends[0].Changes) != 1 {
		t.Errorf("the records have the entries %+v, and the end is %+v", all, ends[0])
	}
	if e, lines := ends[0], string(ends[0].Changes["importedLines"].To); e.Target.ID != string(to.home.Workspace.ID) || !strings.Contains(lines, `"issue":2`) || !strings.Contains(lines, `"token":1`) {
		t.Errorf("the end is %+v with %s", e, lines)
	}
}

// The list of users that a workspace has created counts only if the operator
// takes it in: such users get credentials that are good elsewhere.
func TestImport_OwnersCreateNoUsers(t *testing.T) {
	t.Parallel()
	w := newTestService(t)
	home, other := w.onboard("yard"), w.onboard("depot")
	id := home.Workspace.ID
	const at = `"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"`
	lines := fmt.Sprintf(`{"n":0,"type":"workspace","version":1,"data":{"id":%q,"name":"Y","slug":"y","ownerId":"x",%s}}
{"n":1,"type":"member","data":{"userId":%q,"role":"owner",%s}}
{"n":2,"type":"issued_user","data":{"userId":%q}}
`, id, at, other.Workspace.OwnerID, at, other.Workspace.OwnerID)
	w.must(home.Token.Secret, id, ImportLines, &ImportLinesIn{Body: []byte(lines)})
	view := View{View: w.view(id.raw())}
	if issued, err := view.issued(other.Workspace.OwnerID); err != nil || issued {
		t.Errorf("the owner of another workspace counts as created here: %v", err)
	}
	row, err := view.member(other.Workspace.OwnerID)
	if err != nil || row == nil || row.Value.Role != RoleAdmin {
		t.Errorf("the member is %+v, %v", row, err)
	}
	w.verify()
}

// Lines with holes for tests. Those of an issue are the part of the id that orders it, the team, the
// number and the identifier; those of a team are the id and the key.
const (
	importedIssue = `{"id":"01935001-%04x-7000-8000-000000000000","teamId":%q,"title":"T","status":"todo","priority":"low","number":%d,"identifier":%q,"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}`
	importedTeam  = `{"id":%q,"key":%q,"name":"E","ownerId":"ann","isPublic":true,"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"}`
)
