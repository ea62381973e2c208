package httpapi

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// bodies is the part of the description that the tests of bodies and headers read.
type bodies struct {
	Paths map[string]map[string]struct {
		RequestBody struct {
			Description string
			Content     map[string]json.RawMessage
		}
		Responses map[string]describedAnswer
	}
	Webhooks map[string]struct {
		Post struct {
			RequestBody struct {
				Content map[string]struct {
					Schema struct {
						AllOf []struct {
							Ref string `json:"$ref"`
						}
					}
				}
			}
		}
	}
	Components struct {
		Schemas   map[string]json.RawMessage
		Responses map[string]describedAnswer
	}
}

type describedAnswer struct {
	Headers map[string]json.RawMessage
}

func describedBodies(t *testing.T) *bodies {
	t.Helper()
	s, err := New(Config{Engine: &fakeEngine{}, Cluster: &fakeCluster{}})
	if err != nil {
		t.Fatal(err)
	}
	d := new(bodies)
	if err := json.Unmarshal(s.Description(), d); err != nil {
		t.Fatal(err)
	}
	return d
}

// A value that an operation takes in place of an absent field is described, also where the operation and not the
// server puts it there.
func TestDescription_HasDefaults(t *testing.T) {
	t.Parallel()
	d := describedBodies(t)
	for _, row := range []struct{ schema, field, want string }{
		{"CreateOAuthClientInput", "redirectUris", `[]`},
		{"CreateOAuthClientInput", "scopes", `[]`},
		{"CreateOAuthClientInput", "permissions", `"read"`},
		{"PatchOAuthClientInput", "permissions", ``},
		{"CreateTokenInput", "permissions", `"write"`},
		{"AddMemberInput", "role", `"member"`},
		{"CreateWebhookInput", "events", `["*"]`},
		{"PatchWebhookInput", "events", ``},
		{"CreateTeamInput", "isPublic", `true`},
		{"CreateSupportChannelInput", "isActive", `true`},
		{"CreateScimConnectionInput", "expiresInDays", `365`},
	} {
		var schema struct {
			Properties map[string]struct{ Default json.RawMessage }
		}
		if err := json.Unmarshal(d.Components.Schemas[row.schema], &schema); err != nil {
			t.Fatal(err)
		}
		if got := string(schema.Properties[row.field].Default); got != row.want {
			t.Errorf("the default of %s.%s is %s, want %s", row.schema, row.field, got, row.want)
		}
	}
}

// Only bytes that a sender has signed are described as such. Types that are neither JSON nor a form
// have no schema.
func TestDescription_RawBodies(t *testing.T) {
	t.Parallel()
	d := describedBodies(t)
	const object = `{"schema":{"additionalProperties":true,"type":"object"}}`
	for _, row := range []struct {
		path, about string
		content     map[string]string
	}{
		{"/vcs1", "signed", map[string]string{"application/json": object, "application/x-www-form-urlencoded": object}},
		{"/cluster/import", "first line of an export", map[string]string{"application/json": object}},
		{"/workspaces/{organizationId}/import", "Lines of an export", map[string]string{"application/json": object, "application/x-ndjson": `{}`}},
		{"/cluster/workspaces/{organizationId}/arrival/{id}/rows", "block of rows", map[string]string{RowsMedia: `{}`}},
	} {
		body := d.Paths[row.path]["post"].RequestBody
		content := map[string]string{}
		for name, one := range body.Content {
			content[name] = string(one)
		}
		if !strings.Contains(body.Description, row.about) || !maps.Equal(content, row.content) {
			t.Errorf("%s: %q, %v", row.path, body.Description, content)
		}
	}
}

