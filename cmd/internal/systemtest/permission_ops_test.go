package systemtest

import (
	"slices"

	"switchyard/actors/tracker"
)

// matrixOp is an operation of the permission matrix. A caller that sees the issue gets
// the status ok, and the text shows in the body if it is set; a caller that has the right
// but does not see the issue gets unseen, and never shows. An operation without unseen is
// about the workspace, and not about an issue.
//
// {id} and the like are replaced by the fixture's ids; see fixture.
type matrixOp struct {
	name, method, path string
	body               map[string]any
	needs              string // read, write, admin, the first two of issues or sessions, drafts:write, public, operator, or scim for a SCIM base
	also               string // a second right
	ok, unseen         int
	shows              string
	// spends: it changes who sees the issue, or what there is of it, so that it gets
	// one of its own where it is to succeed.
	spends bool
	// inTeam is set if the operation is about the issue's team alone; grants of the issue
	// don't count.
	inTeam bool
	// bare: its path is the service's, not one below the workspace's.
	bare bool
	// authors: of those who see it, only the author and admins may; to the rest it
	// is forbidden.
	authors bool
	// people: credentials of agents and OAuth clients are refused, whatever they see.
	people bool
	// lanes: it may be asked for with a lane token, where it is about {id}, {session} or
	// {draft}.
	lanes bool
}

// matrixOps are the operations; to add one is to add a row.
var matrixOps = slices.Concat(issueOps, contentOps, sessionOps, draftOps, teamOps, countingOps, workspaceOps, recordOps(),
	ticketOps, eventOps, adminOps, scimOps, callOps)

