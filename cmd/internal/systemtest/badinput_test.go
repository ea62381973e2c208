package systemtest

import (
	"encoding/base64"
	"slices"
	"strings"
)

// A badRequest is refused, and says what is wrong with it: a code, and the paths of
// the faults when it is a 400. Names in braces stand for the fixture's.
type badRequest struct {
	request string // method and path in the workspace
	body    any
	status  int
	faults  string // paths, with spaces between them
}

func shot(kind string, content string) object {
	return object{"url": "https://example.com", "screenshot": object{"contentType": kind, "contentBase64": base64.StdEncoding.EncodeToString([]byte(content))}}
}

const (
	pngMagic  = "\x89PNG\r\n\x1a\n"
	jpegMagic = "\xff\xd8\xff\xe0"
	webpMagic = "RIFF\x04\x00\x00\x00WEBP"
	noID      = "01931f6e-7a3c-7def-8123-456789abcdef"
)

var badRequests = slices.Concat(badLists, badIssues, badCaptures, badAccess, badRest, badOutside, badAttempts)

var badLists = []badRequest{
	{"GET /issues?limit=0", nil, 400, "query.limit"},
	{"GET /issues?limit=101", nil, 400, "query.limit"},
	{"GET /issues?limit=-1", nil, 400, "query.limit"},
	{"GET /issues?limit=", nil, 400, "query.limit"},
	{"GET /issues?limit=1e1", nil, 400, "query.limit"},
	{"GET /issues?limit=99999999999999999999", nil, 400, "query.limit"},
	{"GET /issues?status=open", nil, 400, "query.status"},
	{"GET /issues?status=", nil, 400, "query.status"},
	{"GET /issues?status=Todo", nil, 400, "query.status"},
	{"GET /issues?priority=p0", nil, 400, "query.priority"},
	{"GET /issues?view=everything", nil, 400, "query.view"},
	{"GET /issues?view=", nil, 400, "query.view"},
	{"GET /issues?hasParent=1", nil, 400, "query.hasParent"},
	{"GET /issues?isParent=yes", nil, 400, "query.isParent"},
	{"GET /issues?isDraft=TRUE", nil, 400, "query.isDraft"},
	{"GET /issues?includeSnoozed=", nil, 400, "query.includeSnoozed"},
	{"GET /issues?status=open&priority=p0&limit=0&hasParent=x", nil, 400, "query.hasParent query.limit query.priority query.status"},
	{"GET /issues?search=" + strings.Repeat("x", 1001), nil, 400, "query.search"},
	{"GET /issues?status=todo&status=done", nil, 400, "query.status"},
	{"GET /issues?search=%ff", nil, 400, "query.search"},
	{"GET /triage?status=open", nil, 400, "query.status"},
	{"GET /triage?limit=0", nil, 400, "query.limit"},
	{"GET /issues?cursor=x", nil, 400, "query.cursor"},
	{"GET /issues?cursor=", nil, 400, "query.cursor"},
	{"GET /issues?cursor={cursor}x", nil, 400, "query.cursor"},
	{"GET /issues?status=backlog&cursor={cursor}", nil, 400, "query.cursor"},
	{"GET /issues?search=bad&cursor={cursor}", nil, 400, "query.cursor"},
	{"GET /triage?cursor={cursor}", nil, 400, "query.cursor"},
	{"GET /issues/{issue}/children?cursor={cursor}", nil, 400, "query.cursor"},
	{"GET /issues/{issue}/comments?cursor={cursor}", nil, 400, "query.cursor"},
	{"GET /issues/{issue}/history?cursor={cursor}", nil, 400, "query.cursor"},
	{"GET /labels?cursor={cursor}", nil, 400, "query.cursor"},
	{"GET /issues?cursor={foreignCursor}", nil, 400, "query.cursor"},
	{"GET /issues?status=backlog&cursor={searchCursor}", nil, 400, "query.cursor"},
	{"GET /issues/{issue}/similar?limit=0", nil, 400, "query.limit"},
	{"GET /issues/{issue}/similar?limit=51", nil, 400, "query.limit"},
	{"GET /issues/{issue}/similar?limit=ten", nil, 400, "query.limit"},
	{"GET /issues/" + noID + "/similar", nil, 404, ""},
	{"GET /issues/{foreignIssue}/similar", nil, 404, ""},
	{"GET /export?after=x", nil, 400, "query.after"},
	{"GET /export?after=-1", nil, 400, "query.after"},
	{"GET /export?after=99999999999999999999", nil, 400, "query.after"},
	{"GET /issue-analytics?groupBy=title", nil, 400, "query.groupBy"},
	{"GET /issue-analytics?groupBy=", nil, 400, "query.groupBy"},
	{"GET /issue-analytics/burndown", nil, 400, "query.cycleId"},
	{"GET /issue-analytics/burndown?cycleId=", nil, 400, "query.cycleId"},
	{"GET /issue-analytics/burndown?cycleId=" + strings.Repeat("x", 256), nil, 400, "query.cycleId"},
}

