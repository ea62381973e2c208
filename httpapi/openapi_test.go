package httpapi

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"switchyard/actors/tracker"
)

func TestDescription_IsValidAndComplete(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Engine: &fakeEngine{}, Cluster: &fakeCluster{}, PublicURL: "https://switchyard.example"})
	if err != nil {
		t.Fatal(err)
	}
	raw := descriptionOf(t, s)
	described, err := openapi3.NewLoader().LoadFromData(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := described.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if described.OpenAPI != "3.1.0" {
		t.Errorf("version %q", described.OpenAPI)
	}
	ids := map[string]bool{}
	for _, rt := range s.routes {
		item := described.Paths.Value(rt.describedPath())
		if item == nil || item.GetOperation(rt.Method) == nil {
			t.Errorf("%s is not described", rt.label)
			continue
		}
		operation := item.GetOperation(rt.Method)
		if operation.Summary == "" || operation.OperationID == "" || ids[operation.OperationID] {
			t.Errorf("%s: summary %q, operation id %q", rt.label, operation.Summary, operation.OperationID)
		}
		ids[operation.OperationID] = true
		if rt.Op == nil {
			continue // one of the server's own paths
		}
		for _, status := range declaredStatuses(rt.Op) {
			response := operation.Responses.Status(status)
			if response == nil {
				t.Errorf("%s: %d is not described", rt.label, status)
			} else if response.Value.Headers["X-Request-Id"] == nil {
				t.Errorf("%s: %d lacks X-Request-Id", rt.label, status)
			}
		}
		for _, name := range rt.params {
			if operation.Parameters.GetByInAndName("path", name) == nil {
				t.Errorf("%s: path parameter %s is not described", rt.label, name)
			}
		}
	}
	if n := len(s.routes); n != operations(described) {
		t.Errorf("%d routes, %d described", n, operations(described))
	}
}

func operations(described *openapi3.T) int {
	n := 0
	for _, item := range described.Paths.Map() {
		n += len(item.Operations())
	}
	return n
}

