package tracker

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The texts of an imported record may be as long as those of the ordinary operations, and no
// longer.
func TestImport_BoundsTexts(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	const (
		team  = "01935000-0000-7000-8000-0000000000bb"
		issue = "01935000-0001-7000-8000-0000000000dd"
		at    = `"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"`

		picture = "\x89PNG\r\n\x1a\n"
	)
	id := func(n int) string { return fmt.Sprintf("01935001-%04x-7000-8000-000000000000", n) }
	labels := func(n, size int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = strings.Repeat("\U0001F600", size-3) + fmt.Sprintf("%03d", i)
		}
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if err := w.line("team", fmt.Sprintf(`{"id":%q,"key":"ENG","name":"E","ownerId":"ann","isPublic":true,%s}`, team, at)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, row := range []struct {
		kind, fields string // %s is the text
		most         int    // characters
	}{
		{"label", `"name":%s`, 200},
		{"label", `"name":"L","color":%s`, 32},
		{"label", `"name":"L","description":%s`, 2_000},
		{"project", `"name":"P","description":%s`, 10_000},
		{"template", `"name":"T","labelIds":["x",%s]`, 255},
		{"agent", `"name":"A","provider":%s`, 200},
		{"issue", `"title":%s`, 1_000},
		{"issue", `"title":"T","description":%s`, 262_144},
		{"issue", `"title":"T","projectId":%s`, 255},
		{"issue", `"title":"T","prUrl":%s`, 2_048},
		{"comment", `"issueId":"` + issue + `","authorId":"a","authorType":"user","body":%s`, 65_536},
		{"comment", `"issueId":"` + issue + `","body":"B","authorType":"user","authorId":%s`, maxImportText},
		{"session", `"issueId":"` + issue + `","agentId":"a","actorType":"agent","status":"completed","provider":"p","result":%s`, 131_072},
		{"ticket", `"source":"sms","status":"open","lastMessageAt":"2026-01-01T00:00:00.000Z","from":"F","subject":%s`, 1_000},
		{"attachment", fmt.Sprintf(`"issueId":%q,"contentType":"image/png","size":%d,"sha256":"%x","contentBase64":%q,`, issue, len(picture), sha256.Sum256([]byte(picture)), base64.StdEncoding.EncodeToString([]byte(picture))) + `"name":%s`, 255},
		{"deal", `"name":"D","stage":"new","contact":%s`, 500},
		{"support_channel", `"type":"email","name":%s`, 200},
	} {
		for _, extra := range []int{1, 0} {
			n++
			record := fmt.Sprintf(row.fields, fmt.Sprintf("%q", strings.Repeat("\U0001F600", row.most+extra)))
			of := id(n)
			if row.kind == "issue" {
				record += fmt.Sprintf(`,"teamId":%q,"status":"todo","priority":"low","number":%d,"identifier":"ENG-%d"`, team, n, n)
			}
			if row.kind == "issue" && n < 20 && row.most == 1_000 && extra == 0 {
				of = issue
			}
			err := w.line(row.kind, fmt.Sprintf(`{"id":%q,%s,%s}`, of, record, at))
			if extra == 0 && err != nil || extra == 1 && (err == nil || !strings.Contains(err.Error(), fmt.Sprintf("at most %d", row.most))) {
				t.Errorf("%s with %.50s of %d characters: %v", row.kind, row.fields, row.most+extra, err)
			}
		}
	}
	for _, row := range []struct{ n, size int }{{101, 5}, {2, 256}, {100, 255}} {
		n++
		err := w.line("issue", fmt.Sprintf(`{"id":%q,"title":"T","labelIds":%q,"teamId":%q,"status":"todo","priority":"low","number":%d,"identifier":"ENG-%d",%s}`, id(n), labels(row.n, row.size), team, n, n, at))
		if good := row.n == 100; (err == nil) != good {
			t.Errorf("%d labels of %d characters: %v", row.n, row.size, err)
		}
	}
	w.verify()
}

// A text of an imported record that is one of some words in answers is one of them.
func TestImport_KnowsWords(t *testing.T) {
	t.Parallel()
	w := newLineImport(t)
	const (
		team = "01935000-0000-7000-8000-0000000000bb"
		at   = `"createdAt":"2026-01-01T00:00:00.000Z","updatedAt":"2026-01-01T00:00:00.000Z"`
	)
	if err := w.line("team", fmt.Sprintf(`{"id":%q,"key":"ENG","name":"E","ownerId":"ann","isPublic":true,%s}`, team, at)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, row := range []struct{ kind, field, good string }{
		{"issue", "resolution", "not_planned"}, {"issue", "prState", "merged"}, {"issue", "prCheckState", "neutral"}, {"template", "resolution", "obsolete"},
	} {
		for _, value := range []string{`"wontfix"`, `""`, `null`, fmt.Sprintf("%q", row.good)} {
			n++
			record := fmt.Sprintf(`"id":"01935001-%04x-7000-8000-000000000000",%q:%s,%s`, n, row.field, value, at)
			switch row.kind {
			case "issue":
				record += fmt.Sprintf(`,"title":"T","teamId":%q,"status":"todo","priority":"low","number":%d,"identifier":"ENG-%d"`, team, n, n)
			case "template":
				record += `,"name":"N"`
			}
			err := w.line(row.kind, "{"+record+"}")
			if bad := n%4 == 1 || n%4 == 2; bad != (err != nil) || bad && !strings.Contains(err.Error(), "data."+row.field+" must be one of") {
				t.Errorf("%s with the %s %s: %v", row.kind, row.field, value, err)
			}
		}
	}
	w.verify()
}

// Each input gives a type of lines the length of a text.
func TestImport_LengthsAreOfInputs(t *testing.T) {
	t.Parallel()
	for kind, inputs := range importedInputs {
		if !slices.ContainsFunc(transferKinds, func(k transferKind) bool { return k.name == kind }) && kind != exportWorkspace {
			t.Errorf("no lines are of type %s", kind)
		}
		if len(importLengths[kind]) == 0 {
			t.Errorf("no length for lines of type %s", kind)
		}
		for _, in := range inputs {
			own := map[string]int{}
			addLengths(own, reflect.TypeOf(in))
			if len(own) == 0 {
				t.Errorf("%T has no lengths", in)
			}
		}
	}
	for path, most := range map[string]int{"data.title": maxTitle, "data.description": maxDescription, "data.prUrl": 2048} {
		if got := importLengths["issue"][path]; got != most {
			t.Errorf("%s of issues may have %d characters", path, got)
		}
	}
}