var badIssues = []badRequest{
	{"POST /issues", object{}, 400, "title"},
	{"POST /issues", object{"title": ""}, 400, "title"},
	{"POST /issues", object{"title": nil}, 400, "title"},
	{"POST /issues", object{"title": 7}, 400, "title"},
	{"POST /issues", object{"title": strings.Repeat("x", 1001)}, 400, "title"},
	{"POST /issues", object{"title": "x", "description": strings.Repeat("x", 262145)}, 400, "description"},
	{"POST /issues", object{"title": "x", "status": "open", "priority": nil, "resolution": "fixed", "estimate": -1}, 400, "estimate priority resolution status"},
	{"POST /issues", object{"title": "x", "estimate": 1.5}, 400, "estimate"},
	{"POST /issues", object{"title": "x", "estimate": 1e300}, 400, "estimate"},
	{"POST /issues", object{"title": "x", "externalRef": ""}, 400, "externalRef"},
	{"POST /issues", object{"title": "x", "externalRef": strings.Repeat("x", 256)}, 400, "externalRef"},
	{"POST /issues", object{"title": "x", "snoozedUntil": "tomorrow"}, 400, "snoozedUntil"},
	{"POST /issues", object{"title": "x", "snoozedUntil": "2026-02-30T00:00:00Z"}, 400, "snoozedUntil"},
	{"POST /issues", object{"title": "x", "labelIds": "red"}, 400, "labelIds"},
	{"POST /issues", object{"title": "x", "labelIds": []any{"", 7}}, 400, "labelIds[0] labelIds[1]"},
	{"POST /issues", object{"title": "x", "labelIds": strings.Split(strings.Repeat("x ", 100)+"x", " ")}, 400, "labelIds"},
	{"POST /issues", object{"title": "x", "teamId": noID}, 400, "teamId"},
	{"POST /issues", object{"title": "x", "teamId": "{foreignTeam}"}, 400, "teamId"},
	{"POST /issues", object{"title": "x", "teamId": nil}, 400, "teamId"},
	{"POST /issues", object{"title": "x", "teamKey": "NONE"}, 400, "teamKey"},
	{"POST /issues", object{"title": "x", "teamId": "{team}", "teamKey": "OTHER"}, 400, "teamKey"},
	{"POST /issues", object{"title": "x", "parentId": noID}, 400, "parentId"},
	{"POST /issues", object{"title": "x", "parentId": "parent"}, 400, "parentId"},
	{"POST /issues", object{"title": "x", "parentId": "{foreignIssue}"}, 400, "parentId"},
	{"POST /issues", object{"title": "x", "parentId": noID, "teamId": noID}, 400, "parentId teamId"},
	{"POST /issues?dedupe=ask", object{"title": "x"}, 400, "query.dedupe"},
	{"POST /issues?dedupe=block", object{"title": "Bad requests"}, 409, ""},
	{"PATCH /issues/{issue}", object{"parentId": "{issue}"}, 400, "parentId"},
	{"PATCH /issues/{issue}", object{"parentId": "{child}"}, 400, "parentId"},
	{"PATCH /issues/{issue}", object{"parentId": "{grandchild}"}, 400, "parentId"},
	{"PATCH /issues/{issue}", object{"parentId": noID, "teamKey": "NONE"}, 400, "parentId teamKey"},
	{"PATCH /issues/{issue}", object{"title": nil, "status": nil, "isDraft": nil}, 400, "isDraft status title"},
	{"PATCH /issues/{issue}", object{"prUrl": "pull/1", "prState": "new"}, 400, "prState prUrl"},
	{"PATCH /issues/{issue}", object{"externalRef": "taken"}, 409, ""},
	{"PATCH /issues/" + noID, object{"title": "x"}, 404, ""},
	{"PATCH /issues/{foreignIssue}", object{"title": "x"}, 404, ""},
	{"POST /issues/batch", object{"ids": []string{"{issue}", "{grandchild}"}, "patch": object{"parentId": "{child}", "title": "Changed"}}, 400, "patch.parentId"},
	{"POST /issues/batch", object{"ids": []string{"{issue}", "{foreignIssue}"}, "patch": object{"title": "Changed"}}, 404, ""},
	{"POST /issues/batch", object{"ids": []string{"{issue}", "{child}"}, "patch": object{"externalRef": "two"}}, 409, ""},
	{"POST /issues/batch", object{"ids": []string{}, "patch": object{}}, 400, "ids"},
	{"POST /issues/batch", object{"ids": []string{""}, "patch": object{"status": "open"}}, 400, "ids[0] patch.status"},
	{"POST /issues/batch", object{"ids": slices.Repeat([]string{"{issue}"}, 101), "patch": object{}}, 400, "ids"},
	{"POST /issues/batch", object{"ids": []string{"{issue}"}}, 400, "patch"},
	{"POST /issues/{issue}/assign", object{}, 400, "assigneeId"},
	{"POST /issues/{issue}/assign", object{"assigneeId": ""}, 400, "assigneeId"},
	{"POST /issues/" + noID + "/assign", object{"assigneeId": "x"}, 404, ""},
	{"PUT /issues/{issue}/relations/blocks/{issue}", nil, 400, "path.otherId"},
	{"PUT /issues/{issue}/relations/precedes/{child}", nil, 400, "path.type"},
	{"PUT /issues/{issue}/relations/Blocks/{issue}", nil, 400, "path.otherId path.type"},
	{"PUT /issues/{issue}/relations/blocks/{grandchild}", nil, 409, ""}, // a ring
	{"PUT /issues/{grandchild}/relations/blocked_by/{issue}", nil, 409, ""},
	{"PUT /issues/{issue}/relations/blocks/" + noID, nil, 404, ""},
	{"PUT /issues/" + noID + "/relations/blocks/{issue}", nil, 404, ""},
	{"PUT /issues/{issue}/relations/blocks/{foreignIssue}", nil, 404, ""},
	{"PUT /issues/{foreignIssue}/relations/blocks/{issue}", nil, 404, ""},
	{"PUT /issues/{issue}/relations/blocks/next", nil, 404, ""},
	{"DELETE /issues/{issue}/relations/blocks/{child}", nil, 404, ""},
	{"DELETE /issues/{issue}/relations/relates/{issue}", nil, 400, "path.otherId"},
	{"DELETE /issues/{foreignIssue}/relations/blocks/{issue}", nil, 404, ""},
	{"GET /issues/{issue}/relations?limit=0", nil, 400, "query.limit"},
	{"GET /issues/{issue}/graph?depth=0", nil, 400, "query.depth"},
	{"GET /issues/{issue}/graph?depth=11&direction=sideways", nil, 400, "query.depth query.direction"},
	{"GET /issues/{foreignIssue}/graph", nil, 404, ""},
	{"GET /issues?ready=yes&blocked=1", nil, 400, "query.blocked query.ready"},
	{"GET /triage?ready=", nil, 400, "query.ready"},
	{"GET /issues/{issue}/relations?cursor={cursor}", nil, 400, "query.cursor"},
	{"GET /issues/{foreignIssue}/relations", nil, 404, ""},
	{"DELETE /issues/{foreignIssue}", nil, 404, ""},
	{"GET /issues/{foreignIssue}/children", nil, 404, ""},
	{"GET /issues/{foreignIssue}/branch-name", nil, 404, ""},
	{"GET /issues/{foreignIssue}/history", nil, 404, ""},
}