// Every status that errors.go knows has a response of its code in the description.
func TestDescription_HasEveryError(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Engine: &fakeEngine{}})
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Components struct {
			Responses map[string]json.RawMessage
			Schemas   struct {
				Error struct {
					Properties struct {
						Code struct{ Enum []string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(descriptionOf(t, s), &d); err != nil {
		t.Fatal(err)
	}
	general := []int{http.StatusMethodNotAllowed, http.StatusRequestTimeout, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge}
	for code, status := range statuses {
		// Errors that no operation can answer have no response of their own.
		response, described := d.Components.Responses[responseName(status)]
		if described == slices.Contains(general, status) || described && !strings.Contains(string(response), `"`+string(code)+`"`) {
			t.Errorf("%s (%d): %s", code, status, response)
		}
		if !slices.Contains(d.Components.Schemas.Error.Properties.Code.Enum, string(code)) {
			t.Errorf("%s is not in the Error schema", code)
		}
	}
}

// The details of each error are described where the error has some: those of a refused duplicate, of a limit and
// others.
func TestDescription_HasDetailsOfErrors(t *testing.T) {
	t.Parallel()
	described := describedBy(t, Config{Engine: &fakeEngine{}})
	responses := described.Paths.Value("/workspaces/{organizationId}/issues").GetOperation(http.MethodPost).Responses
	for _, row := range []struct {
		status  int
		details string // some that the status may have
		fits    bool
	}{
		{http.StatusConflict, `{"possibleDuplicates":[{"id":"i","identifier":"CORE-1","title":"Crash","status":"backlog","score":0.5}]}`, true},
		{http.StatusConflict, `{"possibleDuplicates":[{"id":"i"}]}`, false},
		{http.StatusConflict, `{"limit":"issues","max":3}`, true},
		{http.StatusConflict, `{"limit":"issues"}`, false},
		{http.StatusConflict, `{"issueId":"i","archivedAt":"2026-11-20T21:30:00Z"}`, true},
		{http.StatusConflict, `{"draftId":"d","status":"discarded","reviewedById":null,"reviewedAt":null}`, true},
		{http.StatusConflict, `{"issues":[{"path":"payload.title","message":"Is required."}]}`, true},
		{http.StatusConflict, `{"sessionId":"s","status":"created","holder":null,"leaseExpiresAt":null}`, true},
		{http.StatusConflict, `{"path":["PLN-2","PLN-1"]}`, true},
		{http.StatusTooManyRequests, `{"limit":"createsPerSecond","max":3}`, true},
		{http.StatusTooManyRequests, `{"max":3}`, false},
		{http.StatusNotFound, `{"missing":["i"]}`, true},
		{http.StatusNotFound, `{"missing":"i"}`, false},
	} {
		var details any
		if err := json.Unmarshal([]byte(row.details), &details); err != nil {
			t.Fatal(err)
		}
		schema := responses.Status(row.status).Value.Content["application/json"].Schema.Value.AllOf[1].Value.Properties["details"]
		if schema == nil {
			t.Errorf("the details of %d are not described", row.status)
		} else if err := schema.Value.VisitJSON(details); (err == nil) != row.fits {
			t.Errorf("%d with the details %s: %v", row.status, row.details, err)
		}
	}
}

// describedBy returns the description of a server, as a reader of OpenAPI understands it.
func describedBy(t *testing.T, cfg Config) *openapi3.T {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	described, err := openapi3.NewLoader().LoadFromData(s.Description())
	if err != nil {
		t.Fatal(err)
	}
	return described
}

// Statuses that follow from the credential or from the state of an issue are declared
// where operations answer them.
func TestDescription_DeclaresRefusals(t *testing.T) {
	t.Parallel()
	described := describedBy(t, Config{Engine: &fakeEngine{}})
	const workspace = "/workspaces/{organizationId}"
	for _, row := range []struct {
		status       int
		method, path string
	}{
		// of a credential that is for something else
		{http.StatusForbidden, http.MethodGet, "/workspaces"},
		{http.StatusForbidden, http.MethodPost, "/workspaces"},
		{http.StatusForbidden, http.MethodGet, "/workspaces/slug/{slug}"},
		{http.StatusForbidden, http.MethodDelete, workspace},
		// of a lane token whose claim is over
		{http.StatusConflict, http.MethodGet, workspace + "/issues/{id}"},
		{http.StatusConflict, http.MethodGet, workspace + "/drafts"},
		{http.StatusConflict, http.MethodGet, workspace + "/drafts/{id}"},
		{http.StatusConflict, http.MethodGet, workspace + "/agent/sessions/{id}"},
		{http.StatusConflict, http.MethodPost, workspace + "/agent/sessions/{id}/poll"},
		// of a workspace without room for the event
		{http.StatusConflict, http.MethodPost, "/vcs1"},
		// of a workspace without room for another token
		{http.StatusConflict, http.MethodPost, "/console/session"},
		// of an archived issue
		{http.StatusConflict, http.MethodDelete, workspace + "/comments/{id}"},
		{http.StatusConflict, http.MethodDelete, workspace + "/issues/{id}/permissions/{actorId}"},
		{http.StatusConflict, http.MethodDelete, workspace + "/issues/{id}/share/{token}"},
		{http.StatusConflict, http.MethodDelete, workspace + "/issues/{id}/relations/{type}/{otherId}"},
	} {
		if described.Paths.Value(row.path).GetOperation(row.method).Responses.Status(row.status) == nil {
			t.Errorf("%s %s: %d is not declared", row.method, row.path, row.status)
		}
	}
}

// Every tag that an operation has says what it is for, every operation says what it
// needs, and every type of event is among the webhooks.
func TestDescription_Explains(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Engine: &fakeEngine{}, Cluster: &fakeCluster{}})
	if err != nil {
		t.Fatal(err)
	}
	described, err := openapi3.NewLoader().LoadFromData(s.Description())
	if err != nil {
		t.Fatal(err)
	}
	tags := map[string]bool{}
	for _, tag := range described.Tags {
		if tag.Description == "" {
			t.Errorf("tag %s has no description", tag.Name)
		}
		tags[tag.Name] = true
	}
	permission := regexp.MustCompile(`\b\w+:(read|write)\b`)
	for path, item := range described.Paths.Map() {
		for method, operation := range item.Operations() {
			for _, word := range permission.FindAllString(operation.Description, -1) {
				if !slices.Contains(tracker.PermissionWords(), word) {
					t.Errorf("%s %s needs %s, which no token can have", method, path, word)
				}
			}
			if operation.Description == "" || len(operation.Tags) != 1 || !tags[operation.Tags[0]] {
				t.Errorf("%s %s: description %q, tags %v", method, path, operation.Description, operation.Tags)
			}
		}
	}
	var d struct{ Webhooks map[string]json.RawMessage }
	if err := json.Unmarshal(s.Description(), &d); err != nil {
		t.Fatal(err)
	}
	for _, name := range tracker.WebhookEventTypes() {
		if d.Webhooks[name] == nil {
			t.Errorf("%s is not among the webhooks", name)
		}
	}
}

// Operations that check more than a right of the caller say so.
func TestDescription_NamesCallers(t *testing.T) {
	t.Parallel()
	described := describedBy(t, Config{Engine: &fakeEngine{}})
	const workspace = "/workspaces/{organizationId}"
	for _, row := range []struct{ method, path, needs string }{
		{http.MethodGet, "/workspaces", "the permission read."},
		{http.MethodPost, "/workspaces", "a user's token that the user created, with the permission write, or the operator's token."},
		{http.MethodGet, "/workspaces/slug/{slug}", "the permission read."},
		{http.MethodDelete, workspace, "the owner or admin role in the workspace, and the permission admin."},
		{http.MethodPut, workspace + "/holds/{scope}", "the owner or admin role in the workspace, and the permission admin; for the hold of an agent, a token of that agent"},
		{http.MethodDelete, workspace + "/holds/{scope}", "the owner or admin role in the workspace, and the permission admin; for the hold of an agent, a token of that agent"},
		{http.MethodPost, workspace + "/agent/sessions/register", "the permission write or sessions:write, and read or issues:read."},
		{http.MethodPost, workspace + "/agent/sessions/{id}/reply", "the permission write or sessions:write, of a user"},
		{http.MethodPost, workspace + "/issues/bulk", "the permission write or issues:write, and where an item has dispatch write or sessions:write as well."},
	} {
		if about := described.Paths.Value(row.path).GetOperation(row.method).Description; !strings.HasPrefix(about, "Needs "+row.needs) {
			t.Errorf("%s %s: %q, want it to need %s", row.method, row.path, about, row.needs)
		}
	}
}

// The version is the API's, and no build changes it (Decision 50).
func TestDescription_Version(t *testing.T) {
	t.Parallel()
	b := setup(t, func(c *Config) { c.Version = "v9.9.9" })
	var d struct{ Info struct{ Version string } }
	if err := json.Unmarshal([]byte(b.do(t, "GET", "/openapi.json", "").body), &d); err != nil || d.Info.Version != "0.1.0" {
		t.Errorf("version %q, %v", d.Info.Version, err)
	}
}

func TestDescription_ShowsLimits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var d struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Schemas map[string]json.RawMessage }
	}
	raw := b.do(t, "GET", "/openapi.json", "").body
	if err := json.Unmarshal([]byte(raw), &d); err != nil {
		t.Fatal(err)
	}
	for schema, parts := range map[string][]string{
		"MakeThingInput": {
			`"required":["title"]`, `"maxLength":20`, `"enum":["red","green"]`, `"type":["string","null"]`, `"maxItems":3`, `"format":"uri"`,
			`"format":"date-time"`, `"default":true`, `"minimum":0`, `"additionalProperties":{"maxLength":5,"type":"string"}`,
		},
		"StrictThingInput": {`"additionalProperties":false`, `"minItems":1`},
		"thing":            {`"required":["id","color","note","at"]`, `"enum":["red","green"]`, `"$ref":"#/components/schemas/thing"`},
	} {
		for _, part := range parts {
			if !strings.Contains(string(d.Components.Schemas[schema]), part) {
				t.Errorf("%s lacks %s: %s", schema, part, d.Components.Schemas[schema])
			}
		}
	}
	if n := strings.Count(string(d.Components.Schemas["StrictThingInput"]), `"additionalProperties":false`); n != 2 {
		t.Errorf("%d of the 2 objects of StrictThingInput take no unknown properties", n)
	}
	// A query keeps no answer, also one that is made by POST.
	if watch := string(d.Paths["/w/{organizationId}/watch"]["post"]); watch == "" || strings.Contains(watch, "Idempotency") || strings.Contains(watch, `"422"`) {
		t.Errorf("the query by POST: %s", watch)
	}
	list := string(d.Paths["/w/{organizationId}/things"]["get"])
	for _, part := range []string{`"name":"limit"`, `"default":50`, `"maximum":100`, `"401"`, `"403"`, `"404"`, `"503"`} {
		if !strings.Contains(list, part) {
			t.Errorf("the list lacks %s: %s", part, list)
		}
	}
}

func descriptionOf(t *testing.T, s *Server) []byte {
	t.Helper()
	b := serve(t, s)
	a := b.do(t, "GET", "/openapi.json", "")
	if a.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	return []byte(a.body)
}