// issueOps are about the issue itself, and where it shows in others.
var issueOps = []matrixOp{
	{name: "get", method: "GET", path: "/issues/{id}", needs: "issues:read", ok: 200, unseen: 404, shows: "{title}", lanes: true},
	{name: "branch name", method: "GET", path: "/issues/{id}/branch-name", needs: "issues:read", ok: 200, unseen: 404, shows: "{slug}"},
	{name: "list", method: "GET", path: "/issues?status=triage&priority=urgent&limit=100", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "triage", method: "GET", path: "/triage?priority=urgent&limit=100", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "list by team", method: "GET", path: "/issues?teamId={team}&status=triage&priority=urgent&limit=100", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "list by project", method: "GET", path: "/issues?projectId={name}", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "list by label and cycle", method: "GET", path: "/issues?labelId={name}&cycleId={name}", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "list by assignee", method: "GET", path: "/issues?assigneeId={name}&isDraft=false", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "list by priority", method: "GET", path: "/issues?priority=urgent&view=triage&limit=100", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "list by reference", method: "GET", path: "/issues?externalRef={name}", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "list by identifier", method: "GET", path: "/issues?identifier={identifier}", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "list by parent", method: "GET", path: "/issues?parentId={parent}", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "list of its children", method: "GET", path: "/issues?parentId={id}&limit=100", needs: "issues:read", ok: 200, unseen: 200, shows: "{child}"},
	{name: "list of what has a parent", method: "GET", path: "/issues?hasParent=true&identifier={childIdentifier}", needs: "issues:read", ok: 200, unseen: 200, shows: "{child}"},
	{name: "list of parents", method: "GET", path: "/issues?isParent=true&identifier={parentIdentifier}", needs: "issues:read", ok: 200, unseen: 200, shows: "{parent}"},
	{name: "children of its parent", method: "GET", path: "/issues/{parent}/children", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "its children", method: "GET", path: "/issues/{id}/children", needs: "issues:read", ok: 200, unseen: 404, shows: "{child}"},
	{name: "parent in its child", method: "GET", path: "/issues/{child}", needs: "issues:read", ok: 200, unseen: 200, shows: `"parentId":"{id}"`, lanes: true},
	{name: "parent in a list", method: "GET", path: "/issues?identifier={childIdentifier}", needs: "issues:read", ok: 200, unseen: 200, shows: `"parentId":"{id}"`},
	{name: "parent in a patch", method: "PATCH", path: "/issues/{child}", body: map[string]any{"estimate": 2}, needs: "issues:write", ok: 200, unseen: 200, shows: `"parentId":"{id}"`},
	{name: "parent in a batch", method: "POST", path: "/issues/batch", body: map[string]any{"ids": []string{"{child}"}, "patch": map[string]any{"estimate": 2}}, needs: "issues:write", ok: 200, unseen: 200, shows: `"parentId":"{id}"`},
	{name: "create below", method: "POST", path: "/issues", body: map[string]any{"title": "Below", "parentId": "{id}"}, needs: "issues:write", ok: 201, unseen: 400},
	{name: "create the same", method: "POST", path: "/issues", body: map[string]any{"title": "The same", "externalRef": "{name}"}, needs: "issues:write", ok: 200, unseen: 409, shows: "{title}"},
	{name: "create many below", method: "POST", path: "/issues/bulk", body: map[string]any{"items": []any{map[string]any{"title": "Below", "parentId": "{id}"}}}, needs: "issues:write", ok: 201, unseen: 400},
	{name: "create many related", method: "POST", path: "/issues/bulk", body: map[string]any{"items": []any{map[string]any{"title": "Related", "relations": []any{map[string]any{"type": "discovered_from", "issueId": "{id}"}}}}}, needs: "issues:write", ok: 201, unseen: 400},
	{name: "create many the same", method: "POST", path: "/issues/bulk", body: map[string]any{"items": []any{map[string]any{"title": "The same", "externalRef": "{name}"}}}, needs: "issues:write", ok: 201, unseen: 409, shows: "{title}"},
	{name: "patch", method: "PATCH", path: "/issues/{id}", body: map[string]any{"estimate": 1}, needs: "issues:write", ok: 200, unseen: 404, shows: "{title}"},
	{name: "make it a parent", method: "PATCH", path: "/issues/{loose}", body: map[string]any{"parentId": "{id}"}, needs: "issues:write", ok: 200, unseen: 400},
	{name: "batch", method: "POST", path: "/issues/batch", body: map[string]any{"ids": []string{"{id}"}, "patch": map[string]any{"estimate": 3}}, needs: "issues:write", ok: 200, unseen: 404, shows: "{title}"},
	{name: "graph", method: "GET", path: "/issues/{id}/graph", needs: "issues:read", ok: 200, unseen: 404, shows: "{child}"},
	{name: "graph of another", method: "GET", path: "/issues/{child}/graph?direction=up", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "relations", method: "GET", path: "/issues/{id}/relations", needs: "issues:read", ok: 200, unseen: 404, shows: "{child}"},
	{name: "relations of another", method: "GET", path: "/issues/{child}/relations", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "relate", method: "PUT", path: "/issues/{id}/relations/blocks/{child}", needs: "issues:write", ok: 200, unseen: 404, shows: "{child}"},
	{name: "relate another to it", method: "PUT", path: "/issues/{child}/relations/blocked_by/{id}", needs: "issues:write", ok: 200, unseen: 404, shows: "{id}"},
	{name: "remove a relation", method: "DELETE", path: "/issues/{child}/relations/blocked_by/{id}", needs: "issues:write", ok: 204, unseen: 404, spends: true},
	{name: "delete", method: "DELETE", path: "/issues/{id}", needs: "issues:write", ok: 204, unseen: 404, spends: true},
	{name: "grants", method: "GET", path: "/issues/{id}/permissions", needs: "issues:read", ok: 200, unseen: 404},
	{name: "put a grant", method: "PUT", path: "/issues/{id}/permissions", body: map[string]any{"actorId": "anybody"}, needs: "issues:write", ok: 200, unseen: 404, shows: "{id}", spends: true},
	{name: "remove a grant", method: "DELETE", path: "/issues/{id}/permissions/{grantee}", needs: "issues:write", ok: 204, unseen: 404, spends: true},
	{name: "share", method: "GET", path: "/issues/{id}/share", needs: "issues:read", ok: 200, unseen: 404, shows: "{share}"},
	{name: "make a share", method: "POST", path: "/issues/{id}/share", body: map[string]any{}, needs: "issues:write", ok: 201, unseen: 404, shows: "{id}", spends: true},
	{name: "revoke a share", method: "DELETE", path: "/issues/{id}/share/{share}", needs: "issues:write", ok: 204, unseen: 404, spends: true},
	{name: "shared issue", method: "GET", path: "/shared-issues/{workspace}/{share}", bare: true, needs: "public", ok: 200, unseen: 200},
}