var badCaptures = []badRequest{
	{"POST /capture", object{}, 400, "url"},
	{"POST /capture", object{"url": "example"}, 400, "url"},
	{"POST /capture", object{"url": "javascript:alert(1)"}, 400, "url"},
	{"POST /capture", object{"url": "https://"}, 400, "url"},
	{"POST /capture", object{"url": "https://example.com", "title": "", "projectId": "", "teamKey": 7}, 400, "projectId teamKey title"},
	{"POST /capture", object{"url": "https://example.com", "teamId": noID}, 400, "teamId"},
	{"POST /capture", object{"url": "https://example.com", "teamKey": "NONE"}, 400, "teamKey"},
	{"POST /capture", object{"url": "https://example.com", "selection": strings.Repeat("x", 65537)}, 400, "selection"},
	{"POST /capture", object{"url": "https://example.com", "screenshot": object{}}, 400, "screenshot.contentBase64"},
	{"POST /capture", object{"url": "https://example.com", "screenshot": object{"contentBase64": ""}}, 400, "screenshot.contentBase64"},
	{"POST /capture", object{"url": "https://example.com", "screenshot": object{"contentBase64": "%%%"}}, 400, "screenshot.contentBase64"},
	{"POST /capture", object{"url": "https://example.com", "screenshot": "x"}, 400, "screenshot"},
	{"POST /capture", shot("image/gif", "GIF89a"), 400, "screenshot.contentType"},
	{"POST /capture", shot("image/png", "GIF89a"), 400, "screenshot.contentBase64"},
	{"POST /capture", shot("image/png", jpegMagic+"rest"), 400, "screenshot.contentBase64"},
	{"POST /capture", shot("image/jpeg", pngMagic+"rest"), 400, "screenshot.contentBase64"},
	{"POST /capture", shot("image/webp", pngMagic+"rest"), 400, "screenshot.contentBase64"},
	{"POST /capture", shot("image/png", webpMagic+"rest"), 400, "screenshot.contentBase64"},
	{"POST /capture", shot("image/png", pngMagic[:7]), 400, "screenshot.contentBase64"},
	{"POST /capture", shot("image/png", "<script>"+pngMagic), 400, "screenshot.contentBase64"},
	{"POST /capture", shot("image/png", string(picture(largestScreenshot+1))), 400, "screenshot.contentBase64"},
	{"GET /attachments/" + noID, nil, 404, ""},
	{"GET /attachments/{foreignAttachment}", nil, 404, ""},
	{"GET /issues/{foreignIssue}/attachments", nil, 404, ""},
}

