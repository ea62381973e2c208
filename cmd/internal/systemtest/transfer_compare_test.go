package systemtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// recordsOf are the types of lines of an export whose ids stand for {id} in the routes that begin with a path.
var recordsOf = map[string]string{
	"/agent/sessions": "session", "/agents": "agent", "/attachments": "attachment", "/comments": "comment", "/cycles": "cycle", "/deals": "deal", "/drafts": "draft",
	"/issues": "issue", "/labels": "label", "/oauth-clients": "oauth_client", "/projects": "project", "/support-channels": "support_channel", "/teams": "team",
	"/templates": "template", "/tickets": "ticket", "/webhook-subscriptions": "webhook_subscription",
}

// notInExports are the routes of a workspace whose answers don't follow from an export, with the reason.
var notInExports = map[string]string{
	"/audit":          "says what was done in this service",
	"/events":         "the event log is not part of an export",
	"/export":         "the test compares it itself",
	"/import":         "is about one copy",
	"/inbound-routes": "the operator of a cluster confirms its routes",
}

// itsOwn are the routes of which a workspace that an export fills keeps its own: slug and owner, and the token
// and the member that it began with.
var itsOwn = map[string]bool{"": true, "/members": true, "/tokens": true}

// asksMore are questions beside the routes as they are.
var asksMore = []string{
	"/issues?limit=100&includeSnoozed=true", "/issues?limit=100&status=done", "/issues?limit=100&archived=true", "/issues?search=parent", "/agent/sessions?limit=100", "/agent/sessions?deadLettered=true",
	"/drafts?limit=100", "/tickets?limit=100", "/issue-analytics?groupBy=status", "/issue-analytics?groupBy=assigneeId", "/issue-analytics?groupBy=cycleId", "/issue-analytics?groupBy=teamId",
	"/usage?groupBy=issue", "/usage?groupBy=month", "/usage?groupBy=session", "/usage?groupBy=agent", "/usage?groupBy=project", "/usage?groupBy=model",
}

// getRoutes returns the paths of all GETs in a workspace, without the part that names it, as the service
// describes them.
func getRoutes(t *testing.T, c *Client) (routes []string) {
	t.Helper()
	var description struct{ Paths map[string]map[string]any }
	if err := c.Decode(t.Context(), "GET", "/openapi.json", nil, http.StatusOK, &description); err != nil {
		t.Fatal(err)
	}
	for path, methods := range description.Paths {
		if rest, is := strings.CutPrefix(path, "/workspaces/{organizationId}"); is && methods["get"] != nil {
			routes = append(routes, rest)
		}
	}
	slices.Sort(routes)
	return routes
}

// exportedPaths returns every GET that has an answer from the lines of an export: each route, with {id} for
// each record of its kind.
func exportedPaths(t *testing.T, c *Client, text []byte) (paths []string) {
	t.Helper()
	ids := map[string][]string{}
	children := 0
	paths = slices.Clone(asksMore)
	for line := range bytes.SplitSeq(text, []byte{'\n'}) {
		var l transferLine
		if json.Unmarshal(line, &l) != nil || l.Type == "end" {
			continue
		}
		if l.Type == "issue" && l.Data["title"] == "Child" {
			if children++; children > 3 { // there are hundreds, all alike
				continue
			}
		}
		if id, is := l.Data["id"].(string); is {
			ids[l.Type] = append(ids[l.Type], id)
		}
		switch l.Type {
		case "issue", "former_identifier":
			paths = append(paths, "/issues?includeSnoozed=true&archived=true&identifier="+l.Data["identifier"].(string), "/issues?includeSnoozed=true&identifier="+l.Data["identifier"].(string))
		}
	}
	for _, route := range getRoutes(t, c) {
		if notInExports[route] != "" {
			continue
		}
		before, after, named := strings.Cut(route, "/{id}")
		if route == "/issue-analytics/burndown" {
			before, after, named = route+"?cycleId=", "", true
		}
		if !named {
			paths = append(paths, route)
			continue
		}
		kind := recordsOf[before]
		if strings.HasSuffix(before, "=") {
			kind = "cycle"
		} else {
			before += "/"
		}
		if len(ids[kind]) == 0 {
			t.Errorf("GET %s: the export has no line of type %q", route, kind)
		}
		if after == "/deliveries" {
			after += "?status=succeeded" // one to be made is made by the service that has its event
		}
		for _, id := range ids[kind] {
			paths = append(paths, before+id+after)
		}
	}
	return paths
}

// compareGets compares what two workspaces with the same content show on every GET.
func compareGets(t *testing.T, a, b *Client, from, to string, text []byte) {
	t.Helper()
	for _, path := range exportedPaths(t, a, text) {
		if from != to && itsOwn[path] {
			continue
		}
		one, err := a.Do(t.Context(), "GET", "/workspaces/"+from+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		other, err := b.Do(t.Context(), "GET", "/workspaces/"+to+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		// When a token was used last is about its service.
		want, got := lastUse.ReplaceAll(maskCursors(one.Body), nil), lastUse.ReplaceAll(maskCursors(bytes.ReplaceAll(other.Body, []byte(to), []byte(from))), nil)
		if one.Status != other.Status || !bytes.Equal(want, got) {
			t.Errorf("GET %s: %d %.1000s\nwas %d %.1000s", path, other.Status, got, one.Status, want)
		}
	}
}

// maskCursors takes the positions out of lists: they name the workspace.
func maskCursors(body []byte) []byte {
	if at := bytes.LastIndex(body, []byte(`,"nextCursor":`)); at >= 0 {
		return body[:at]
	}
	return body
}
