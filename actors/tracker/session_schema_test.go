package tracker

import (
	"fmt"
	"strings"
	"testing"

	json "github.com/goccy/go-json"
)

func (f *agentFixture) dispatchWith(schema string) SessionID {
	f.Helper()
	in := DispatchIssueIn{SessionOptions: SessionOptions{ResultSchema: json.RawMessage(schema)}}
	var faults Faults
	if in.Validate(&faults); !faults.Empty() {
		f.Fatalf("schema %s: %v", schema, faults.Err())
	}
	return f.dispatch(f.work(PriorityLow).ID, in).ID
}

func (f *agentFixture) reported(id SessionID, in ReportSessionIn) ShownSession {
	f.Helper()
	in.ID = id
	return decode[ShownSession](f, f.run(f.admin, ReportSession, &in).Body)
}

func TestReport_HeldAgainstItsSchema(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	schema := `{"type": "object", "required": ["files"], "properties": {"files": {"type": "array", "items": {"$ref": "#/definitions/file"}}}, "definitions": {"file": {"type": "string", "pattern": "^[a-z.]+$"}}}`
	id := f.dispatchWith(schema)
	if got := f.session(id).ResultSchema; strings.Contains(string(got), " ") || !strings.HasPrefix(string(got), `{"type":"object"`) {
		t.Errorf("the schema is shown as %s", got)
	}
	got := f.reported(id, ReportSessionIn{Status: Some(SessionRunning), StructuredResult: json.RawMessage(`{"files":["a.go","B"]}`)})
	if !isNull(got.StructuredResult) || fmt.Sprint(*got.ResultSchemaErrors) != "[files[1]: must match the pattern ^[a-z.]+$.]" || got.Status != SessionRunning {
		t.Errorf("session %+v", got)
	}
	got = f.reported(id, ReportSessionIn{Status: Some(SessionCompleted), Result: Some(` {"files": ["a.go"]}`)})
	if got.Status != SessionCompleted || got.ResultSchemaErrors != nil || decode[struct{ Files []string }](t, got.StructuredResult).Files[0] != "a.go" {
		t.Errorf("session %+v", got)
	}
	// A result that does not fit fails a session that would be completed; a canceled
	// one stays canceled.
	id = f.dispatchWith(schema)
	if got := f.reported(id, ReportSessionIn{Status: Some(SessionCompleted), StructuredResult: json.RawMessage(`[]`)}); got.Status != SessionFailed || !isNull(got.StructuredResult) {
		t.Errorf("session %+v", got)
	}
	id = f.dispatchWith(schema)
	if got := f.reported(id, ReportSessionIn{Status: Some(SessionCanceled), StructuredResult: json.RawMessage(`[]`)}); got.Status != SessionCanceled || len(*got.ResultSchemaErrors) != 1 {
		t.Errorf("session %+v", got)
	}
	f.verify()
}

// A null that was sent is the output of a session whose schema has null, unless there is
// another one: clients send it for a field that they leave alone as well.
func TestReport_NullIsAnOutput(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	const maybe, object = `{"type": ["object", "null"]}`, `{"type": "object"}`
	for name, row := range map[string]struct {
		schema  string
		earlier string // structuredResult of a report before
		in      ReportSessionIn
		status  SessionStatus
		output  string
	}{
		"null":                        {maybe, "", ReportSessionIn{StructuredResult: json.RawMessage("null")}, SessionCompleted, "null"},
		"null in the result":          {maybe, "", ReportSessionIn{Result: Some("null")}, SessionCompleted, "null"},
		"none":                        {maybe, "", ReportSessionIn{}, SessionFailed, "null"},
		"null where it does not fit":  {object, "", ReportSessionIn{StructuredResult: json.RawMessage("null")}, SessionFailed, "null"},
		"null beside a result":        {maybe, "", ReportSessionIn{StructuredResult: json.RawMessage("null"), Result: Some(`{"a":1}`)}, SessionCompleted, `{"a":1}`},
		"null after another output":   {maybe, `{"a":2}`, ReportSessionIn{StructuredResult: json.RawMessage("null")}, SessionCompleted, `{"a":2}`},
		"null after one that did not": {maybe, "[]", ReportSessionIn{StructuredResult: json.RawMessage("null")}, SessionCompleted, "null"},
	} {
		id := f.dispatchWith(row.schema)
		if row.earlier != "" {
			f.reported(id, ReportSessionIn{Status: Some(SessionRunning), StructuredResult: json.RawMessage(row.earlier)})
		}
		row.in.Status = Some(SessionCompleted)
		got := f.reported(id, row.in)
		if got.Status != row.status || string(got.StructuredResult) != row.output || (got.ResultSchemaErrors == nil) != (row.status == SessionCompleted) {
			t.Errorf("%s: %s with %s, %v", name, got.Status, got.StructuredResult, got.ResultSchemaErrors)
		}
	}
	f.verify()
}

func TestDispatch_RefusesSchemas(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`"line"`:                          `Must be "lane" or a JSON Schema, an object.`,
		`true`:                            `Must be "lane" or a JSON Schema, an object.`,
		`{"type":"strin"}`:                "Not a JSON Schema (draft-07) that can be used: type: ",
		`{"$ref":"http://example.com/s"}`: "a schema can only refer to itself",
		`{"title":"` + strings.Repeat("x", 40_000) + `"}`: "Must be at most 32768 bytes of JSON.",
	} {
		in := DispatchIssueIn{SessionOptions: SessionOptions{ResultSchema: json.RawMessage(schema)}}
		var faults Faults
		in.Validate(&faults)
		if len(faults.list) != 1 || faults.list[0].Path != "resultSchema" || !strings.Contains(faults.list[0].Message, want) {
			t.Errorf("%.60s: %+v", schema, faults.list)
		}
	}
}

// The number of compiled schemas that a workspace's goroutine caches is limited.
func TestKnownSchemas_AreBounded(t *testing.T) {
	t.Parallel()
	var k knownSchemas
	most := 0
	for i := range 20 {
		text := json.RawMessage(fmt.Sprintf(`{"title":"%d%s"}`, i, strings.Repeat("x", 30<<10)))
		s, err := k.get(text)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := k.get(text); err != nil || again != s {
			t.Errorf("compiled again: %v", err)
		}
		if most = max(most, len(k.compiled)); k.bytes > maxSchemas {
			t.Fatalf("%d bytes", k.bytes)
		}
	}
	if most != maxSchemas/(30<<10+20) {
		t.Errorf("%d were kept", most)
	}
}

// The event of a report names only fields that have changed.
func TestReport_TheSameErrorsAgainAreNoChange(t *testing.T) {
	t.Parallel()
	f := newAgentFixture(t)
	id := f.dispatchWith(`{"type": "object"}`)
	for n, told := range []bool{true, false} {
		before := len(f.events())
		f.reported(id, ReportSessionIn{Status: Some(SessionRunning), StructuredResult: json.RawMessage(`[]`)})
		if c := f.events()[before].Changes["resultSchemaErrors"]; (c.To != nil) != told {
			t.Errorf("report %d: resultSchemaErrors changes from %s to %s", n+1, c.From, c.To)
		}
	}
}