// contentOps are about the words of an issue, and what hangs on it.
var contentOps = []matrixOp{
	{name: "search", method: "GET", path: "/issues?search={word}&status=triage&limit=100", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "search by description", method: "GET", path: "/issues?search={hint}&status=triage", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "search by identifier", method: "GET", path: "/issues?search={identifier}&status=triage&limit=100", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "search in triage", method: "GET", path: "/triage?search={word}&limit=100", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "similar to it", method: "GET", path: "/issues/{id}/similar?limit=50", needs: "issues:read", ok: 200, unseen: 404, shows: "{loose}"},
	{name: "similar to another", method: "GET", path: "/issues/{loose}/similar?limit=50", needs: "issues:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "possible duplicate", method: "POST", path: "/issues", body: map[string]any{"title": "{word}", "isDraft": true}, needs: "issues:write", ok: 201, unseen: 201, shows: "{id}"},
	{name: "duplicate in the way", method: "POST", path: "/issues?dedupe=block", body: map[string]any{"title": "{word}", "isDraft": true}, needs: "issues:write", ok: 409, unseen: 201, shows: "{id}"},
	{name: "parent in a template", method: "POST", path: "/issues", body: map[string]any{"title": "Templated", "isDraft": true, "templateId": "{below}"}, needs: "issues:write", ok: 201, unseen: 201, shows: `"parentId":"{id}"`},
	{name: "assign", method: "POST", path: "/issues/{id}/assign", body: map[string]any{"assigneeId": "{name}"}, needs: "issues:write", ok: 200, unseen: 404, shows: "{title}"},
	{name: "comments", method: "GET", path: "/issues/{id}/comments?limit=100", needs: "issues:read", ok: 200, unseen: 404, shows: "{comment}"},
	{name: "comment", method: "GET", path: "/comments/{comment}", needs: "issues:read", ok: 200, unseen: 404, shows: "{title}"},
	{name: "make a comment", method: "POST", path: "/issues/{id}/comments", body: map[string]any{"body": "Seen", "parentId": "{comment}"}, needs: "issues:write", ok: 201, unseen: 404, shows: "{comment}"},
	{name: "patch a comment", method: "PATCH", path: "/comments/{comment}", body: map[string]any{"body": "About {title}"}, needs: "issues:write", ok: 200, unseen: 404, shows: "{title}", authors: true},
	{name: "delete a comment", method: "DELETE", path: "/comments/{comment}", needs: "issues:write", ok: 204, unseen: 404, authors: true, spends: true},
	{name: "history", method: "GET", path: "/issues/{id}/history?limit=100", needs: "issues:read", ok: 200, unseen: 404, shows: `"{name}"`},
	{name: "attachments", method: "GET", path: "/issues/{id}/attachments", needs: "issues:read", ok: 200, unseen: 404, shows: "{attachment}"},
	{name: "attachment", method: "GET", path: "/attachments/{attachment}", needs: "issues:read", ok: 200, unseen: 404, shows: "PNG"},
	{name: "capture into its team", method: "POST", path: "/capture", body: map[string]any{"url": "https://example.com/a", "teamId": "{team}"}, needs: "issues:write", ok: 201, unseen: 400, shows: "{team}", inTeam: true},
	{name: "create in its team", method: "POST", path: "/issues", body: map[string]any{"title": "Beside", "teamId": "{team}", "isDraft": true}, needs: "issues:write", ok: 201, unseen: 400, shows: "{team}", inTeam: true},
	{name: "move to its team", method: "PATCH", path: "/issues/{moved}", body: map[string]any{"teamId": "{team}"}, needs: "issues:write", ok: 200, unseen: 400, shows: "{team}", inTeam: true, spends: true},
}

// sessionOps are about agents' sessions of the issue: callers that see it see them.
var sessionOps = []matrixOp{
	{name: "dispatch", method: "POST", path: "/issues/{id}/dispatch", body: map[string]any{"agentId": "{name}", "provider": "other"}, needs: "sessions:write", ok: 201, unseen: 404, shows: "{id}"},
	{name: "dispatch in a batch", method: "POST", path: "/agent/dispatch-batch", body: map[string]any{"items": []any{map[string]any{"issueId": "{id}", "agentId": "{name}"}}}, needs: "sessions:write", ok: 200, unseen: 200, shows: `"sessionId":"`},
	{name: "queue in a batch", method: "POST", path: "/agent/dispatch-batch", body: map[string]any{"items": []any{map[string]any{"issueId": "{loose}", "agentId": "{name}", "queuedAfter": "{session}"}}}, needs: "sessions:write", ok: 200, unseen: 200, shows: `"sessionId":"`},
	{name: "sessions by issue", method: "GET", path: "/agent/sessions?issueId={id}&limit=100", needs: "sessions:read", ok: 200, unseen: 200, shows: "{session}"},
	{name: "sessions by agent", method: "GET", path: "/agent/sessions?agentId={name}&status=created&summary=1&limit=100", needs: "sessions:read", ok: 200, unseen: 200, shows: "{queued}"},
	{name: "register a session", method: "POST", path: "/agent/sessions/register", body: map[string]any{"issueId": "{id}", "provider": "other"}, needs: "sessions:write", also: "issues:read", ok: 201, unseen: 404, shows: "{id}"},
	{name: "register the same session", method: "POST", path: "/agent/sessions/register", body: map[string]any{"issueId": "{id}", "provider": "other", "providerSessionId": "{name}"}, needs: "sessions:write", also: "issues:read", ok: 200, unseen: 404, shows: "{id}"},
	{name: "claim", method: "POST", path: "/agent/sessions/claim", body: map[string]any{"agentId": "{name}", "provider": "{name}", "limit": 50}, needs: "sessions:write", ok: 200, unseen: 200, shows: "{title}", spends: true},
	{name: "session", method: "GET", path: "/agent/sessions/{session}", needs: "sessions:read", ok: 200, unseen: 404, shows: "{id}", lanes: true},
	{name: "poll", method: "POST", path: "/agent/sessions/{session}/poll", needs: "sessions:read", ok: 200, unseen: 404, shows: "{title}", lanes: true},
	{name: "activities", method: "GET", path: "/agent/sessions/{session}/activities", needs: "sessions:read", ok: 200, unseen: 404, shows: "{title}", lanes: true},
	{name: "spawn a child", method: "POST", path: "/agent/sessions/{session}/children", body: map[string]any{"title": "Part"}, needs: "sessions:write", ok: 201, unseen: 404, shows: "{id}", spends: true, lanes: true},
	{name: "children of a session", method: "GET", path: "/agent/sessions/{session}/children?limit=100", needs: "sessions:read", ok: 200, unseen: 404, shows: "{spawned}", lanes: true},
	{name: "reply to a session", method: "POST", path: "/agent/sessions/{session}/reply", body: map[string]any{"message": "Go on"}, needs: "sessions:write", ok: 200, unseen: 404, shows: "{id}", people: true},
	{name: "log", method: "POST", path: "/agent/sessions/{session}/log", body: map[string]any{"message": "Looked around", "usage": map[string]any{"inputTokens": 1}}, needs: "sessions:write", ok: 201, unseen: 404, lanes: true},
	{name: "heartbeat", method: "POST", path: "/agent/sessions/{session}/heartbeat", body: map[string]any{}, needs: "sessions:write", ok: 200, unseen: 404, lanes: true},
	{name: "report", method: "POST", path: "/agent/sessions/{session}/report", body: map[string]any{"branch": "b"}, needs: "sessions:write", ok: 200, unseen: 404, shows: "{id}", lanes: true},
	{name: "usage", method: "GET", path: "/usage?groupBy=issue", needs: "sessions:read", ok: 200, unseen: 200, shows: "{id}"},
	{name: "usage by session", method: "GET", path: "/usage?groupBy=session&from=2020-01-01T00:00:00Z", needs: "sessions:read", ok: 200, unseen: 200, shows: "{session}"},
	{name: "attempts at a session", method: "GET", path: "/agent/sessions/{session}/attempts", needs: "sessions:read", ok: 200, unseen: 404, lanes: true},
	{name: "store a checkpoint", method: "PUT", path: "/agent/sessions/{queued}/checkpoint", body: map[string]any{}, needs: "sessions:write", ok: 409, unseen: 404},
	{name: "checkpoint", method: "GET", path: "/agent/sessions/{queued}/checkpoint", needs: "sessions:read", ok: 404, unseen: 404},
	{name: "release a session", method: "POST", path: "/agent/sessions/{queued}/release", body: map[string]any{"reason": "Later"}, needs: "sessions:write", ok: 409, unseen: 404},
	{name: "release sessions", method: "POST", path: "/agent/sessions/release", body: map[string]any{"items": []any{map[string]any{"id": "{queued}", "reason": "Later"}}}, needs: "sessions:write", ok: 200, unseen: 200, shows: "Nobody holds"},
	{name: "retry a session", method: "POST", path: "/agent/sessions/{queued}/retry", needs: "sessions:write", ok: 409, unseen: 404},
	{name: "redrive sessions", method: "POST", path: "/agent/sessions/redrive", body: map[string]any{}, needs: "sessions:write", ok: 200, unseen: 200},
	{name: "tools of a session", method: "POST", path: "/agent/sessions/{session}/mcp", body: map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": "read_session"}}, needs: "sessions:write", ok: 200, unseen: 404, shows: "{title}", lanes: true},
	{name: "cancel a session", method: "POST", path: "/agent/sessions/{session}/cancel", needs: "sessions:write", ok: 200, unseen: 404, shows: "{id}", spends: true},
}

// draftOps are about proposals for the issue: callers that see it see them.
var draftOps = []matrixOp{
	{name: "drafts by issue", method: "GET", path: "/drafts?issueId={id}&limit=100", needs: "issues:read", ok: 200, unseen: 200, shows: "{draft}", lanes: true},
	{name: "drafts by session", method: "GET", path: "/drafts?sessionId={session}&status=pending&limit=100", needs: "issues:read", ok: 200, unseen: 200, shows: "{draft}", lanes: true},
	{name: "propose", method: "POST", path: "/drafts", body: map[string]any{"kind": "comment", "issueId": "{id}", "payload": map[string]any{"body": "About {title}"}}, needs: "drafts:write", ok: 201, unseen: 404, shows: "{title}", lanes: true},
	{name: "propose from a session", method: "POST", path: "/drafts", body: map[string]any{"kind": "issue_update", "sessionId": "{session}", "payload": map[string]any{"title": "{title} too"}}, needs: "drafts:write", ok: 201, unseen: 404, shows: "{title}", lanes: true},
	{name: "draft", method: "GET", path: "/drafts/{draft}", needs: "issues:read", ok: 200, unseen: 404, shows: "{title}", lanes: true},
	{name: "publish a draft", method: "POST", path: "/drafts/{draft}/publish", body: map[string]any{"note": "Yes"}, needs: "issues:write", ok: 200, unseen: 404, shows: "{title}", spends: true},
	{name: "discard a draft", method: "POST", path: "/drafts/{draft}/discard", body: map[string]any{"note": "No"}, needs: "issues:write", ok: 200, unseen: 404, shows: "{title}", spends: true},
}

// teamOps are about the team of the issue.
var teamOps = []matrixOp{
	{name: "team", method: "GET", path: "/teams/{team}", needs: "read", ok: 200, unseen: 404, shows: "{team}", inTeam: true},
	{name: "team in the list", method: "GET", path: "/teams", needs: "read", ok: 200, unseen: 200, shows: `"id":"{team}"`, inTeam: true},
	{name: "team's members", method: "GET", path: "/teams/{team}/members", needs: "read", ok: 200, unseen: 404, inTeam: true},
	{name: "patch the team", method: "PATCH", path: "/teams/{team}", body: map[string]any{"parentAutoClose": false}, needs: "write", ok: 200, unseen: 404, shows: "{team}", inTeam: true},
	{name: "delete the team", method: "DELETE", path: "/teams/{team}", needs: "write", ok: 409, unseen: 404, inTeam: true},
	{name: "add a stranger to the team", method: "PUT", path: "/teams/{team}/members/somebody-else", needs: "write", ok: 404, unseen: 404, inTeam: true},
	{name: "take a stranger out of the team", method: "DELETE", path: "/teams/{team}/members/somebody-else", needs: "write", ok: 404, unseen: 404, inTeam: true},
	{name: "analytics by team", method: "GET", path: "/issue-analytics?groupBy=teamId", needs: "issues:read", ok: 200, unseen: 200, shows: `"group":"{team}"`, inTeam: true},
}

// countingOps tell how many issues there are; one that is not seen is not counted.
var countingOps = []matrixOp{
	{name: "analytics by project", method: "GET", path: "/issue-analytics?groupBy=projectId", needs: "issues:read", ok: 200, unseen: 200, shows: `{"group":"{name}","count":1,"estimateTotal":`},
	{name: "analytics by cycle", method: "GET", path: "/issue-analytics?groupBy=cycleId", needs: "issues:read", ok: 200, unseen: 200, shows: `{"group":"{name}","count":1,"estimateTotal":`},
	{name: "analytics by assignee", method: "GET", path: "/issue-analytics?groupBy=assigneeId", needs: "issues:read", ok: 200, unseen: 200, shows: `{"group":"{name}","count":1,"estimateTotal":`},
	{name: "burndown", method: "GET", path: "/issue-analytics/burndown?cycleId={name}", needs: "issues:read", ok: 200, unseen: 200, shows: `{"total":1,`},
	{name: "burndown's days", method: "GET", path: "/issue-analytics/burndown?cycleId={name}", needs: "issues:read", ok: 200, unseen: 200, shows: `"scope":1,"remaining":1}`},
}

// workspaceOps are about no issue.
var workspaceOps = []matrixOp{
	{name: "workspace", method: "GET", path: "", needs: "read", ok: 200},
	{name: "progress of an import", method: "GET", path: "/import", needs: "admin", ok: 404},
	{name: "import no lines", method: "POST", path: "/import", body: map[string]any{}, needs: "admin", ok: 400},
	{name: "export", method: "GET", path: "/export?after=1000000000", needs: "admin", ok: 200},
	{name: "patch the workspace", method: "PATCH", path: "", body: map[string]any{}, needs: "admin", ok: 200},
	{name: "teams", method: "GET", path: "/teams", needs: "read", ok: 200},
	{name: "members", method: "GET", path: "/members", needs: "read", ok: 200},
	{name: "add a member", method: "POST", path: "/members", body: map[string]any{"name": "somebody"}, needs: "admin", ok: 201},
	{name: "change a stranger's role", method: "PATCH", path: "/members/somebody-else", body: map[string]any{"role": "guest"}, needs: "admin", ok: 404},
	{name: "remove a stranger", method: "DELETE", path: "/members/somebody-else", needs: "admin", ok: 404},
	{name: "make a team", method: "POST", path: "/teams", body: map[string]any{"name": "public", "key": "public"}, needs: "write", ok: 409}, // the key is taken
	{name: "delete a token", method: "DELETE", path: "/tokens" + nothing, needs: "admin", ok: 404},
	{name: "tokens", method: "GET", path: "/tokens", needs: "admin", ok: 200},
	{name: "agents", method: "GET", path: "/agents", needs: "read", ok: 200},
	{name: "register an agent", method: "POST", path: "/agents", body: map[string]any{"name": "One"}, needs: "admin", ok: 201},
	{name: "one of the agents", method: "GET", path: "/agents/" + noID, needs: "read", ok: 404},
	{name: "patch an agent", method: "PATCH", path: "/agents/" + noID, body: map[string]any{"name": "Other"}, needs: "admin", ok: 404},
	{name: "delete an agent", method: "DELETE", path: "/agents/" + noID, needs: "admin", ok: 404},
	{name: "holds", method: "GET", path: "/holds", needs: "sessions:read", ok: 200},
	{name: "hold an agent", method: "PUT", path: "/holds/agent:nobody", body: map[string]any{"reason": "r"}, needs: "admin", ok: 200},
	{name: "end a hold", method: "DELETE", path: "/holds/agent:never-held", needs: "admin", ok: 404},
	{name: "summary of the queue", method: "GET", path: "/agent/queue", needs: "sessions:read", ok: 200},
	{name: "retention", method: "GET", path: "/retention", needs: "admin", ok: 200},
	{name: "set the retention", method: "PUT", path: "/retention", body: map[string]any{"deliveriesDays": 400}, needs: "admin", ok: 200},
	{name: "bring an issue back", method: "POST", path: "/issues/{id}/unarchive", needs: "issues:write", ok: 200, unseen: 404, shows: "{title}"},
	{name: "budgets", method: "GET", path: "/budgets", needs: "sessions:read", ok: 200},
	{name: "set a budget", method: "PUT", path: "/budgets/agent:nobody", body: map[string]any{"period": "total", "tokens": 5}, needs: "admin", ok: 200},
	{name: "delete a budget", method: "DELETE", path: "/budgets/agent:never-limited", needs: "admin", ok: 404},
	{name: "set a budget of an issue", method: "PUT", path: "/budgets/issue:{id}", body: map[string]any{"period": "month"}, needs: "admin", ok: 200, unseen: 404},
	{name: "limits of concurrency keys", method: "GET", path: "/agent/limits", needs: "sessions:read", ok: 200},
	{name: "limit a concurrency key", method: "PUT", path: "/agent/limits/nothing", body: map[string]any{"limit": 2}, needs: "admin", ok: 200},
	{name: "remove a limit", method: "DELETE", path: "/agent/limits/never-limited", needs: "admin", ok: 404},
	{name: "make a token", method: "POST", path: "/tokens", body: map[string]any{"name": "t", "actorType": "agent", "permissions": "read"}, needs: "admin", ok: 201},
}

// recordOps are those of labels and of the other entities of plain records: of every
// caller who may read or write in the workspace, for more than issues alone. Changes name
// records that are not there, so that the world stays as it is.
func recordOps() (ops []matrixOp) {
	for _, entity := range tracker.RecordEntities() {
		plural := entity.Many
		at, gone := "/"+plural, "/"+plural+"/"+noID
		ops = append(ops,
			matrixOp{name: plural, method: "GET", path: at, needs: "read", ok: 200},
			matrixOp{name: "make one of " + plural, method: "POST", path: at, body: map[string]any{"name": "One"}, needs: "write", ok: 201},
			matrixOp{name: "one of " + plural, method: "GET", path: gone, needs: "read", ok: 404},
			matrixOp{name: "patch one of " + plural, method: "PATCH", path: gone, body: map[string]any{"name": "Other"}, needs: "write", ok: 404},
			matrixOp{name: "delete one of " + plural, method: "DELETE", path: gone, needs: "write", ok: 404},
		)
	}
	return ops
}