var badAccess = []badRequest{
	{"PUT /issues/{issue}/permissions", object{}, 400, "actorId"},
	{"PUT /issues/{issue}/permissions", object{"actorId": "", "actorType": "system"}, 400, "actorId actorType"},
	{"PUT /issues/{foreignIssue}/permissions", object{"actorId": "x"}, 404, ""},
	{"DELETE /issues/{issue}/permissions/nobody", nil, 404, ""},
	{"DELETE /issues/{foreignIssue}/permissions/nobody", nil, 404, ""},
	{"POST /issues/{issue}/share", object{"expiresAt": "2020-01-01T00:00:00Z"}, 400, "expiresAt"},
	{"POST /issues/{issue}/share", object{"expiresAt": "never"}, 400, "expiresAt"},
	{"POST /issues/{foreignIssue}/share", object{}, 404, ""},
	{"DELETE /issues/{issue}/share/{foreignShare}", nil, 404, ""},
	{"DELETE /issues/{child}/share/{share}", nil, 404, ""},
	{"DELETE /issues/{issue}/share/x", nil, 404, ""},
	{"GET {shared}/{workspace}/{foreignShare}", nil, 404, ""},
	{"GET {shared}/{foreign}/{share}", nil, 404, ""},
	{"GET {shared}/{workspace}/{revoked}", nil, 404, ""},
	{"GET {shared}/{workspace}/{share}x", nil, 404, ""},
	{"GET {shared}/" + noID + "/{share}", nil, 404, ""},
	{"GET {shared}/nowhere/x", nil, 404, ""},
}

var badRest = []badRequest{
	{"POST /issues/{issue}/comments", object{}, 400, "body"},
	{"POST /issues/{issue}/comments", object{"body": ""}, 400, "body"},
	{"POST /issues/{issue}/comments", object{"body": strings.Repeat("x", 65537)}, 400, "body"},
	{"POST /issues/{issue}/comments", object{"body": "x", "parentId": noID}, 400, "parentId"},
	{"POST /issues/{child}/comments", object{"body": "x", "parentId": "{comment}"}, 400, "parentId"},
	{"POST /issues/{foreignIssue}/comments", object{"body": "x"}, 404, ""},
	{"PATCH /comments/{comment}", object{"body": nil}, 400, "body"},
	{"PATCH /comments/" + noID, object{"body": "x"}, 404, ""},
	{"DELETE /comments/" + noID, nil, 404, ""},
	{"POST /labels", object{"name": "", "color": 7}, 400, "color name"},
	{"POST /projects", object{"name": "x", "startsAt": "2026-02-01T00:00:00Z", "endsAt": "2026-01-01T00:00:00Z"}, 400, "endsAt"},
	{"POST /cycles", object{"name": "x", "startsAt": "monday"}, 400, "startsAt"},
	{"POST /cycles", object{"name": "x", "startsAt": "2026-02-01T00:00:00Z", "endsAt": "2026-01-01T00:00:00Z"}, 400, "endsAt"},
	{"POST /templates", object{"name": "x", "status": "open", "estimate": -1}, 400, "estimate status"},
	{"PATCH /labels/" + noID, object{"name": "x"}, 404, ""},
	{"DELETE /cycles/" + noID, nil, 404, ""},
	{"POST /teams", object{"name": "x", "key": "bad key"}, 400, "key"},
	{"POST /teams", object{"name": "x", "key": "OTHER"}, 409, ""},
	{"PATCH /teams/{team}", object{"parentAutoClose": "yes"}, 400, "parentAutoClose"},
	{"DELETE /teams/{team}", nil, 409, ""},
	{"PUT /issues/{issue}", object{}, 405, ""},
	{"POST /issue-analytics", object{}, 405, ""},
	{"GET /capture", nil, 405, ""},
}