// The binder refuses integers that not every JSON implementation keeps, so every integer of a body has
// bounds.
func TestDescription_BoundsIntegers(t *testing.T) {
	t.Parallel()
	d := describedBodies(t)
	var look func(at string, node any)
	look = func(at string, node any) {
		switch node := node.(type) {
		case map[string]any:
			kinds, several := node["type"].([]any)
			if _, bounded := node["maximum"]; !bounded && (node["type"] == "integer" || several && slices.Contains(kinds, any("integer"))) {
				t.Errorf("%s has no maximum", at)
			}
			for name, child := range node {
				look(at+"."+name, child)
			}
		case []any:
			for _, child := range node {
				look(at, child)
			}
		}
	}
	for name, schema := range d.Components.Schemas {
		if !strings.HasSuffix(name, "Input") {
			continue
		}
		var node any
		if err := json.Unmarshal(schema, &node); err != nil {
			t.Fatal(err)
		}
		look(name, node)
	}
}

// The answers that a limit on requests counts declare its headers (Decision 50), those to callers without
// a credential too, and others don't.
func TestDescription_DeclaresRates(t *testing.T) {
	t.Parallel()
	d := describedBodies(t)
	for _, row := range []struct {
		name   string
		answer describedAnswer
		rated  bool
	}{
		{"GET /workspaces", d.Paths["/workspaces"]["get"].Responses["200"], true},
		{"GET .../issues/{id}", d.Paths["/workspaces/{organizationId}/issues/{id}"]["get"].Responses["304"], true},
		{"POST .../issues", d.Paths["/workspaces/{organizationId}/issues"]["post"].Responses["201"], true},
		{"POST .../mcp", d.Paths["/workspaces/{organizationId}/agent/sessions/{id}/mcp"]["post"].Responses["202"], true},
		{"GET /scim/.../Users", d.Paths["/scim/v2/{organizationId}/Users"]["get"].Responses["200"], true},
		{"GET /scim/.../Users", d.Paths["/scim/v2/{organizationId}/Users"]["get"].Responses["429"], true},
		{"the error 429", d.Components.Responses["TooManyRequests"], true},
		{"the error 409", d.Components.Responses["Conflict"], true},
		{"GET /cluster", d.Paths["/cluster"]["get"].Responses["200"], false},
		{"GET /shared-issues", d.Paths["/shared-issues/{organizationId}/{token}"]["get"].Responses["200"], true},
		{"POST /oauth/token", d.Paths["/oauth/token"]["post"].Responses["401"], true},
		{"GET /docs", d.Paths["/docs"]["get"].Responses["304"], true},
		{"GET /healthz", d.Paths["/healthz"]["get"].Responses["200"], false},
	} {
		if len(row.answer.Headers) == 0 {
			t.Errorf("%s is not described", row.name)
		}
		for _, name := range rateHeaders {
			if _, declared := row.answer.Headers[string(name)]; declared != row.rated {
				t.Errorf("%s declares %s: %t", row.name, name, declared)
			}
		}
	}
}

// A subscription may be sent an event in part, and the answer to an onboarding is whole.
func TestDescription_OfDeliveriesAndOnboarding(t *testing.T) {
	t.Parallel()
	d := describedBodies(t)
	for name, webhook := range d.Webhooks {
		parts := webhook.Post.RequestBody.Content["application/json"].Schema.AllOf
		if len(parts) != 2 || parts[0].Ref != "#/components/schemas/DeliveredEvent" {
			t.Errorf("%s: %v", name, parts)
		}
	}
	const omitted = `{"$ref":"#/components/schemas/DeliveryOmission"}`
	for schema, parts := range map[string][]string{
		"DeliveredEvent": {`"dataOmitted":` + omitted, `"changesOmitted":` + omitted, `"type":["object","null"]`, `"required":["id","type","organizationId","sequence","createdAt","actor","data"]`},
		"Onboarded":      {`"workspace":{"$ref":"#/components/schemas/Workspace"}`, `"team":{"$ref":"#/components/schemas/Team"}`, `"token":{"$ref":"#/components/schemas/CreatedToken"}`},
	} {
		for _, part := range parts {
			if !strings.Contains(string(d.Components.Schemas[schema]), part) {
				t.Errorf("%s lacks %s: %s", schema, part, d.Components.Schemas[schema])
			}
		}
	}
}
